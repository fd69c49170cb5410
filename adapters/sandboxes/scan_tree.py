"""Process trees without cgroups: found by a mark in their environment, by session and group, and by descent.

What escapes: a process that has cleared its environment, made a session of its own and lost its parent, all three.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from signal import SIGKILL, SIGSTOP, Signals
from typing import NamedTuple

from agentcompass.core.errors import SandboxError

from .waiting import in_own_thread

MARKER = "AGENTCOMPASS_SANDBOX"  #: the variable that every process of a sandbox has: <sandbox>.<command>

_ROUNDS = 50  # looks for processes that forked before they were stopped; more is a fork bomb, to be killed meanwhile


def marker(sandbox: str, branch: str) -> Mapping[str, str]:
    """Return the variable that marks the processes of one command."""
    return {MARKER: f"{sandbox}.{branch}"}


class Process(NamedTuple):
    """A live process (not a zombie) as a table shows it; *born* tells it from a later one with its id."""

    pid: int
    parent: int
    group: int
    session: int
    born: str
    marked: bool


Table = Callable[[bytes], list[Process]]  #: returns all processes; those with these bytes in their environment marked


class ScanTree:
    """A sandbox whose processes are looked for in *table*: stopped first, so that none can fork away, then killed."""

    def __init__(self, sandbox: str, table: Table) -> None:
        self._sandbox = sandbox
        self._table = table
        self._count = 0
        self._leaders: dict[str, int] = {}
        self._closed: set[str] = set()

    def open_branch(self) -> str:
        """Name a command."""
        self._count += 1
        return str(self._count)

    def prelude(self, branch: str) -> str:  # noqa: ARG002, RUF100
        """Return nothing: the mark is in the environment."""
        return ":"

    def variables(self, branch: str) -> Mapping[str, str]:
        """Return the mark."""
        return marker(self._sandbox, branch)

    def rooted(self, branch: str, process: subprocess.Popen[bytes]) -> None:
        """Remember the session that *process* leads."""
        self._leaders[branch] = process.pid

    def close_branch(self, branch: str) -> None:
        """Forget the session if nobody is in it: once free, its number can become somebody else's."""
        try:
            os.killpg(self._leaders[branch], 0)
        except (KeyError, ProcessLookupError):
            self._leaders.pop(branch, None)
        except PermissionError:
            self._closed.add(branch)
        else:
            self._closed.add(branch)

    async def strike(self, branch: str | None) -> set[int] | None:
        """Stop all, then kill all that were found."""
        needle = f"\0{MARKER}={self._sandbox}." + ("" if branch is None else f"{branch}\0")
        leaders = {pid for name, pid in self._leaders.items() if branch in (None, name)}
        return await in_own_thread(partial(_strike, self._table, needle.encode(), leaders))

    def sweep(self) -> None:
        """Forget the sessions of commands that have ended."""
        for branch in self._closed:
            self._leaders.pop(branch, None)
        self._closed.clear()

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _strike(table: Table, needle: bytes, leaders: Collection[int]) -> set[int] | None:
    caught: dict[int, Process] = {}
    blank = 0
    for _ in range(_ROUNDS):
        fresh = [process for process in _members(table(needle), leaders) if process.pid not in caught]
        _signal(fresh, SIGSTOP)
        caught.update((process.pid, process) for process in fresh)
        blank = 0 if fresh else blank + 1
        # a process shows no environment for a moment while it executes a program: never believe a single look
        if blank == 2:
            break
    _signal(caught.values(), SIGKILL)
    return set(caught) or None


def _members(processes: Iterable[Process], leaders: Collection[int]) -> list[Process]:
    children: dict[int, list[Process]] = {}
    found: dict[int, Process] = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process)
        if process.marked or process.session in leaders or process.group in leaders:
            found[process.pid] = process
    queue = list(found)
    for pid in queue:
        heirs = [child for child in children.get(pid, ()) if child.pid not in found]
        found.update((child.pid, child) for child in heirs)
        queue.extend(child.pid for child in heirs)
    found.pop(os.getpid(), None)
    return list(found.values())


def _signal(processes: Iterable[Process], signal: Signals) -> None:
    for process in processes:
        try:
            if not process.born or process.born == _stat(process.pid)[19]:
                os.kill(process.pid, signal)
        except OSError:  # gone; or not ours to kill, and the next look finds it alive
            continue


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name, which may hold spaces and brackets: state, parent, ..."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def _environment(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return b"\0" + file.read() + b"\0"
    except OSError:  # another user's
        return b""


def proc_table(needle: bytes) -> list[Process]:
    """Read /proc."""
    found = []
    for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        try:
            state, parent, group, session, *rest = _stat(pid)
        except (OSError, ValueError):
            continue
        if state not in "ZX":
            marked = needle in _environment(pid)
            found.append(Process(pid, int(parent), int(group), int(session), rest[15], marked))
    return found


def ps_table(needle: bytes) -> list[Process]:
    """Ask ps, where there is no /proc; it shows the environment of one's own processes, words split by blanks."""
    show_environment = ["-A", "-E", "-ww"] if sys.platform == "darwin" else ["axeww"]
    shown = subprocess.run(
        ["ps", *show_environment, "-o", "pid=,ppid=,pgid=,stat=,command="], capture_output=True, check=False
    )
    if shown.returncode:
        raise SandboxError(f"ps: {shown.stderr.decode(errors='replace').strip() or 'failed'}")
    word = needle.replace(b"\0", b" ")
    rows = [line.split(None, 4) for line in shown.stdout.splitlines()]
    found = []
    for pid, parent, group, state, *command in rows:
        if not state.startswith((b"Z", b"X")):
            marked = any(word in b" " + text.rstrip() + b" " for text in command)
            found.append(Process(int(pid), int(parent), int(group), int(group), "", marked))
    return found
