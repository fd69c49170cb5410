"""The processes of a container as this machine's root sees them: exact, whatever is left of the container's files."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Protocol

from agentcompass.core.errors import SandboxError

from .process_table import Census, Process, born

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

KEEPER = "keeper"  #: the branch of what keeps a container alive
_KILL_WITHIN = 1.5  # seconds to kill one command: the port allows two after a time-out
_KILL_ALL_WITHIN = 10.0
_FREEZE_SECONDS = 0.3
_BIRTH_SECONDS = 2.0
_AT_ONCE = 200  # victims watched in one strike, each by an open file; the next strike finds the others
_REMOVE = """
import os, shutil, sys
os.chroot(sys.argv[1])
os.chdir("/")
path = sys.argv[2]
if os.path.isdir(path) and not os.path.islink(path):
    shutil.rmtree(path)
elif os.path.lexists(path):
    os.unlink(path)
"""
_CGROUPS = "/sys/fs/cgroup"


class Reach(Protocol):
    """A way to the processes of one container; every method blocks and may raise `SandboxError`."""

    def watch(self, pid: int) -> int | None:
        """Return a descriptor that becomes readable when process *pid* of the engine's machine ends, if that can be."""
        ...

    def kill(self, branch: str | None) -> int:
        """Kill all of a command, or of the whole sandbox, until nothing is left; return how many there were."""
        ...

    def held_pipes(self, branch: str, pid: int) -> Sequence[int]:
        """Open the output pipes that processes of *branch*, whose root was *pid*, still hold, for reading."""
        ...

    def oom_kills(self) -> int:
        """Return how often a process was killed for want of memory."""
        ...

    def host_pid(self) -> int | None:
        """Return the number of the first process on this machine; None if it runs on another."""
        ...

    def remove(self, path: str) -> bool:
        """Remove the file or tree *path* without a program of the container; return whether that was possible."""
        ...


class HostReach:
    """Finds processes by the container's cgroup, and kills them while all of it is frozen, so that none gets away.

    *sandbox* is the mark in their environments. One that has cleared its environment, left its session and lost its
    parent still dies with the sandbox, but not with its command. The cgroup's first process, and the child by which
    it keeps waiting, are spared.
    """

    def __init__(self, sandbox: str, init: int, census: Census) -> None:
        self._sandbox = sandbox
        self._init = init
        self._census = census
        self._lock = Lock()
        self._cgroups = _cgroups_of(init)
        self._keeper: Process | None = None
        self._keep(self._members())

    def watch(self, pid: int) -> int | None:
        """Return a descriptor of process *pid* if it is one of this sandbox."""
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            return None
        if pid in self._numbers():
            return fd
        os.close(fd)
        return None

    def kill(self, branch: str | None) -> int:
        """Freeze, kill and wait, until a look shows nobody."""
        within = _KILL_ALL_WITHIN if branch is None else _KILL_WITHIN
        deadline = time.monotonic() + within
        seen: set[tuple[int, str]] = set()
        while victims := self._strike(branch, deadline):
            seen |= {(victim.pid, victim.born) for victim in victims}
            if time.monotonic() > deadline:
                names = ", ".join(str(victim.pid) for victim in victims[:20])
                raise SandboxError(f"{len(victims)} processes cannot be killed in {within:g} s: {names}")
        return len(seen)

    def held_pipes(self, branch: str, pid: int) -> Sequence[int]:
        """Open those pipes of the branch the other end of which the container's shim has."""
        members = self._members()
        root = members.get(self._init)
        theirs = set(_pipes(root.parent)) if root is not None else set()
        opened: dict[str, int] = {}
        for process in _of_branch(members, f"{self._sandbox}.{branch}", pid):
            for link, path in _pipes(process.pid, writable=True).items():
                if link in theirs and link not in opened:
                    with suppress(OSError):
                        opened[link] = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        return list(opened.values())

    def oom_kills(self) -> int:
        """Read the cgroup's counter."""
        for path in self._cgroups.memory:
            for line in _lines(path):
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
        return 0

    def host_pid(self) -> int | None:
        """Return the number of the first process."""
        return self._init

    def remove(self, path: str) -> bool:
        """Remove it as a process of this machine that has the container's root."""
        words = [sys.executable, "-I", "-S", "-c", _REMOVE, f"/proc/{self._init}/root", path]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return done.returncode == 0

    def _strike(self, branch: str | None, deadline: float) -> list[Process]:
        """Kill those who are there now and wait for their ends; return who was there."""
        with self._lock:
            with self._frozen():
                members = self._members()
                victims = self._victims(members, branch)
                watched = [fd for victim in victims if (fd := _kill(victim, len(victims))) is not None]
            try:
                for fd in watched:
                    _await(fd, deadline)
            finally:
                for fd in watched:
                    os.close(fd)
        return victims

    def _victims(self, members: Mapping[int, Process], branch: str | None) -> list[Process]:
        if branch is not None:
            return _of_branch(members, f"{self._sandbox}.{branch}", 0)
        self._keep(members)
        spared = {self._init, self._keeper.pid if self._keeper else 0}
        return [process for pid, process in members.items() if pid not in spared]

    def _keep(self, members: Mapping[int, Process]) -> None:
        """Remember the child by which the first process waits; there is one, and another if it was killed."""
        if self._keeper is not None and members.get(self._keeper.pid) == self._keeper:
            return
        mark = f"{self._sandbox}.{KEEPER}"
        waiting = [p for p in members.values() if p.parent == self._init and p.marks == (mark,)]
        self._keeper = min(waiting, key=lambda process: int(process.born), default=None)

    def _members(self) -> dict[int, Process]:
        """Return the live processes of the container."""
        snapshot = self._census.snapshot()
        return {pid: process for pid in self._numbers() if (process := snapshot.get(pid)) is not None}

    def _numbers(self) -> set[int]:
        return {
            int(line)
            for folder, _, _ in os.walk(self._cgroups.processes)
            for line in _lines(f"{folder}/cgroup.procs")
            if line.isdecimal()
        }

    @contextmanager
    def _frozen(self) -> Iterator[None]:
        """Halt the container; where that fails its processes are killed on the run."""
        freezer = self._cgroups.freezer
        try:
            if freezer is not None:
                _freeze(freezer)
            yield
        finally:
            if freezer is not None:
                with suppress(OSError):
                    _write(freezer.switch, freezer.off)


class _Freezer(NamedTuple):
    switch: str
    on: str
    off: str
    shown: str
    done: str


class _Cgroups(NamedTuple):
    processes: str
    memory: Sequence[str]
    freezer: _Freezer | None


def _cgroups_of(pid: int) -> _Cgroups:
    """Return the folders and files of the cgroups of process *pid*, of either version.

    Raises:
        SandboxError: it has none of its own.
    """
    paths: dict[str, str] = {}
    for line in _lines(f"/proc/{pid}/cgroup"):
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    unified = f"{_CGROUPS}{paths.get('', '/')}"
    if "freezer" in paths and os.path.exists(f"{_CGROUPS}/freezer{paths['freezer']}/cgroup.procs"):
        folder = f"{_CGROUPS}/freezer{paths['freezer']}"
        state = f"{folder}/freezer.state"
        memory = f"{_CGROUPS}/memory{paths.get('memory', '/')}/memory.oom_control"
        found = _Cgroups(folder, [memory], _Freezer(state, "FROZEN", "THAWED", state, "FROZEN"))
    elif os.path.exists(f"{unified}/cgroup.freeze"):
        freezer = _Freezer(f"{unified}/cgroup.freeze", "1", "0", f"{unified}/cgroup.events", "frozen 1")
        found = _Cgroups(unified, [f"{unified}/memory.events"], freezer)
    else:
        raise SandboxError(f"process {pid} has no cgroup of its own")
    if set(_lines(f"{found.processes}/cgroup.procs")) >= {str(os.getpid())}:
        raise SandboxError(f"process {pid} shares our cgroup")
    return found


def is_reachable(sandbox: str, pid: int) -> bool:
    """Tell whether process *pid*, as the engine numbers it, is the keeper of *sandbox* here too, and ours to kill."""
    if pid <= 0 or os.geteuid() != 0 or not hasattr(os, "pidfd_open"):
        return False
    mark, deadline = f"{sandbox}.{KEEPER}".encode(), time.monotonic() + _BIRTH_SECONDS
    try:
        while mark not in (shown := _bytes(f"/proc/{pid}/environ")):
            is_early = not shown or _bytes(f"/proc/{pid}/comm").startswith(b"runc")  # its program is not executed yet
            if not is_early or time.monotonic() > deadline:
                return False
            time.sleep(0.001)
        os.close(os.pidfd_open(pid))
        _cgroups_of(pid)
    except (OSError, SandboxError, ValueError):
        return False
    return True


def _of_branch(members: Mapping[int, Process], mark: str, root: int) -> list[Process]:
    """Return the processes with *mark*, those in their sessions and groups, and what descends from either."""
    chosen = {pid for pid, process in members.items() if mark in process.marks}
    # a session is a command's alone: the engine starts each in one of its own
    homes = {members[pid].session for pid in chosen if members[pid].session in chosen} | ({root} if root else set())
    chosen |= {p.pid for p in members.values() if p.session in homes or p.group in homes}
    grown = True
    while grown:
        more = {pid for pid, process in members.items() if process.parent in chosen} - chosen
        chosen |= more
        grown = bool(more)
    return [members[pid] for pid in chosen]


def _kill(victim: Process, count: int) -> int | None:
    """Kill *victim* and return a descriptor to wait for its end with, unless there are too many of them."""
    try:
        fd = os.pidfd_open(victim.pid)
    except OSError:  # it has ended, or we have no descriptors left
        if born(victim.pid) == victim.born:
            with suppress(OSError):
                os.kill(victim.pid, signal.SIGKILL)
        return None
    if born(victim.pid) == victim.born:
        with suppress(OSError):
            signal.pidfd_send_signal(fd, signal.SIGKILL)
    if count <= _AT_ONCE:
        return fd
    os.close(fd)
    return None


def _await(fd: int, deadline: float) -> None:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    poller.poll(max(deadline - time.monotonic(), 0.01) * 1000)


def _freeze(freezer: _Freezer) -> None:
    deadline = time.monotonic() + _FREEZE_SECONDS
    with suppress(OSError):
        _write(freezer.switch, freezer.on)
        while freezer.done not in _lines(freezer.shown) and time.monotonic() < deadline:
            time.sleep(0.001)


def _pipes(pid: int, writable: bool = False) -> dict[str, str]:
    """Return the pipes that process *pid* has open (for writing only), by what they are."""
    found: dict[str, str] = {}
    folder = f"/proc/{pid}/fd"
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                path = f"{folder}/{name}"
                link = os.readlink(path)
                # the link's own mode is that in which the file was opened
                if link.startswith("pipe:") and not (writable and os.lstat(path).st_mode & 0o400):
                    found[link] = path
    return found


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _lines(path: str) -> Collection[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return ()


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
