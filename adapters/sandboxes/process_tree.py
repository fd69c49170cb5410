"""All the processes of one sandbox: how they are told from others, and killed without exception."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from agentcompass.core.errors import SandboxError

from .cgroup_tree import CgroupTree, own_cgroup
from .process_table import Census, ProcTable, PsTable, Table
from .scan_tree import ScanTree

if TYPE_CHECKING:
    from subprocess import Popen


class ProcessTree(Protocol):
    """The processes of one sandbox, in a branch for each command.

    *roots_reap*: the root of a branch only waits for the command proper, which nobody else would reap; so it is left
    alone for `REAP_SECONDS` while the rest is killed.
    """

    roots_reap: bool

    def open_branch(self) -> str:
        """Make a branch for a command that is about to start, and return its name."""
        ...

    def prelude(self, branch: str) -> str:
        """Return shell text that puts the shell which runs it into *branch*."""
        ...

    def variables(self, branch: str) -> Mapping[str, str]:
        """Return the variables by which the processes of *branch* can be found."""
        ...

    def rooted(self, branch: str, process: Popen[bytes]) -> None:
        """Take *process* as the root of *branch*: a child of ours that is not reaped yet."""
        ...

    def close_branch(self, branch: str) -> None:
        """Note that there is no root (any more), and give the branch up if nothing else is in it."""
        ...

    async def strike(self, branch: str | None) -> set[int] | None:
        """Send SIGKILL once to all of *branch* (or of the tree); return who was there, None when it is empty."""
        ...

    def sweep(self) -> None:
        """Give up the closed branches after all in them were killed."""
        ...

    def close(self) -> None:
        """Release what the tree itself holds, after all in it were killed."""
        ...


async def extinguish(tree: ProcessTree, branch: str | None, within: float) -> int:
    """Kill until nothing of *branch* is left, and return how many processes that were.

    Raises:
        SandboxError: something is still alive after *within* seconds.
    """
    clock = asyncio.get_running_loop().time
    deadline = clock() + within
    seen: set[int] = set()
    pause = 0.001
    while (alive := await tree.strike(branch)) is not None:
        seen |= alive
        if clock() > deadline:
            names = ", ".join(map(str, sorted(alive)[:20]))
            raise SandboxError(f"{len(alive)} processes cannot be killed in {within:g} s: {names}")
        await asyncio.sleep(pause)
        pause = min(2 * pause, 0.05)
    return len(seen)


TreeMaker = Callable[[str], ProcessTree]  #: makes the tree of the sandbox with this id


def choose_tree() -> tuple[TreeMaker, str]:
    """Return the best way to kill trees on this machine, and what to call it."""
    parent = own_cgroup()
    if parent is not None:
        return lambda sandbox: CgroupTree(parent, sandbox), "trees are killed through cgroups"
    if os.path.exists("/proc/self/environ"):
        return scanning(ProcTable()), "trees are killed by process group and environment scan"
    return scanning(PsTable()), "trees are killed by process group and what ps shows"


def scanning(table: Table) -> TreeMaker:
    """Return a maker of trees that share their looks at *table*: many commands time out at once."""
    census = Census(table)
    return lambda sandbox: ScanTree(sandbox, census)
