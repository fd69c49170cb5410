"""The sandbox `host_process`: a private folder, a scrubbed environment, and processes that die together."""

from __future__ import annotations

import asyncio
import os
import resource
from typing import TYPE_CHECKING

from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.environment import Capabilities, EnvironmentSpec
from agentcompass.ports.environment import unrecorded

from . import local_leftovers
from .files import remove_skeleton
from .local_session import LocalSession
from .process_tree import ProcessTree, TreeMaker, choose_tree
from .refusals import require_possible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentcompass.core.model.environment import Leftover
    from agentcompass.ports.environment import Record

_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ")  # of our environment; everything else may be a key
_FOLDERS = ("work", "home", "tmp")
_MIB = 1024 * 1024


class HostProcessProvider:
    """Runs commands as processes of this machine and this user.

    It isolates no files and no network: absolute paths are the machine's own, and a command can do whatever this
    process can. Each sandbox has a working folder, HOME and TMPDIR of its own (removed at its end) and an environment
    without this machine's keys; and all of its processes are found and killed.

    *root* is where private folders are made (else the folder for temporary files). The variables *inherit* of this
    process are let through to every sandbox. *memory_mb* bounds the address space of a process, *file_mb* the size of
    a file that it writes, *open_files* their number; core dumps are always off. *make_tree* overrides the choice of
    how processes are found.
    """

    capabilities = Capabilities()

    def __init__(
        self,
        *,
        root: str | None = None,
        inherit: Sequence[str] = (),
        memory_mb: int | None = None,
        file_mb: int | None = None,
        open_files: int | None = None,
        make_tree: TreeMaker | None = None,
    ) -> None:
        self._root = root
        self._inherited = (*_INHERITED, *inherit)
        self._limits = _limits(memory_mb, file_mb, open_files)
        self._make_tree = make_tree

    async def open(self, spec: EnvironmentSpec, record: Record = unrecorded) -> LocalSession:
        """Decide where everything will be; the first use makes the private folder, the first command what it needs."""
        require_possible(spec)
        name = local_leftovers.new_id()
        private = local_leftovers.place(self._root, name)

        def make() -> None:
            record({"id": name, "folder": private})
            self._make(private, spec.workdir, spec.labels)

        return LocalSession(
            private=private,
            folders=_FOLDERS,
            workdir=_workdir(private, spec.workdir),
            variables={**self._variables(private), **spec.env},
            limits=self._limits,
            make=make,
            plant=lambda: self._plant(private, name),
        )

    async def leftovers(self) -> Sequence[Leftover]:
        """Return the private folders that there are."""
        return await asyncio.to_thread(local_leftovers.find, "host_process", self._root)

    async def release(self, recorded: Mapping[str, str]) -> None:
        """Kill what bears the mark of the sandbox, and remove its folder."""
        await local_leftovers.release(self._root, recorded)

    async def check(self) -> str:
        """Say which isolation holds here."""
        try:
            probe = local_leftovers.place(self._root, local_leftovers.new_id())
            self._make(probe, None, {})
            remove_skeleton(probe, _FOLDERS)
        except SandboxError as error:
            raise UsageError("root", str(error), "name a folder in which folders can be made") from error
        if not os.access("/bin/sh", os.X_OK):
            raise UsageError("host_process", "there is no /bin/sh here", "use another sandbox")
        return f"processes on this machine, its files and its network open to them; {choose_tree()[1]}"

    def _plant(self, private: str, name: str) -> ProcessTree:
        """Make what the commands of a sandbox need, before the first one."""
        try:
            for folder in _FOLDERS:
                os.makedirs(f"{private}/{folder}", exist_ok=True)
        except OSError as error:
            raise SandboxError(f"host_process cannot make folders in {private}: {error.strerror}") from error
        if self._make_tree is None:
            self._make_tree = choose_tree()[0]
        return self._make_tree(name)

    def _make(self, private: str, workdir: str | None, labels: Mapping[str, str]) -> None:
        """Make the private folder with its working folder."""
        root = os.path.dirname(private)
        try:
            os.makedirs(root, exist_ok=True)
            os.mkdir(private, 0o700)
            local_leftovers.write_labels(private, labels)
            os.mkdir(f"{private}/work")
            if workdir is not None and not os.path.isabs(workdir):
                os.makedirs(f"{private}/work/{workdir}", exist_ok=True)
        except OSError as error:
            local_leftovers.remove_unused(private, _FOLDERS)
            raise SandboxError(f"host_process cannot make folders in {root}: {error.strerror}") from error

    def _variables(self, private: str) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in self._inherited if name in os.environ}
        return {"PATH": os.defpath, **inherited, "HOME": f"{private}/home", "TMPDIR": f"{private}/tmp"}  # noqa: S108


def _workdir(private: str, wanted: str | None) -> str:
    """Return the working folder: the private one, a folder in it, or one of the machine's that must be there."""
    workdir = os.path.join(private, "work", wanted or "").rstrip("/")
    if wanted is not None and os.path.isabs(wanted) and not os.path.isdir(workdir):
        raise UsageError("workdir", f"{wanted!r} is no folder of this machine", "make it, or use a relative path")
    return workdir


def _limits(memory_mb: int | None, file_mb: int | None, open_files: int | None) -> str:
    """Return the shell text that sets the limits; a limit that cannot be set keeps the command from starting."""
    wanted = (
        ("v", resource.RLIMIT_AS, memory_mb, _MIB, 1024),
        ("f", resource.RLIMIT_FSIZE, file_mb, _MIB, 512),
        ("n", resource.RLIMIT_NOFILE, open_files, 1, 1),
    )
    lines = ["ulimit -c 0"]
    for letter, kind, value, scale, unit in wanted:
        if value is not None:
            hard = resource.getrlimit(kind)[1]
            # only a privileged process may raise a hard limit, and a stricter one serves as well
            size = value * scale if hard == resource.RLIM_INFINITY else min(value * scale, hard)
            lines.append(f"ulimit -{letter} {size // unit} || exit 126")
    return "; ".join(lines)
