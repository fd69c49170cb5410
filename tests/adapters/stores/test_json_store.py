"""The store of JSON files: the contract of stores, and what a disk may do to it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import threading

import pytest
from contracts.store import StoreContract, within
from support.disk import Disk

from agentcompass.adapters.stores import json_files
from agentcompass.adapters.stores.json_files import JsonRunStore
from agentcompass.core.records.names import task_file_name

FULL = OSError(errno.ENOSPC, "No space left on device")


class _Folder:
    """A run directory, read back as anyone would read it."""

    def __init__(self, path):
        self.path = path

    def store(self):
        return JsonRunStore(self.path)

    def _lines(self, name):
        path = self.path / name
        return [json.loads(line) for line in path.read_bytes().split(b"\n") if line] if path.exists() else []

    def _document(self, *parts):
        path = self.path.joinpath(*parts)
        return json.loads(path.read_bytes()) if path.exists() else None

    def events(self):
        return self._lines("progress.jsonl")

    def plans(self):
        return self._lines("plans.jsonl")

    def tasks(self):
        return self._lines("tasks.jsonl")

    def document(self, name):
        return self._document(f"{name}.json")

    def summary(self):
        return (self.path / "summary.md").read_text("utf-8")

    def attempt(self, task_id, attempt):
        return self._document("attempts", task_file_name(task_id), str(attempt), "result.json")

    def trajectory(self, task_id, attempt):
        return self._document("attempts", task_file_name(task_id), str(attempt), "trajectory.json")

    def retry(self, path):
        return self._document(path)

    def task(self, task_id, failed):
        return self._document("details", f"{'_error_' if failed else ''}{task_file_name(task_id)}.json")

    def hidden(self):
        return [path.name for path in self.path.rglob(".*")]


@pytest.fixture
def place(tmp_path):
    return _Folder(tmp_path)


@pytest.fixture
def disk(monkeypatch):
    """Give the store a disk that can be made to fail."""
    disk = Disk()
    monkeypatch.setattr(json_files, "os", disk)
    return disk


class TestJsonRunStore(StoreContract):
    """The contract."""

    @pytest.fixture
    def place(self, tmp_path):
        return _Folder(tmp_path)


SAVES = {
    "progress.json": lambda store, n: store.save_progress({"n": n}),
    "run_info.json": lambda store, n: store.save_run_info({"n": n}),
    "params.json": lambda store, n: store.save_params({"n": n}),
    "tasks.jsonl": lambda store, n: store.save_tasks([{"n": n}]),
    "metrics.json": lambda store, n: store.save_report({"n": n}, f"{n}"),
    "attempts/t/1/result.json": lambda store, n: store.save_attempt("t", 1, {"n": n}, None),
    "attempts/t/1/trajectory.json": lambda store, n: store.save_attempt("t", 1, {}, {"n": n}),
    "attempts/t/1/retries/1.evaluate.json": lambda store, n: store.save_retry("t", 1, 1, "evaluate", {"n": n}),
    "details/t.json": lambda store, n: store.save_task("t", False, {"n": n}),
}
FAULTS = ["open", "write", "fsync", "replace", "close"]


@pytest.mark.parametrize(
    ("name", "fault"),
    [(name, fault) for name in SAVES for fault in FAULTS if (name, fault) != ("progress.json", "fsync")],
)
def test_a_failed_save_leaves_the_old_document(place, disk, name, fault):
    """Whatever the disk refuses, the error is an OSError, the old document stays, and no other file is left."""

    async def work(store):
        await SAVES[name](store, 1)
        if fault == "close":  # which frees the descriptor all the same
            disk.replace_with("close", lambda descriptor: (os.close(descriptor), _raise(FULL)))
        else:
            disk.fail(fault, FULL)
        with pytest.raises(OSError, match="No space"):
            await SAVES[name](store, 2)
        disk.heal()
        assert 1 == json.loads((place.path / name).read_bytes())["n"]
        assert [] == place.hidden()
        await SAVES[name](store, 3)

    within(place, work)
    assert 3 == json.loads((place.path / name).read_bytes())["n"]


def _raise(error):
    raise error


@pytest.mark.parametrize("name", SAVES)
def test_a_disk_that_fills_up_in_the_middle(place, disk, name):
    """A document of which only a part fits leaves nothing of itself."""

    async def work(store):
        await SAVES[name](store, 1)
        room = [3]

        def write(descriptor, data):
            if not room[0]:
                raise FULL
            room[0] -= 1
            return os.write(descriptor, bytes(data[:1]))

        disk.replace_with("write", write)
        with pytest.raises(OSError, match="No space"):
            await SAVES[name](store, 2)
        disk.heal()

    within(place, work)
    assert 1 == json.loads((place.path / name).read_bytes())["n"]
    assert [] == place.hidden()


def test_short_writes_are_continued(place, disk):
    """A document that the disk takes in pieces is whole all the same."""
    disk.replace_with("write", lambda descriptor, data: os.write(descriptor, bytes(data[:7])))

    within(place, lambda store: store.save_run_info({"text": "é" * 100}))
    assert {"text": "é" * 100} == place.document("run_info")


@pytest.mark.seed("RR-04")
@pytest.mark.parametrize("name", SAVES)
def test_a_document_is_readable_at_every_instant(place, disk, name):
    """Whoever looks at the file while it is replaced sees the old document or the new one."""
    seen = []

    async def work(store):
        await SAVES[name](store, 1)
        disk.before = lambda called: seen.append(json.loads((place.path / name).read_bytes())["n"])
        await SAVES[name](store, 2)
        disk.before = lambda called: None

    within(place, work)
    assert [1, 1, 1] == seen[:3]
    assert sorted(seen) == seen
    assert {1, 2} >= set(seen)
    assert 2 == json.loads((place.path / name).read_bytes())["n"]


class _Killed(BaseException):
    """The process is gone: nothing that follows in it happens."""


def test_a_kill_before_the_new_document_is_in_place(tmp_path, disk):
    """A process killed after writing leaves the old document, and what it left behind hinders nobody."""
    path = str(tmp_path / "run_info.json")
    json_files.replace_file(path, b"old")
    disk.fail("replace", _Killed())
    with pytest.raises(_Killed):
        json_files.replace_file(path, b"a much longer new document")
    disk.heal()
    after_the_kill = (tmp_path / "run_info.json").read_bytes()
    json_files.replace_file(path, b"next")

    assert (b"old", b"next") == (after_the_kill, (tmp_path / "run_info.json").read_bytes())
    assert ["run_info.json"] == os.listdir(tmp_path)


def test_documents_are_synced_before_they_take_the_old_ones_place(place, disk):
    """A new document is on the disk before its name is."""
    calls = []
    disk.before = calls.append

    within(place, lambda store: store.save_run_info({}))
    assert ["open", "write", "fsync", "close", "replace"] == [c for c in calls if c != "strerror"][-5:]


def test_a_cancelled_save_is_not_overtaken(place, disk):
    """The document saved after a cancelled save is begun only when that is over, so it stays, and is whole."""
    entered, overtaken = threading.Event(), threading.Event()

    def stall(descriptor):
        if not entered.is_set():
            disk.before = lambda called: overtaken.set() if called == "open" else None
            entered.set()
            overtaken.wait(0.2)
            disk.before = lambda called: None
        os.fsync(descriptor)

    async def work(store):
        disk.replace_with("fsync", stall)
        first = asyncio.ensure_future(store.save_run_info({"n": 1, "filling": "x" * 10_000}))
        await asyncio.to_thread(entered.wait, 10)
        first.cancel()
        await store.save_run_info({"n": 2})
        assert first.cancelled()

    within(place, work)
    assert not overtaken.is_set()
    assert {"n": 2} == place.document("run_info")
    assert [] == place.hidden()


def test_replaced_documents_never_go_backwards(place, disk):
    """While many saves overlap, a reader sees them in the order of their calls."""
    seen = []

    def replace(temporary, path):
        with open(temporary, "rb") as file:
            seen.append(json.load(file)["n"])
        os.replace(temporary, path)

    async def work(store):
        disk.replace_with("replace", replace)
        await asyncio.gather(*(store.save_run_info({"n": number}) for number in range(20)))

    within(place, work)
    assert list(range(20)) == seen


@pytest.mark.seed("RR-05")
def test_a_torn_line_costs_only_itself(place, disk):
    """An event of which only a part could be written is an error, and the next one starts a new line."""

    async def work(store):
        store.append_events([{"n": 1}])
        disk.replace_with("write", lambda descriptor, data: os.write(descriptor, data[:5]))
        for number in (2, 3):
            with pytest.raises(OSError, match="No space"):
                store.append_events([{"n": number}])
        disk.heal()
        store.append_events([{"n": 4}])
        store.append_events([{"n": 5}])

    within(place, work)
    lines = (place.path / "progress.jsonl").read_bytes().splitlines()
    assert [b'{"n": 1}', b'{"n":', b'{"n"', b'{"n": 4}', b'{"n": 5}'] == lines


@pytest.mark.seed("RR-05")
def test_a_line_that_is_refused_leaves_nothing(place, disk):
    """An event that the disk does not take at all is an error, and leaves the stream as it was."""

    async def work(store):
        store.append_events([{"n": 1}])
        disk.fail("write", FULL)
        with pytest.raises(OSError, match="No space"):
            store.append_events([{"n": 2}])
        disk.heal()
        store.append_events([{"n": 3}])

    within(place, work)
    assert b'{"n": 1}\n{"n": 3}\n' == (place.path / "progress.jsonl").read_bytes()


def test_one_write_per_line(place, disk):
    """A line reaches the disk in one piece, so that readers and other writers never see half of one."""
    calls = []
    disk.before = calls.append

    async def work(store):
        store.append_events([{"text": "x" * 100_000}])
        store.append_events([{"text": "y"}])

    within(place, work)
    assert 2 == calls.count("write")


def test_a_store_adds_to_the_streams_that_it_finds(place):
    """Opening a run again loses no line."""
    for number in (1, 2):

        async def work(store, number=number):
            store.append_events([{"n": number}])

        within(place, work)

    assert [{"n": 1}, {"n": 2}] == place.events()


def test_documents_are_for_people_too(place):
    """A document is UTF-8, with line breaks, and not escaped; plans take a line each."""
    within(place, lambda store: store.save_run_info({"a": "é", "resolved_execution_plans": {"t": {"x": [1]}, "u": {}}}))

    assert '{\n  "a": "é",\n  "resolved_execution_plans": {\n    "t": {"x": [1]},\n    "u": {}\n  }\n}' == (
        place.path / "run_info.json"
    ).read_text("utf-8")


def test_a_store_may_be_closed_twice(place):
    """Closing is tidying up, which may come from more than one side."""

    async def work(store):
        store.append_events([{}])
        await store.close()

    within(place, work)
    assert [{}] == place.events()


def test_what_speaks_of_other_files_is_taken_over_last(place, tmp_path, monkeypatch):
    """A run that dies while it takes an attempt over has nothing that looks whole and is not."""
    source = tmp_path / "source"
    (source / "artifacts").mkdir(parents=True)
    for name in ("result.json", "checkpoint.json", "trajectory.json", "artifacts/a", "zzz"):
        (source / name).write_text("{}")
    made, real = [], os.link

    def link(origin, target, **more):
        made.append(os.path.basename(target))
        real(origin, target, **more)

    monkeypatch.setattr(os, "link", link)
    store = place.store()
    store.adopt_attempt("t", 1, str(source))
    whole, made[:] = list(made), []
    store.adopt_checkpoint("t", 2, str(source))

    assert "result.json" == whole[-1]
    assert 5 == len(whole)
    assert ["a", "checkpoint.json"] == made


@pytest.mark.parametrize(("scope", "stays"), [("attempt", False), ("evaluate", True)])
def test_a_checkpoint_goes_with_the_execution_that_made_it(place, scope, stays):
    """What another execution has done is not what a continued run grades."""

    async def act():
        store = place.store()
        await store.save_checkpoint("t", 1, {"n": 1})
        await store.save_retry("t", 1, 1, "run", {"scope": scope})
        await store.close()

    asyncio.run(act())

    assert stays == (place.path / "attempts" / "t" / "1" / "checkpoint.json").exists()
