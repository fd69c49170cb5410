"""Sandboxes: a provider opens them, commands run in them, nothing outlives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from agentcompass.core.model.environment import CAPTURE_LIMIT, Capabilities, EnvironmentSpec, ExecResult
from agentcompass.core.model.network import NetworkPolicy


class Environment(Protocol):
    """One open sandbox. Relative paths are below `workdir`. Every method may raise `SandboxError`."""

    @property
    def workdir(self) -> str:
        """The folder in which commands run unless they say otherwise."""
        ...

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
        """Run *command* (a script for `sh -c`, or an argument list) and wait for it.

        At *timeout* seconds the command's whole tree is killed, whatever it forked, and the output so far is
        returned with `timed_out`; the call itself takes at most two seconds more. Of each stream the first and the
        last *output_limit* bytes are kept; *stdout_file*, a path on this machine, receives the whole of stdout up to
        `OUTPUT_FILE_LIMIT`. What a command leaves running in the background lives on until `kill_all`. A command
        that cannot be started has exit code 127 (or 126) and says why on stderr. Cancelling kills the tree too.
        """
        ...

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write *data* to *path* in the sandbox, making folders as needed; an existing file is replaced whole."""
        ...

    async def read_file(self, path: str, *, limit: int = 16 * 1024 * 1024) -> bytes | None:
        """Return the bytes of the regular file *path*, or None if there is none.

        Raises:
            ValueError: the file is larger than *limit* bytes.
        """
        ...

    async def upload(self, source: str, target: str) -> None:
        """Copy the file or tree *source* of this machine to *target*: modes, links and empty folders are kept."""
        ...

    async def download(self, source: str, target: str) -> None:
        """Copy the file or tree *source* of the sandbox to *target* on this machine, likewise.

        Raises:
            FileNotFoundError: there is no *source*.
        """
        ...

    async def remove(self, path: str) -> None:
        """Remove the file or tree *path*, if it is there."""
        ...

    async def kill_all(self) -> int:
        """Kill every process in the sandbox, wait until none is left, and return how many there were."""
        ...

    async def set_network(self, policy: NetworkPolicy) -> None:
        """Switch the network to *policy*."""
        ...

    async def close(self) -> None:
        """Kill what runs and release everything; closing again does nothing."""
        ...


class EnvironmentProvider(Protocol):
    """Opens sandboxes of one kind."""

    capabilities: Capabilities

    async def open(self, spec: EnvironmentSpec) -> Environment:
        """Open a sandbox; if this fails or is cancelled, nothing is left of it."""
        ...

    async def check(self) -> str:
        """Return one line on what answers here; raise `UsageError` with the mend if the provider cannot work."""
        ...
