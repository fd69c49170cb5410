"""One open `bubblewrap` sandbox: its folder, first process and network, made at the first use, and its commands."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.environment import CAPTURE_LIMIT, ExecResult
from agentcompass.core.model.network import NetworkMode, NetworkPolicy

from . import bubblewrap_root, files, local_leftovers
from .bubblewrap_files import BubblewrapFiles
from .bubblewrap_keeper import NOBODY, Keeper
from .capture import Capture
from .cgroup_limits import CgroupLimits
from .commands import Commands
from .egress import EgressProxy, proxy_variables
from .netns import listen_in
from .refusals import require_names
from .waiting import to_the_end

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from agentcompass.core.model.environment import EnvironmentSpec
    from agentcompass.ports.environment import Record

    from .process_tree import ProcessTree, TreeMaker

_OWN_USERS = (None, "", "0", "root", "0:0", "root:root")
_ENTER = 'umask 022; cd -- "$0" || exit 126; exec "$@"'
_KILL_WITHIN = 10.0
VARIABLES = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}


class BubblewrapSession(BubblewrapFiles):
    """Commands enter the namespaces of the first process one by one; public ones keep this machine's network.

    Files are read, written and copied by commands inside, so that no link can lead out of it.
    """

    def __init__(
        self,
        sandbox: str,
        folder: str,
        spec: EnvironmentSpec,
        *,
        record: Record,
        bind: Sequence[str],
        tree: TreeMaker,
        modes: Collection[NetworkMode],
        maker: str,
    ) -> None:
        self.workdir = _workdir(None, spec.workdir)
        self.image_variables: Mapping[str, str] = {}
        self._sandbox, self._folder, self._spec, self._record, self._bind = sandbox, folder, spec, record, bind
        self._policy, self._modes, self._maker = spec.network, modes, maker
        self._limits = CgroupLimits(sandbox, spec.resources)
        self._tree = tree
        self._commands = Commands(self._plant, f"ulimit -c 0; {self._limits.prelude}")
        self._keeper: Keeper | None = None
        self._proxy: EgressProxy | None = None
        self._proxy_port = 0
        self._starting: asyncio.Future[None] | None = None
        self._closing: asyncio.Future[None] | None = None
        self._is_made = self._is_closed = self._is_released = False

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
        """Run *command* as the port says, as the one user that there is."""
        if user not in _OWN_USERS:
            raise UsageError("user", f"bubblewrap cannot run a command as {user!r}", "leave it out")
        require_names(env or {})
        await self._ready()  # from then on it is known where the proxy listens
        began = time.monotonic()
        with _output_file(stdout_file) as file:
            out, err = Capture(output_limit, file), Capture(output_limit)
            argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
            code = await self._run(argv, self._path(cwd or ""), self._variables(env or {}), stdin, out, err, timeout)
            if out.file_error is not None:
                raise SandboxError(f"cannot write {stdout_file}: {out.file_error}") from out.file_error
        seconds = time.monotonic() - began
        return ExecResult(code, out.value(), err.value(), out.size, err.size, code is None, seconds)

    async def kill_all(self) -> int:
        """Kill every process but the first, which is not the sandbox's own."""
        return await to_the_end(self._kill_all())

    async def set_network(self, policy: NetworkPolicy) -> None:
        """Switch to *policy*: possible only while no process runs, as one keeps the network that it was born with."""
        require_mode(policy, self._modes)
        if self._keeper is not None and self._keeper.members():
            raise SandboxError("the network cannot be switched while processes run in the sandbox")
        self._policy = policy
        if self._keeper is not None:
            await to_the_end(self._apply_network())

    async def close(self) -> None:
        """Kill what runs and remove everything."""
        self._is_closed = True
        if self._starting is not None:
            await to_the_end(asyncio.wait({self._starting}))
        if self._is_released:
            return
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._release())
        await to_the_end(self._closing)

    async def become(self, variables: Mapping[str, str], workdir: str | None) -> None:
        """Take on what an image says: *variables* lie beneath the spec's, *workdir* is where relative paths start."""
        self.image_variables = variables
        self.workdir = _workdir(workdir, self._spec.workdir)
        await self._script(f"make {self.workdir}", 'mkdir -p -- "$1"', self.workdir)

    async def _run(
        self,
        argv: Sequence[str],
        cwd: str,
        variables: Mapping[str, str],
        stdin: bytes | BinaryIO | None,
        out: Capture | BinaryIO,
        err: Capture,
        timeout: float | None = None,
    ) -> int | None:
        keeper = await self._ready()
        words, outside = keeper.enter(variables, own_network=self._policy.network_mode is not NetworkMode.PUBLIC)
        whole = [*words, "/bin/sh", "-c", _ENTER, cwd, *argv] if argv else []
        return await self._commands.run(whole, cwd="/", env=outside, stdin=stdin, timeout=timeout, out=out, err=err)

    def _variables(self, env: Mapping[str, str]) -> dict[str, str]:
        proxy = {} if self._proxy is None else proxy_variables(self._proxy_port)
        return {**VARIABLES, **proxy, **self.image_variables, **self._spec.env, **env}

    def _path(self, path: str) -> str:
        if "\0" in path:
            raise UsageError("path", f"{path!r} holds a null byte", "leave it out")
        return os.path.join(self.workdir, path).rstrip("/") or "/"

    async def _ready(self) -> Keeper:
        """Return the first process, which the first use makes."""
        self._require_open()
        if self._keeper is None:
            if self._starting is None:
                self._starting = asyncio.ensure_future(self._start())
                self._starting.add_done_callback(self._note_started)
            await to_the_end(self._starting)
            self._require_open()
        assert self._keeper is not None
        self._keeper.require_alive()
        return self._keeper

    def _note_started(self, starting: asyncio.Future[None]) -> None:
        self._starting = None  # after a failure, the next use tries again
        if not starting.cancelled():
            starting.exception()

    def _require_open(self) -> None:
        if self._is_closed:
            raise SandboxError("the sandbox is closed")

    async def _start(self) -> None:
        try:
            await asyncio.to_thread(self._make)
            stays = "kept" in self._spec.labels
            keeper = Keeper(self._sandbox, f"{self._folder}/root", self._bind, maker=self._maker, stays=stays)
            try:
                await asyncio.to_thread(keeper.wait)
                self._keeper = keeper
                await self._apply_network()
            except BaseException:
                self._keeper = None
                await keeper.close()
                raise
        except BaseException:
            await asyncio.to_thread(self._unmake)
            raise

    def _plant(self) -> ProcessTree:
        tree = self._tree(self._sandbox)
        tree.roots_reap = True  # nsenter waits outside, where orphans are the business of a process that may not care
        return tree

    def _make(self) -> None:
        self._record({"id": self._sandbox, "folder": self._folder})
        self._is_made = True
        with files.sandbox_errors(f"make {self._folder}"):
            os.makedirs(os.path.dirname(self._folder), exist_ok=True)
            os.mkdir(self._folder, 0o700)
            local_leftovers.write_labels(self._folder, self._spec.labels)
            bubblewrap_root.make(f"{self._folder}/root", self.workdir, NOBODY if os.geteuid() == 0 else None)
        self._limits.make()

    def _unmake(self) -> None:
        if self._is_made:
            self._limits.remove()
            with files.sandbox_errors(f"remove {self._folder}"):
                files.remove_tree(self._folder)
            self._is_made = False

    async def _apply_network(self) -> None:
        assert self._keeper is not None
        listed = self._policy.network_mode in (NetworkMode.ALLOWLIST, NetworkMode.DENYLIST)
        if self._proxy is not None and listed:
            self._proxy.set_policy(self._policy)
        elif self._proxy is not None:
            await self._proxy.close()
            self._proxy = None
        elif listed:
            sock = await asyncio.to_thread(listen_in, self._keeper.pid)
            self._proxy_port = sock.getsockname()[1]
            self._proxy = EgressProxy(self._policy)
            await self._proxy.start(sock)

    async def _kill_all(self) -> int:
        if self._keeper is None:
            return 0
        seen: set[int] = set()
        deadline = time.monotonic() + _KILL_WITHIN
        alive = self._keeper.members()
        await self._commands.kill()  # the helpers outside too
        while alive:
            seen |= alive
            for pid in alive:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise SandboxError(f"{len(alive)} processes cannot be killed in {_KILL_WITHIN:g} s")
            await asyncio.sleep(0.001)
            alive = self._keeper.members()
        return len(seen)

    async def _release(self) -> None:
        try:
            if self._keeper is not None:
                with suppress(SandboxError):  # the end of the first process is the end of all
                    await self._commands.kill()
                await self._keeper.close()
            await self._commands.close()
            if self._proxy is not None:
                await self._proxy.close()
            await asyncio.to_thread(self._unmake)
            self._is_released = True
        finally:
            self._closing = None  # after a failure, closing again tries again


def require_mode(policy: NetworkPolicy, modes: Collection[NetworkMode]) -> None:
    """Refuse a network that there is not."""
    if policy.network_mode not in modes:
        raise UsageError(
            "network_mode", f"bubblewrap cannot offer {policy.network_mode.value!r} here", "run it as root"
        )


def _workdir(image: str | None, wanted: str | None) -> str:
    return os.path.normpath(os.path.join(image or "/app", wanted or ""))


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
