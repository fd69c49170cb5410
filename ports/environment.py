"""Sandboxes: a provider opens them, commands run in them, nothing outlives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from agentcompass.core.model.environment import (
    CAPTURE_LIMIT,
    Capabilities,
    EnvironmentSpec,
    ExecResult,
    Leftover,
    TransferLimits,
)
from agentcompass.core.model.network import NetworkPolicy

Record = Callable[[Mapping[str, str]], None]
"""Takes down what is about to exist: called with its `id` (and what else `release` needs) right before it is made.

It blocks until that is on disk. What it has raised, nothing has been made.
"""


def unrecorded(facts: Mapping[str, str]) -> None:
    """Take nothing down: for sandboxes that no run owns."""


class Environment(Protocol):
    """One open sandbox. Relative paths are below `workdir`. Every method may raise `SandboxError`."""

    @property
    def workdir(self) -> str:
        """The folder in which commands run unless they say otherwise."""
        ...

    @property
    def facts(self) -> Mapping[str, str]:
        """What a reader of the verdict should know of the sandbox, such as the digest of its image."""
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

    async def download(
        self, source: str, target: str, *, exclude: Sequence[str] = (), limits: TransferLimits | None = None
    ) -> Sequence[str]:
        """Copy the file or tree *source* of the sandbox to *target* on this machine, likewise.

        A link at *source* itself is followed. *exclude* are globs, of a path below *source* or of a name anywhere in
        it; a folder that matches is left out whole. *limits* make it a guarded copy: what is not safe to have is
        left out (devices, pipes, sockets, links that lead out of the tree, names that do), and returned, a line for
        each.

        Raises:
            FileNotFoundError: there is no *source*.
            TransferLimitError: there is more than *limits* allow; *target* holds what had been copied.
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

    async def open(self, spec: EnvironmentSpec, record: Record = unrecorded) -> Environment:
        """Open a sandbox; if this fails or is cancelled, nothing is left of it.

        *record* is called before anything comes into being that would outlive this process: here, or at the first
        use. The label ``kept`` says that the sandbox is to stay.

        Raises:
            UsageError: *spec* asks for what the provider cannot do.
            SandboxError: it cannot be opened.
        """
        ...

    async def leftovers(self) -> Sequence[Leftover]:
        """Return what sandboxes of this provider there are, whoever opened them, and their owners.

        Raises:
            UsageError: the provider does not answer.
        """
        return ()

    async def release(self, recorded: Mapping[str, str]) -> None:
        """Remove what *recorded* (given to a `Record`, or a `Leftover` by its ``id``) names, if it is there.

        Raises:
            SandboxError: it is there, and stays.
        """
        raise NotImplementedError

    async def check(self) -> str:
        """Return one line on what answers here; raise `UsageError` with the mend if the provider cannot work."""
        ...
