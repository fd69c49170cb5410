"""Which processes there are on this machine, read from /proc or, where there is none, from ps."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Protocol

from agentcompass.core.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_VARIABLE = "AGENTCOMPASS_SANDBOX"  # what every process of a sandbox has in its environment: <sandbox>.<command>
_IN_ENVIRONMENT = re.compile(rb"(?<=\0)%s=([^\0]*)" % _VARIABLE.encode())
_IN_WORDS = re.compile(rb"(?<=\s)%s=(\S*)" % _VARIABLE.encode())
_KERNEL_THREAD = 0x00200000
REAP_SECONDS = 0.2  #: that a root gets to reap the command proper, before it is killed too
_CHASE_SECONDS = 0.1  # after which what still forks is not a few children but the machine's other work


def marker(sandbox: str, branch: str) -> Mapping[str, str]:
    """Return the variable that marks the processes of one command."""
    return {_VARIABLE: f"{sandbox}.{branch}"}


class Process(NamedTuple):
    """A live process (not a zombie) as a table shows it.

    *born* tells it from a later one with its number; *bare* says that it showed no environment at all.
    """

    pid: int
    parent: int
    group: int
    session: int
    born: str
    marks: tuple[str, ...]
    bare: bool = False


Snapshot = dict[int, Process | None]  #: all the numbers in use, with the live processes that have them


class Table(Protocol):
    """Where processes are read from; blocks."""

    def snapshot(self) -> Snapshot:
        """Read all processes, which takes long enough for some to come and go."""
        ...

    def arrivals(self, snapshot: Snapshot) -> Iterator[Process]:
        """Yield those that were forked since, each at once, until it is sure that there are no more."""
        ...


class Census:
    """A table read for many at once: whoever asks gets a snapshot that began after the question, perhaps shared."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._lock = Lock()
        self._began = 0.0
        self._latest: Snapshot = {}

    def snapshot(self) -> Snapshot:
        """Return what there is."""
        asked = time.monotonic()
        with self._lock:
            if self._began <= asked:
                self._began = time.monotonic()
                self._latest = self._table.snapshot()
            return self._latest

    def arrivals(self, snapshot: Snapshot) -> Iterator[Process]:
        """Yield what has come since *snapshot*."""
        return self._table.arrivals(snapshot)


class ProcTable:
    """The processes in /proc."""

    def snapshot(self) -> Snapshot:
        """Read every folder of a process."""
        return {pid: _process(pid) for pid in _numbers()}

    def arrivals(self, snapshot: Snapshot) -> Iterator[Process]:
        """List /proc until nothing was forked during a listing: a child may be born behind its place in it."""
        # while it executes a program, a process has no environment for a moment: the bare ones get a second look
        known = {pid for pid, process in snapshot.items() if process is None or not process.bare}
        doubted: set[int] = set()
        deadline = time.monotonic() + _CHASE_SECONDS
        settled = False
        while not settled and time.monotonic() < deadline:
            newest = _newest()
            settled = True
            for pid in _numbers() - known:
                process = _process(pid)
                if process is None or not process.bare or pid in doubted:
                    known.add(pid)
                else:
                    doubted.add(pid)
                    settled = False
                if process is not None:
                    yield process
            settled = settled and newest == _newest()


class PsTable:
    """The processes that ps shows, with the environment of one's own after the words of their commands."""

    def snapshot(self) -> Snapshot:
        """Run ps."""
        with_environment = ["-A", "-E", "-ww"] if sys.platform == "darwin" else ["axeww"]
        shown = subprocess.run(
            ["ps", *with_environment, "-o", "pid=,ppid=,pgid=,stat=,command="], capture_output=True, check=False
        )
        if shown.returncode:
            raise SandboxError(f"ps: {shown.stderr.decode(errors='replace').strip() or 'failed'}")
        found: Snapshot = {}
        for pid, parent, group, state, *command in (line.split(None, 4) for line in shown.stdout.splitlines()):
            if not state.startswith((b"Z", b"X")):
                marks = tuple(mark.decode(errors="replace") for text in command for mark in _IN_WORDS.findall(text))
                found[int(pid)] = Process(int(pid), int(parent), int(group), int(group), "", marks)
        return found

    def arrivals(self, snapshot: Snapshot) -> Iterator[Process]:  # noqa: ARG002, RUF100
        """Yield nothing: ps is too slow for a chase."""
        return iter(())


def born(pid: int) -> str | None:
    """Return the *born* of the process that has this number now."""
    try:
        return _stat(pid)[19]
    except (OSError, IndexError):
        return None


def is_ended(pid: int) -> bool:
    """Tell whether the process has ended, though its parent may not have taken note."""
    try:
        return _stat(pid)[0] in "ZX"
    except (OSError, IndexError):
        return True


def _process(pid: int) -> Process | None:
    try:
        state, parent, group, session, _, _, flags, *rest = _stat(pid)
    except (OSError, ValueError):
        return None
    if state in "ZX":
        return None
    marks: tuple[str, ...] = ()
    bare = False
    if not int(flags) & _KERNEL_THREAD:
        try:
            environment = _read(f"/proc/{pid}/environ")
        except OSError:  # another user's, or gone
            pass
        else:
            bare = not environment
            marks = tuple(mark.decode(errors="replace") for mark in _IN_ENVIRONMENT.findall(b"\0" + environment))
    return Process(pid, int(parent), int(group), int(session), rest[12], marks, bare)


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name, which may hold spaces and brackets: state, parent, ..."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].decode().split()


def _numbers() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdecimal()}


def _newest() -> bytes:
    """Return the number that was given to a process last."""
    return _read("/proc/loadavg").split()[-1]


def _read(path: str) -> bytes:
    # not open(): there are two files for each process of the machine, and it takes twice as long
    fd = os.open(path, os.O_RDONLY)
    try:
        parts = []
        while part := os.read(fd, 65536):
            parts.append(part)
    finally:
        os.close(fd)
    return b"".join(parts)
