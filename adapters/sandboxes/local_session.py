"""One open sandbox of `host_process`: its folder, its commands, its end."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import contextmanager
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.environment import CAPTURE_LIMIT, ExecResult

from . import files
from .archive import Stopped, copy
from .capture import Capture
from .commands import Commands
from .guard import Guard
from .local_leftovers import remove_unused
from .refusals import require_names, require_own_user, require_public
from .waiting import to_the_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from agentcompass.core.model.environment import TransferLimits
    from agentcompass.core.model.network import NetworkPolicy

    from .process_tree import ProcessTree

T = TypeVar("T")


class LocalSession:
    """A private folder on this machine, and a tree of processes once there is a command.

    When a command has ended but something in the background holds its output open, `exec` returns after a short
    grace; what is written later is read and dropped, so that the writer neither blocks nor dies. A copy that is
    cancelled stops at once and leaves what it has copied.
    """

    def __init__(
        self,
        *,
        private: str,
        folders: Sequence[str],
        workdir: str,
        variables: Mapping[str, str],
        limits: str,
        make: Callable[[], None],
        plant: Callable[[], ProcessTree],
    ) -> None:
        self._private = private
        self._folders = folders
        self._workdir = workdir
        self._variables = variables
        self._make, self._made = make, False
        self._making: asyncio.Future[None] | None = None
        self._commands = Commands(plant, limits)
        self._jobs: dict[asyncio.Task[Any], Event] = {}
        self._closed = False
        self._released = False
        self._closing: asyncio.Task[None] | None = None

    @property
    def workdir(self) -> str:
        """The folder in which commands run unless they say otherwise."""
        return self._workdir

    @property
    def facts(self) -> Mapping[str, str]:
        """Nothing: the system is this machine's, which the run's record names."""
        return {}

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        timeout: float | None = None,
        user: str | None = None,
        output_limit: int = CAPTURE_LIMIT,
        stdout_file: str | None = None,
    ) -> ExecResult:
        """Run *command* as the port says; a *user* is refused."""
        self._require_open()
        require_own_user(user)
        require_names(env or {})
        await self._ready()
        began = time.monotonic()
        with _output_file(stdout_file) as file:
            out, err = Capture(output_limit, file), Capture(output_limit)
            code = await self._commands.run(
                ["/bin/sh", "-c", command] if isinstance(command, str) else command,
                cwd=self._path(cwd or ""),
                env={**self._variables, **(env or {})},
                stdin=stdin,
                timeout=timeout,
                out=out,
                err=err,
            )
            if out.file_error is not None:
                raise SandboxError(f"cannot write {stdout_file}: {out.file_error}") from out.file_error
        seconds = time.monotonic() - began
        return ExecResult(code, out.value(), err.value(), out.size, err.size, code is None, seconds)

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write *data* to *path* in one step."""
        await self._job(f"write {path}", partial(files.write_file, self._path(path), data, mode))

    async def read_file(self, path: str, *, limit: int = 16 * 1024 * 1024) -> bytes | None:
        """Return the bytes of the regular file *path*, or of the one that it links to."""
        return await self._job(f"read {path}", partial(files.read_file, self._path(path), limit))

    async def upload(self, source: str, target: str) -> None:
        """Copy *source* of this machine to *target*; a link at *target* is replaced, not followed."""
        await self._copy(source, self._path(target))

    async def download(
        self, source: str, target: str, *, exclude: Sequence[str] = (), limits: TransferLimits | None = None
    ) -> Sequence[str]:
        """Copy *source* of the sandbox to *target* on this machine."""
        guard = Guard(exclude, limits)
        await self._copy(self._path(source), files.resolved(target), guard)
        return guard.refused

    async def remove(self, path: str) -> None:
        """Remove the file or tree *path* of the private folder; nothing else of the machine is ever removed."""
        place = files.place(self._path(path))
        if not place.startswith(f"{self._private}/"):
            raise UsageError("remove", f"{place} is not in the sandbox", "name something in its own folder")
        await self._job(f"remove {path}", partial(files.clear_way, place))

    async def kill_all(self) -> int:
        """Kill every process that a command left or still is."""
        return await to_the_end(self._commands.kill())

    async def set_network(self, policy: NetworkPolicy) -> None:
        """Accept the public network, the only one there is."""
        require_public(policy)

    async def close(self) -> None:
        """Kill what runs and remove the private folder."""
        self._closed = True
        if self._making is not None:
            await asyncio.wait({self._making})
        if self._released:
            return
        if not self._made:
            self._released = True
            return
        if not (self._commands.used or self._jobs) and remove_unused(self._private, self._folders):
            self._released = True
            return
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._release())
        await to_the_end(self._closing)

    async def _release(self) -> None:
        try:
            for stop in self._jobs.values():
                stop.set()
            await self._commands.close()
            if self._jobs:
                await asyncio.wait(self._jobs)
            with files.sandbox_errors(f"remove {self._private}"):
                await asyncio.to_thread(files.remove_tree, self._private)
            self._released = True
        finally:
            self._closing = None  # after a failure, closing again tries again

    async def _copy(self, source: str, target: str, guard: Guard | None = None) -> None:
        origin, stop = files.resolved(source), Event()
        if not files.exists(origin):
            raise FileNotFoundError(f"there is no {source}")
        try:
            await self._job(f"copy {source} to {target}", partial(copy, origin, target, stop, guard), stop)
        except Stopped:
            raise SandboxError(f"copying {source} was stopped: the sandbox is closed") from None

    async def _job(self, doing: str, work: Callable[[], T], stop: Event | None = None) -> T:
        """Call *work* in a thread, which neither a cancellation nor closing leaves behind."""
        await self._ready()
        stop = stop or Event()
        task = asyncio.ensure_future(asyncio.to_thread(work))
        self._jobs[task] = stop
        task.add_done_callback(self._jobs.pop)
        with files.sandbox_errors(doing):
            return await to_the_end(task, stop.set)

    def _path(self, path: str) -> str:
        if "\0" in path:
            raise UsageError("path", f"{path!r} holds a null byte", "leave it out")
        return os.path.join(self._workdir, path).rstrip("/") or "/"

    async def _ready(self) -> None:
        """Make the private folder at the first use, in a thread: that is recorded on a disk."""
        self._require_open()
        if not self._made:
            if self._making is None:
                self._making = asyncio.ensure_future(asyncio.to_thread(self._make))
                self._making.add_done_callback(self._note_made)
            await to_the_end(self._making)
            self._require_open()

    def _note_made(self, making: asyncio.Future[None]) -> None:
        self._made = not making.cancelled() and making.exception() is None
        self._making = None  # after a failure, the next use tries again

    def _require_open(self) -> None:
        if self._closed:
            raise SandboxError("the sandbox is closed")


@contextmanager
def _output_file(path: str | None) -> Iterator[BinaryIO | None]:
    if path is None:
        yield None
        return
    with files.sandbox_errors(f"write {path}"):
        file = open(path, "wb")  # noqa: SIM115, RUF100  (the body's errors are not the file's)
    try:
        yield file
    finally:
        with files.sandbox_errors(f"write {path}"):
            file.close()
