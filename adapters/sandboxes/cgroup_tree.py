"""Process trees in cgroups: a process cannot leave by forking, and the kernel kills all of them at once."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
import time
from contextlib import suppress
from signal import SIGKILL
from typing import TYPE_CHECKING

from agentcompass.core.errors import SandboxError

from .process_table import REAP_SECONDS, marker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from subprocess import Popen


def own_cgroup() -> str | None:
    """Return the folder of this process's own v2 cgroup, if cgroups can be made below it and killed whole."""
    if sys.platform != "linux":
        return None
    try:
        own = next(line[3:] for line in _lines("/proc/self/cgroup") if line.startswith("0::"))
        mounts = [line.split() for line in _lines("/proc/self/mounts")]
    except (OSError, StopIteration):
        return None
    # a hybrid machine has the v2 hierarchy at /sys/fs/cgroup/unified, others at /sys/fs/cgroup
    folders = [fields[1] + own.rstrip("/") for fields in mounts if fields[2] == "cgroup2"]
    return next(filter(_usable, folders), None)


def _usable(folder: str) -> bool:
    probe = f"{folder}/agentcompass-{secrets.token_hex(8)}"
    try:
        os.mkdir(probe)
    except OSError:
        return False
    try:
        # moving a process needs write access where the two cgroups meet; threaded cgroups take no whole processes
        return (
            os.access(f"{folder}/cgroup.procs", os.W_OK)
            and os.path.exists(f"{probe}/cgroup.kill")
            and list(_lines(f"{probe}/cgroup.type")) == ["domain"]
        )
    finally:
        os.rmdir(probe)


class CgroupTree:
    """A cgroup below *parent* for the sandbox, and one below that for each command; made when first needed."""

    def __init__(self, parent: str, sandbox: str) -> None:
        self.roots_reap = False
        self._parent = parent
        self._folder = f"{parent}/agentcompass-{sandbox}"
        self._sandbox = sandbox
        self._count = 0
        self._roots: dict[str, Popen[bytes]] = {}
        self._spared: dict[int, float] = {}  # till when

    def open_branch(self) -> str:
        """Make the cgroup of a command."""
        self._count += 1
        branch = str(self._count)
        try:
            os.makedirs(f"{self._folder}/{branch}")
        except OSError as error:
            raise SandboxError(f"cannot make a cgroup: {error}") from error
        return branch

    def prelude(self, branch: str) -> str:
        """Return the line with which the starting shell moves itself, before it can fork."""
        return f"echo 0 >{shlex.quote(f'{self._folder}/{branch}/cgroup.procs')} || exit 126"

    def variables(self, branch: str) -> Mapping[str, str]:
        """Return the mark, by which what a crash of ours left behind can be told."""
        return marker(self._sandbox, branch)

    def rooted(self, branch: str, process: Popen[bytes]) -> None:
        """Remember the root: until it has moved itself, it is in no cgroup of ours."""
        self._roots[branch] = process

    def close_branch(self, branch: str) -> None:
        """Forget the root, and remove the cgroup unless background processes are in it."""
        root = self._roots.pop(branch, None)
        if root is not None:
            self._spared.pop(root.pid, None)
        with suppress(OSError):  # busy
            os.rmdir(f"{self._folder}/{branch}")

    async def strike(self, branch: str | None) -> set[int] | None:
        """Let the kernel kill the cgroup, and kill the roots that have not moved yet."""
        folder = self._folder if branch is None else f"{self._folder}/{branch}"
        roots = [root for name, root in self._roots.items() if branch in (None, name) and _running(root)]
        if not roots and not _populated(folder):
            return None
        pids = {root.pid for root in roots}
        pids.update(int(line) for path in _cgroups(folder) for line in _lines(f"{path}/cgroup.procs", missing_ok=True))
        doomed = [root for root in roots if not self._spare(root, pids - {root.pid for root in roots})]
        _write(f"{folder}/cgroup.kill", "1")
        for root in doomed:
            root.send_signal(SIGKILL)
        return pids

    def _spare(self, root: Popen[bytes], others: set[int]) -> bool:
        """Take *root* out of the cgroup for a while if there are *others* for it to reap; tell whether it is out."""
        if self.roots_reap and others and root.pid not in self._spared:
            self._spared[root.pid] = time.monotonic() + REAP_SECONDS
            with suppress(OSError):
                _write(f"{self._parent}/cgroup.procs", str(root.pid))
        return time.monotonic() < self._spared.get(root.pid, 0.0)

    def sweep(self) -> None:
        """Remove the cgroups of commands that have ended."""
        if not os.path.isdir(self._folder):
            return
        for entry in list(os.scandir(self._folder)):
            if entry.is_dir() and entry.name not in self._roots:
                _remove(entry.path)

    def close(self) -> None:
        """Remove the cgroup of the sandbox."""
        _remove(self._folder)
        if os.path.isdir(self._folder):
            raise SandboxError(f"the cgroup {self._folder} cannot be removed")


def _cgroups(folder: str) -> Iterator[str]:
    """Yield *folder* and the cgroups in it, the inner ones first: a command may have made some."""
    return (path for path, _, _ in os.walk(folder, topdown=False))


def _remove(folder: str) -> None:
    with suppress(OSError):  # busy
        for path in _cgroups(folder):
            os.rmdir(path)


def _running(process: Popen[bytes]) -> bool:
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def _populated(folder: str) -> bool:
    return "populated 1" in _lines(f"{folder}/cgroup.events", missing_ok=True)


def _lines(path: str, *, missing_ok: bool = False) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().splitlines()
    except OSError:
        if missing_ok:
            return []
        raise


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except FileNotFoundError:
        pass
