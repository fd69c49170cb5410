"""Tests of process trees: how the way of killing is chosen, and what is recognised as a sandbox's."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL, SIGSTOP

import pytest
from contracts.environment_tools import run

from agentcompass.adapters.sandboxes import cgroup_tree, process_table, process_tree, scan_tree
from agentcompass.adapters.sandboxes.cgroup_tree import CgroupTree, own_cgroup
from agentcompass.adapters.sandboxes.process_table import (
    Census,
    Process,
    ProcTable,
    PsTable,
    Snapshot,
    Table,
    marker,
)
from agentcompass.adapters.sandboxes.process_tree import choose_tree, extinguish
from agentcompass.adapters.sandboxes.scan_tree import Hunt, ScanTree
from agentcompass.core.errors import SandboxError


def test_cgroups_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where cgroups can be made, they are used."""
    monkeypatch.setattr(process_tree, "own_cgroup", lambda: "/cgroups")
    make, said = choose_tree()

    assert isinstance(make("x"), CgroupTree)
    assert "trees are killed through cgroups" == said


def test_environment_scan_comes_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without cgroups /proc is scanned."""
    monkeypatch.setattr(process_tree, "own_cgroup", lambda: None)
    make, said = choose_tree()

    assert isinstance(make("x"), ScanTree)
    assert "trees are killed by process group and environment scan" == said


def test_ps_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without /proc there is still ps."""
    monkeypatch.setattr(process_tree, "own_cgroup", lambda: None)
    monkeypatch.setattr(process_tree.os.path, "exists", lambda path: False)
    make, said = choose_tree()

    assert isinstance(make("x"), ScanTree)
    assert "trees are killed by process group and what ps shows" == said


@pytest.mark.parametrize(
    ("enter", "probe", "usable"),
    [
        (True, {"cgroup.kill": "", "cgroup.type": "domain\n"}, True),
        (False, {"cgroup.kill": "", "cgroup.type": "domain\n"}, False),
        (True, {"cgroup.type": "domain\n"}, False),
        (True, {"cgroup.kill": "", "cgroup.type": "domain invalid\n"}, False),
        (True, None, False),
    ],
)
def test_only_usable_cgroups_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enter: bool, probe: dict[str, str] | None, usable: bool
) -> None:
    """A hierarchy must be writable, let processes in, and kill; looking leaves nothing in it."""
    make_folder, remove_folder = os.mkdir, os.rmdir

    def mkdir(path: str) -> None:
        if probe is None:
            raise OSError(30, "Read-only file system")
        make_folder(path)
        for name, text in probe.items():
            Path(path, name).write_text(text)

    def rmdir(path: str) -> None:
        for file in Path(path).iterdir():  # in a real cgroup they go by themselves
            file.unlink()
        remove_folder(path)

    if enter:
        (tmp_path / "cgroup.procs").write_text("")
    lines = {"/proc/self/cgroup": ["1:cpu:/", "0::/"], "/proc/self/mounts": [f"cgroup2 {tmp_path} cgroup2 rw 0 0"]}
    real = cgroup_tree._lines
    monkeypatch.setattr(cgroup_tree, "_lines", lambda path, **options: lines.get(path) or real(path, **options))
    with monkeypatch.context() as patch:
        patch.setattr(cgroup_tree.os, "mkdir", mkdir)
        patch.setattr(cgroup_tree.os, "rmdir", rmdir)
        found = own_cgroup()

    assert (str(tmp_path) if usable else None) == found
    assert [] == [path for path in tmp_path.iterdir() if path.is_dir()]


class Fake:
    """A table that shows what it is told: one snapshot and its arrivals for each look."""

    def __init__(self, *looks: tuple[list[Process], list[Process]]) -> None:
        self.looks = list(looks)

    def snapshot(self) -> Snapshot:
        return {process.pid: process for process in self.looks[0][0]}

    def arrivals(self, snapshot: Snapshot) -> Iterator[Process]:
        return iter(self.looks.pop(0)[1])


def process(pid: int, parent: int = 1, group: int = 0, session: int = 0, mark: str = "") -> Process:
    """Make a process as a table shows it."""
    return Process(pid, parent, group or pid, session or pid, "", (mark,) if mark else ())


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Record signals instead of sending them."""
    signals: list[tuple[int, int]] = []
    monkeypatch.setattr(scan_tree.os, "kill", lambda pid, signal: signals.append((pid, signal)))
    return signals


@pytest.mark.parametrize(("branch", "marked"), [("3", {10}), (None, {10, 13})])
def test_members_are_marked_or_grouped_or_descended(
    sent: list[tuple[int, int]], branch: str | None, marked: set[int]
) -> None:
    """The mark, the session, the group and the parents tell a member; this process itself is never one."""
    listed = [
        process(12, parent=11),
        process(11, parent=10),
        process(10, mark="box.3"),
        process(13, mark="box.33"),
        process(14, mark="boxes.3"),
        process(20, group=99, session=7),
        process(21, group=7, session=99),
        process(31, parent=30),
        process(os.getpid(), parent=10),
    ]
    hunt = Hunt("box", branch, {7})

    assert hunt.stop(Census(Fake((listed, [process(15, parent=12), process(32, parent=31)]))))
    assert marked | {11, 12, 15, 20, 21} == set(hunt.caught)


def test_all_are_stopped_before_any_is_killed(sent: list[tuple[int, int]]) -> None:
    """Whoever was forked during a look is stopped too, before anyone can notice a death."""
    one, two, three = (process(pid, mark="x.1") for pid in (1, 2, 3))
    table = Fake(([], []), ([one], [two]), ([one, two, three], []), ([one, two, three], []))

    assert {1, 2, 3} == run(ScanTree("x", Census(table)).strike(None))
    assert [(1, SIGSTOP), (2, SIGSTOP), (3, SIGSTOP), (1, SIGKILL), (2, SIGKILL), (3, SIGKILL)] == sent


def test_nothing_is_believed_at_the_second_look(sent: list[tuple[int, int]]) -> None:
    """An empty tree takes two looks, for a process may be hard to see for a moment."""
    table = Fake(([], []), ([], []), ([], []))

    assert run(ScanTree("x", Census(table)).strike("1")) is None
    assert (1, []) == (len(table.looks), sent)


@pytest.mark.parametrize("table", [ProcTable(), PsTable()])
def test_tables_show_what_there_is(table: Table) -> None:
    """A process is seen with its parent, group, session and mark; one that came later is an arrival."""
    before = table.snapshot()
    with subprocess.Popen(["sleep", "60"], env=marker("box", "12"), start_new_session=True) as sleeper:
        try:
            expected = (sleeper.pid, os.getpid(), sleeper.pid, sleeper.pid, ("box.12",))
            deadline = time.monotonic() + 5
            while not (shown := table.snapshot()[sleeper.pid] or process(0)).marks and time.monotonic() < deadline:
                pass  # it is still between two programs
            arrivals = [process for process in table.arrivals(before) if process.pid == sleeper.pid]
        finally:
            sleeper.kill()

    assert expected == (*shown[:4], shown.marks)
    assert (isinstance(table, PsTable) or [shown]) == (isinstance(table, PsTable) or arrivals)


def test_bare_process_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without an environment may be between two programs: it is read once more, and only once."""
    reads: list[int] = []

    def read(pid: int) -> Process:
        reads.append(pid)
        return process(pid, mark="box.1")._replace(bare=pid == 7 or reads.count(pid) == 1)

    monkeypatch.setattr(process_table, "_process", read)
    monkeypatch.setattr(process_table, "_numbers", lambda: {7, 8})
    monkeypatch.setattr(process_table, "_newest", lambda: b"8")

    assert [7, 7, 8, 8] == sorted(found.pid for found in ProcTable().arrivals({}))
    assert [7, 7, 8, 8] == sorted(reads)


def test_many_share_a_look() -> None:
    """Whoever asks while somebody looks gets the next look, together with all others."""
    looks: list[int] = []
    looking = threading.Event()

    class Slow(Fake):
        def snapshot(self) -> Snapshot:
            looks.append(1)
            looking.set()
            time.sleep(0.05)
            return {}

    census = Census(Slow())
    threads = [threading.Thread(target=census.snapshot) for _ in range(10)]
    threads[0].start()
    looking.wait()
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join()

    assert 2 == len(looks)


def test_reused_number_is_not_killed() -> None:
    """A process that was born after the look is another one."""
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        try:
            found = ProcTable().snapshot()[sleeper.pid]
            assert found is not None
            scan_tree._signal(found._replace(born="1"), SIGKILL)
            assert sleeper.poll() is None
            scan_tree._signal(found, SIGKILL)
            assert -9 == sleeper.wait(5)
        finally:
            sleeper.kill()


def test_failing_ps_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty answer of a ps that failed is not taken for an empty sandbox."""
    (tmp_path / "ps").write_text("#!/bin/sh\necho broken >&2; exit 1\n")
    (tmp_path / "ps").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match="ps: broken"):
        run(ScanTree("x", Census(PsTable())).strike(None))


def test_every_process_counts_once() -> None:
    """Who is still dying at the next strike, or was forked in between, is counted, and counted once."""
    strikes: list[set[int] | None] = [{1, 2}, {2, 3}, set(), None]

    class Scripted(ScanTree):
        async def strike(self, branch: str | None) -> set[int] | None:
            return strikes.pop(0)

    assert 3 == run(extinguish(Scripted("x", Census(PsTable())), None, 5))


def test_what_cannot_be_killed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killing gives up at its limit, with the numbers of what is left."""

    class Stubborn(ScanTree):
        async def strike(self, branch: str | None) -> set[int] | None:
            return {4712, 4711}

    with pytest.raises(SandboxError, match=r"2 processes cannot be killed in 0.01 s: 4711, 4712"):
        run(extinguish(Stubborn("x", Census(PsTable())), None, 0.01))
