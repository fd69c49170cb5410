"""Tests of process trees: how the way of killing is chosen, and what is recognised as a sandbox's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from contracts.environment_tools import run

from agentcompass.adapters.sandboxes import cgroup_tree, process_tree, scan_tree
from agentcompass.adapters.sandboxes.cgroup_tree import CgroupTree, own_cgroup
from agentcompass.adapters.sandboxes.process_tree import choose_tree, extinguish
from agentcompass.adapters.sandboxes.scan_tree import Process, ScanTree, _members, proc_table, ps_table
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


def test_members_are_marked_or_grouped_or_descended() -> None:
    """The mark, the session, the group and the parents tell a member; this process itself is never one."""

    def process(pid: int, parent: int, group: int, session: int, *, marked: bool = False) -> Process:
        return Process(pid, parent, group, session, "", marked)

    processes = [
        process(1, 0, 1, 1),
        process(10, 1, 10, 10, marked=True),
        process(11, 10, 11, 11),
        process(12, 11, 12, 12),
        process(20, 1, 99, 7),
        process(21, 1, 7, 99),
        process(30, 1, 30, 30),
        process(31, 30, 30, 30),
        process(os.getpid(), 10, 5, 5),
    ]
    assert {10, 11, 12, 20, 21} == {found.pid for found in _members(processes, {7})}


def test_all_are_stopped_before_any_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was forked during the first look is stopped too, before anyone can notice a death."""
    looks = iter([[], [1, 2], [1, 2, 3], [1, 2, 3], [1, 2, 3]])
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(scan_tree.os, "kill", lambda pid, signal: sent.append((pid, signal)))

    def table(needle: bytes) -> list[Process]:
        return [Process(pid, 0, pid, pid, "", marked=True) for pid in next(looks)]

    assert {1, 2, 3} == run(ScanTree("x", table).strike(None))
    stop, kill = scan_tree.SIGSTOP, scan_tree.SIGKILL
    assert [(1, stop), (2, stop), (3, stop), (1, kill), (2, kill), (3, kill)] == sent


@pytest.mark.parametrize("table", [proc_table, ps_table])
def test_tables_see_marks_exactly(table: scan_tree.Table) -> None:
    """Command 1 is not command 12, and a sandbox is told by the beginning of its marks."""
    tree = ScanTree("sandbox", table)
    with subprocess.Popen(["sleep", "60"], env={**tree.variables("12"), "X": "1"}, start_new_session=True) as sleeper:
        try:
            needles = [b"\0AGENTCOMPASS_SANDBOX=sandbox." + rest for rest in (b"", b"12\0", b"1\0")]
            seen = [[process for process in table(needle) if process.pid == sleeper.pid] for needle in needles]
        finally:
            sleeper.kill()

    assert [[True], [True], [False]] == [[process.marked for process in found] for found in seen]
    assert (os.getpid(), sleeper.pid, sleeper.pid) == seen[0][0][1:4]


def test_reused_number_is_not_killed() -> None:
    """A process that was born after the look is another one."""
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        try:
            (found,) = [process for process in proc_table(b"none") if process.pid == sleeper.pid]
            scan_tree._signal([found._replace(born="1")], scan_tree.SIGKILL)
            assert sleeper.poll() is None
            scan_tree._signal([found], scan_tree.SIGKILL)
            assert -9 == sleeper.wait(5)
        finally:
            sleeper.kill()


def test_failing_ps_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty answer of a ps that failed is not taken for an empty sandbox."""
    (tmp_path / "ps").write_text("#!/bin/sh\necho broken >&2; exit 1\n")
    (tmp_path / "ps").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match="ps: broken"):
        run(ScanTree("x", ps_table).strike(None))


def test_what_cannot_be_killed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killing gives up at its limit, with the numbers of what is left."""

    class Stubborn(ScanTree):
        async def strike(self, branch: str | None) -> set[int] | None:
            return {4712, 4711}

    with pytest.raises(SandboxError, match=r"cannot be killed after 0.01 s: 4711, 4712"):
        run(extinguish(Stubborn("x", proc_table), None, 0.01))
