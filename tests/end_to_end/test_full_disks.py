"""A disk that is full: one line says so, nothing more is paid for, and the next run goes on when there is room."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from contextlib import contextmanager
from pkgutil import resolve_name

import pytest
from support.beginning import Beginner
from support.processes import until

from agentcompass.adapters.cli.main import main

COUNT, CONCURRENCY = 40, 8
SIZE = "8m"


@pytest.fixture
def begin(tmp_path, monkeypatch):
    """Return what starts a run of all tasks."""
    return Beginner(tmp_path, monkeypatch, count=COUNT, concurrency=CONCURRENCY, pause=0.1, mode="fresh")


@contextmanager
def _small_disk(folder):
    """Let *folder* be a disk of a few megabytes."""
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", folder]).returncode:
        assert not os.environ.get("CI"), "CI can mount a small disk"
        pytest.skip("no disk can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def _full(folder):
    """Leave not a byte on the disk of *folder*."""
    with open(folder / "filler", "wb", buffering=0) as file:
        for size in (64 * 1024, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    yield
    (folder / "filler").unlink()


def _require_sound(begin):
    for path in begin.folder.glob("results/**/*.json"):
        json.loads(path.read_text())
    assert [] == list(begin.folder.glob("agentcompass-*")), "a sandbox or a report of a crash"


def test_results_on_a_disk_that_is_full_at_first(begin):
    """Nothing is executed, and one line says why."""
    with _small_disk(begin.folder / "results") as disk:
        with _full(disk):
            process = begin()
            out, err = process.communicate(timeout=60)

        assert 1 == process.returncode
        assert "No space left on device" in err.splitlines()[-1]
        assert "Traceback" not in out + err
        assert {} == begin.executions()
        _require_sound(begin)

        process = begin("--reuse")
        assert 0 == (process.communicate(timeout=60) and process.returncode)
        assert COUNT == len(begin.executions())


@pytest.mark.parametrize("moment", [1, 12, 25, COUNT])
def test_results_on_a_disk_that_fills_up(begin, moment):
    """What was saved stands, what was not runs again, and it comes to what an undisturbed run comes to."""
    with _small_disk(begin.folder / "results") as disk:
        process = begin()
        until(lambda: sum(begin.executions().values()) >= moment)
        with _full(disk):
            out, err = process.communicate(timeout=60)
        ended, before = begin.ended(), begin.executions()
        assert [] == [result["issues"] for result in ended.values() if result["status"] != "completed"]

        assert 1 == process.returncode
        (said,) = (line for line in out.splitlines() if line.startswith("status"))
        assert "results could not be written: " in said
        assert "No space left on device" in said
        assert "Traceback" not in out + err
        assert sum(before.values()) <= moment + 2 * CONCURRENCY, "work was begun whose results have no place"
        _require_sound(begin)

        process = begin("--reuse")
        out, err = process.communicate(timeout=60)
        after = begin.executions()
        assert 0 == process.returncode, err
        assert set() == {name for name in ended if after[name] > before[name]}
        assert COUNT == len(after)
        assert f"{COUNT} tasks = {COUNT} evaluated" in out
        assert "0.5000" in out
        _require_sound(begin)


@pytest.mark.parametrize(
    "place",
    [
        "agentcompass.adapters.stores.json_files.JsonRunStore.record_resource",
        "agentcompass.adapters.sandboxes.local_session.copy",
        "agentcompass.adapters.engine.artifacts._keep",
    ],
)
def test_no_room_in_the_middle_is_no_attempts_fault(begin, monkeypatch, place):
    """The record of a sandbox, a copy of an artifact: the run stops, and nothing is kept as that attempt's failure."""
    monkeypatch.chdir(begin.folder)
    work = resolve_name(place)

    def full(*args, **more):
        if sum(begin.executions().values()) > 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return work(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(place, full)
        assert 1 == main(begin.words)
    assert set() == {name for name, result in begin.ended().items() if result["status"] != "completed"}
    said = json.loads((begin.newest() / "run_info.json").read_text())["error"]
    assert "results could not be written: " in said

    assert 0 == main([*begin.words, "--reuse"])


def test_sandboxes_on_a_disk_that_fills_up(begin):
    """The attempts that need the room fail for want of it; none is graded for it, and the next run executes them."""
    with _small_disk(begin.folder / "sandboxes") as disk:
        begin.environment["TMPDIR"] = str(disk)
        process = begin()
        until(lambda: sum(begin.executions().values()) >= 12)
        with _full(disk):
            out, err = process.communicate(timeout=60)
        results = begin.ended()
        failed = {name for name, result in results.items() if result["status"] != "completed"}

        assert 1 == process.returncode
        assert "Traceback" not in out + err
        assert 0 < len(failed) < COUNT
        for name in failed:
            (issue, *_) = results[name]["issues"]
            assert "No space left on device" in issue["message"]
            assert {} == results[name]["metrics"]
        assert [] == os.listdir(disk)

        process = begin("--reuse", "--max-retries", "1")
        out, err = process.communicate(timeout=60)
        assert 0 == process.returncode, out + err
        assert "0.5000" in out
        assert {} == {name: n for name, n in begin.executions().items() if n > 2 or (n == 2 and name not in failed)}
