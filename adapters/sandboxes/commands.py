"""The commands of one local sandbox, from their start to the end of the last process that they left."""

from __future__ import annotations

import asyncio
import errno
from contextlib import suppress
from typing import TYPE_CHECKING

from agentcompass.core.errors import SandboxError

from .child import Child
from .process_tree import ProcessTree, extinguish
from .waiting import to_the_end

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO

    from .capture import Capture

_GRACE = 0.2  # seconds that the pipes get to end after the command, before what comes later is dropped
_KILL_WITHIN = 1.5  # seconds to kill one command: the port allows two after a time-out
_KILL_ALL_WITHIN = 10.0
_MACHINE_FULL = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE}  # no fault of the command


class Commands:
    """Runs commands in the branches of one process tree, which *plant* makes for the first of them.

    *limits* is shell text that each command starts with.
    """

    def __init__(self, plant: Callable[[], ProcessTree], limits: str) -> None:
        self._plant = plant
        self._limits = limits
        self._tree: ProcessTree | None = None
        self._children: set[Child] = set()

    @property
    def used(self) -> bool:
        """Tell whether there was a command."""
        return self._tree is not None

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        stdin: bytes | IO[bytes] | None,
        timeout: float | None,
        out: Capture | IO[bytes],
        err: Capture,
    ) -> int | None:
        """Run a command and return its exit code, None when it was killed at *timeout*."""
        tree = self._tree = self._tree or self._plant()
        branch = tree.open_branch()
        try:
            if not argv:
                raise ValueError("the command is empty")  # noqa: TRY301  (reported like any other that cannot start)
            text = f'{tree.prelude(branch)}; {self._limits}; exec "$@"'
            marked = {**env, **tree.variables(branch)}
            child = Child(["/bin/sh", "-c", text, "sh", *argv], cwd=cwd, env=marked, stdin=stdin, out=out, err=err)
        except (OSError, ValueError) as error:
            tree.close_branch(branch)
            return _cannot_start(error, err)
        tree.rooted(branch, child.process)
        child.exited.add_done_callback(lambda _: tree.close_branch(branch))
        self._children.add(child)
        child.done.add_done_callback(lambda _: self._children.discard(child))
        return await _attend(tree, branch, child, timeout)

    async def kill(self) -> int:
        """Kill everything and return how many processes there were."""
        if self._tree is None:
            return 0
        count = await extinguish(self._tree, None, _KILL_ALL_WITHIN)
        self._tree.sweep()
        return count

    async def close(self) -> None:
        """Kill everything, and release pipes and tree."""
        if self._tree is None:
            return
        await self.kill()
        if self._children:
            await asyncio.wait({child.exited for child in self._children}, timeout=_KILL_WITHIN)
        for child in list(self._children):
            child.close()
        self._tree.close()


async def _attend(tree: ProcessTree, branch: str, child: Child, timeout: float | None) -> int | None:
    try:
        await asyncio.wait({child.exited}, timeout=timeout)
        timed_out = not child.exited.done()
        if timed_out:
            await to_the_end(extinguish(tree, branch, _KILL_WITHIN))
        await asyncio.wait({child.done}, timeout=_GRACE)
    except asyncio.CancelledError:
        with suppress(SandboxError):  # closing the sandbox tries again, and reports it
            await to_the_end(extinguish(tree, branch, _KILL_WITHIN))
        raise
    finally:
        child.forget()
    return None if timed_out else child.exited.result()


def _cannot_start(error: OSError | ValueError, err: Capture) -> int:
    """Say why on stderr and return the exit code, unless it is the machine that cannot."""
    if isinstance(error, OSError) and error.errno in _MACHINE_FULL:
        raise SandboxError(f"cannot start a process: {error}") from error
    err.feed(f"cannot start the command: {error}\n".encode(errors="replace"))
    return 127 if isinstance(error, FileNotFoundError) else 126
