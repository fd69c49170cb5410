"""One open sandbox of `docker`: a container, its commands, its files, its end."""

from __future__ import annotations

import asyncio
import posixpath
import time
from contextlib import contextmanager, suppress
from functools import partial
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.environment import CAPTURE_LIMIT, ExecResult

from .archive import Stopped
from .docker_client import engine_errors
from .docker_exec import Command, Order
from .docker_network import require_mode
from .files import resolved, sandbox_errors
from .guard import Guard
from .process_table import marker
from .refusals import require_names
from .waiting import in_own_thread, to_the_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from agentcompass.core.model.environment import TransferLimits
    from agentcompass.core.model.network import NetworkMode, NetworkPolicy

    from .docker_files import Files
    from .docker_network import Network
    from .docker_reach import Reach

T = TypeVar("T")

_KILLED = 137  # how a command ends that the kernel kills


class DockerSession:
    """A running container.

    When a command has ended but something in the background holds its output open, `exec` returns after a short
    grace; what is written later is read and dropped. If a process was killed for want of memory while a command ran,
    a line on its stderr says so: "agentcompass: the memory limit of N MiB was reached; a process was killed".
    """

    def __init__(
        self,
        api: Any,
        *,
        name: str,
        container: str,
        workdir: str,
        image: str,
        memory_mb: int | None,
        modes: frozenset[NetworkMode],
        reach: Reach,
        files: Files,
        network: Network,
        remove: Callable[[], None],
    ) -> None:
        self._api = api
        self._name = name
        self._container = container
        self._workdir = workdir
        self._image = image
        self._memory_mb = memory_mb
        self._modes = modes
        self._reach = reach
        self._files = files
        self._network = network
        self._remove = remove
        self._count = 0
        self._oom_seen = 0
        self._lock = Lock()
        self._commands: set[Command] = set()
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
        """The digest of the image."""
        return {"image": self._image}

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
        """Run *command* as the port says; a *user* is one of the container's."""
        self._require_open()
        require_names(env or {})
        self._count += 1
        branch = f"{self._count}x"  # the letter ends it: the mark of one is not to begin with that of another
        began = time.monotonic()
        with _output_file(stdout_file) as file:
            order = Order(
                container=self._container,
                argv=["/bin/sh", "-c", command] if isinstance(command, str) else list(command),
                branch=branch,
                cwd=self._path(cwd or ""),
                env={**self._network.variables, **(env or {}), **marker(self._name, branch)},
                user=user,
                stdin=stdin,
                timeout=timeout,
                output_limit=output_limit,
                file=file,
                remark=self._remark,
            )
            running = Command(self._api, self._reach, order)
            code = await self._run(running)
            if running.out.file_error is not None:
                raise SandboxError(f"cannot write {stdout_file}: {running.out.file_error}") from running.out.file_error
        seconds = time.monotonic() - began
        out, err = running.out, running.err
        return ExecResult(code, out.value(), err.value(), out.size, err.size, code is None, seconds)

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write *data* to *path*; what was there is removed first."""
        await self._job(partial(self._files.write, self._path(path), data, mode))

    async def read_file(self, path: str, *, limit: int = 16 * 1024 * 1024) -> bytes | None:
        """Return the bytes of the regular file *path*, or of the one that it links to."""
        return await self._job(partial(self._files.read, self._path(path), limit))

    async def upload(self, source: str, target: str) -> None:
        """Copy *source* of this machine to *target* in the container; it belongs to the container's user."""
        stop = Event()
        await self._job(partial(self._files.upload, source, self._path(target), stop), stop)

    async def download(
        self, source: str, target: str, *, exclude: Sequence[str] = (), limits: TransferLimits | None = None
    ) -> Sequence[str]:
        """Copy *source* of the container to *target* on this machine."""
        guard, stop = Guard(exclude, limits), Event()
        place = resolved(target)
        await self._job(partial(self._files.download, self._path(source), place, guard, stop), stop)
        return guard.refused

    async def remove(self, path: str) -> None:
        """Remove the file or tree *path*, as root."""
        place = self._path(path)
        if place == "/":
            raise UsageError("remove", "/ is the whole sandbox", "name something in it")
        result = await self.exec(["rm", "-rf", "--", place], cwd="/", user="0")
        if result.exit_code in (126, 127) and await in_own_thread(partial(self._reach.remove, place)):
            return
        if result.exit_code and await self._job(partial(self._files.exists, place)):
            said = result.text.strip().partition("\n")[0]
            raise SandboxError(f"cannot remove {path}: {said or 'it is still there'}")

    async def kill_all(self) -> int:
        """Kill every process in the container but the one that keeps it."""
        self._require_open()
        return await to_the_end(in_own_thread(partial(self._reach.kill, None)))

    async def set_network(self, policy: NetworkPolicy) -> None:
        """Switch the network, for what runs already as well."""
        require_mode(policy, self._modes)
        self._require_open()
        await to_the_end(self._network.switch(policy))

    async def close(self) -> None:
        """Remove the container, with what runs in it."""
        self._closed = True
        if self._released:
            return
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._release())
        await to_the_end(self._closing)

    async def _release(self) -> None:
        try:
            for stop in self._jobs.values():
                stop.set()
            await self._network.close()
            await in_own_thread(self._remove)
            with self._lock:
                commands = list(self._commands)
            for command in commands:
                command.cancel()
            if self._jobs:
                await asyncio.wait(self._jobs)
            self._released = True
        finally:
            self._closing = None  # after a failure, closing again tries again

    async def _run(self, command: Command) -> int | None:
        """Run *command* in a thread of its own, which outlives this call if something in the background prints on."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[int | None] = loop.create_future()

        def tell(code: int | None, error: BaseException | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(code)
            else:
                done.set_exception(error)

        def report(code: int | None, error: BaseException | None = None) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(tell, code, error)

        def work() -> None:
            try:
                command.run(report)
            except BaseException as error:  # noqa: BLE001, RUF100  (it is handed over, not swallowed)
                report(None, error)
            finally:
                with self._lock:
                    self._commands.discard(command)

        with self._lock:
            self._commands.add(command)
        Thread(target=work, name="agentcompass-exec", daemon=True).start()
        try:
            code = await to_the_end(done, command.cancel)
        except SandboxError as error:
            raise await self._explained(error) from error
        if code == _KILLED:
            await self._require_alive()
        return code

    def _remark(self, code: int | None) -> str:
        """Say on stderr that memory was the matter, if it was."""
        if self._memory_mb is None or code == 0:
            return ""
        if code != _KILLED and self._reach.host_pid() is None:  # a look costs a command there
            return ""
        with self._lock, suppress(SandboxError):
            count = self._reach.oom_kills()
            before, self._oom_seen = self._oom_seen, max(count, self._oom_seen)
            if count > before:
                return f"agentcompass: the memory limit of {self._memory_mb} MiB was reached; a process was killed\n"
        return ""

    async def _explained(self, error: SandboxError) -> SandboxError:
        """Return why a command failed: the end of the container, if it has ended."""
        if self._closed:
            return SandboxError("the sandbox was closed while a command ran")
        try:
            await self._require_alive()
        except SandboxError as death:
            return death
        return error

    async def _require_alive(self) -> None:
        if self._closed:
            raise SandboxError("the sandbox was closed while a command ran")
        await in_own_thread(self._look)

    def _look(self) -> None:
        with engine_errors("look at the container"):
            state = self._api.inspect_container(self._container)["State"]
        if not state["Running"]:
            cause = ": it ran out of memory" if state.get("OOMKilled") else ""
            raise SandboxError(f"the container {self._name} has ended, exit code {state['ExitCode']}{cause}")

    async def _job(self, work: Callable[[], T], stop: Event | None = None) -> T:
        """Call *work* in a thread, which neither a cancellation nor closing leaves behind."""
        self._require_open()
        stop = stop or Event()
        task = asyncio.ensure_future(in_own_thread(work))
        self._jobs[task] = stop
        task.add_done_callback(self._jobs.pop)
        try:
            return await to_the_end(task, stop.set)
        except Stopped:
            raise SandboxError("a copy was stopped: the sandbox is closed") from None

    def _path(self, path: str) -> str:
        if "\0" in path:
            raise UsageError("path", f"{path!r} holds a null byte", "leave it out")
        return posixpath.normpath(posixpath.join(self._workdir, path))

    def _require_open(self) -> None:
        if self._closed:
            raise SandboxError("the sandbox is closed")


@contextmanager
def _output_file(path: str | None) -> Iterator[BinaryIO | None]:
    if path is None:
        yield None
        return
    with sandbox_errors(f"write {path}"):
        file = open(path, "wb")  # noqa: SIM115, RUF100  (the body's errors are not the file's)
    try:
        yield file
    finally:
        with sandbox_errors(f"write {path}"):
            file.close()
