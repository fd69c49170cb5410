"""Process trees without cgroups: found by a mark in their environment, by session and group, and by descent.

What escapes: a process that has cleared its environment, made a session of its own and lost its parent, all three.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import partial
from signal import SIGCONT, SIGKILL, SIGSTOP, Signals
from typing import TYPE_CHECKING

from .process_table import REAP_SECONDS, Census, Process, born, marker
from .waiting import in_own_thread

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from subprocess import Popen

_ROUNDS = 50  # looks before the killing; whoever still forks then will be stopped in the next strike


class ScanTree:
    """A sandbox whose processes a *census* shows: they are stopped first, so that none can fork away, then killed."""

    def __init__(self, sandbox: str, census: Census) -> None:
        self.roots_reap = False
        self._sandbox = sandbox
        self._census = census
        self._count = 0
        self._spared: dict[int, float] = {}  # till when
        self._leaders: dict[str, int] = {}
        self._closed: set[str] = set()

    def open_branch(self) -> str:
        """Name a command."""
        self._count += 1
        return str(self._count)

    def prelude(self, branch: str) -> str:  # noqa: ARG002, RUF100
        """Return nothing to do: the mark is in the environment."""
        return ":"

    def variables(self, branch: str) -> Mapping[str, str]:
        """Return the mark."""
        return marker(self._sandbox, branch)

    def rooted(self, branch: str, process: Popen[bytes]) -> None:
        """Remember the session that *process* leads."""
        self._leaders[branch] = process.pid

    def close_branch(self, branch: str) -> None:
        """Forget the session if nobody is in it: once free, its number can become somebody else's."""
        self._spared.pop(self._leaders.get(branch, 0), None)
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
        leaders = {pid for name, pid in self._leaders.items() if branch in (None, name)}
        return await in_own_thread(partial(self._strike, branch, leaders))

    def sweep(self) -> None:
        """Forget the sessions of commands that have ended."""
        for branch in self._closed:
            self._leaders.pop(branch, None)
        self._closed.clear()

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _strike(self, branch: str | None, leaders: Collection[int]) -> set[int] | None:
        hunt = Hunt(self._sandbox, branch, leaders)
        blank = 0
        for _ in range(_ROUNDS):
            blank = 0 if hunt.stop(self._census) else blank + 1
            if blank == (1 if hunt.caught else 2):  # that nothing is left is believed at the second look only
                break
        for process in hunt.caught.values():
            _signal(process, SIGCONT if self._spares(process.pid, hunt.caught, leaders) else SIGKILL)
        return set(hunt.caught) or None

    def _spares(self, pid: int, caught: Collection[int], leaders: Collection[int]) -> bool:
        """Tell whether *pid* is a root that may live on for a while, to reap what is killed now."""
        if not self.roots_reap or pid not in leaders:
            return False
        if pid not in self._spared and any(other not in leaders for other in caught):
            self._spared[pid] = time.monotonic() + REAP_SECONDS
        return time.monotonic() < self._spared.get(pid, 0.0)


class Hunt:
    """One search for the processes of a sandbox or a branch: those found are stopped at once, lest they fork away."""

    def __init__(self, sandbox: str, branch: str | None, leaders: Collection[int]) -> None:
        self.caught: dict[int, Process] = {}
        self._prefix = f"{sandbox}." if branch is None else ""
        self._mark = f"{sandbox}.{branch}"
        self._leaders = leaders

    def stop(self, census: Census) -> bool:
        """Look once; return whether there was anybody new."""
        before = len(self.caught)
        snapshot = census.snapshot()
        children: dict[int, list[Process]] = {}
        for process in filter(None, snapshot.values()):
            children.setdefault(process.parent, []).append(process)
            self._consider(process)
        queue = list(self.caught)
        for pid in queue:
            queue.extend(child.pid for child in children.get(pid, ()) if self._consider(child))
        for process in census.arrivals(snapshot):
            self._consider(process)
        return len(self.caught) > before

    def _consider(self, process: Process) -> bool:
        """Stop *process* if it is one of those looked for, and was not found before."""
        if process.pid in self.caught or process.pid == os.getpid() or not self._wanted(process):
            return False
        self.caught[process.pid] = process
        _signal(process, SIGSTOP)
        return True

    def _wanted(self, process: Process) -> bool:
        return (
            process.session in self._leaders
            or process.group in self._leaders
            or process.parent in self.caught
            or self._mark in process.marks
            or (self._prefix != "" and any(mark.startswith(self._prefix) for mark in process.marks))
        )


def _signal(process: Process, signal: Signals) -> None:
    if not process.born or process.born == born(process.pid):
        with suppress(OSError):  # gone; or not ours to kill, and the next look finds it alive
            os.kill(process.pid, signal)
