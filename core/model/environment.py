"""Sandboxes as values: what is asked of one, what a provider can do, what a command gave."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum

from .network import NetworkMode, NetworkPolicy

CAPTURE_LIMIT = 512 * 1024  #: bytes kept of each end of an output, unless a call says otherwise
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  #: names that a shell keeps; it drops others without a word
OUTPUT_FILE_LIMIT = 64 * 1024 * 1024  #: bytes of an output written to a file


class EvaluationMode(StrEnum):
    """Where an attempt is graded: in no sandbox, in the one it ran in, or in a fresh one."""

    NONE = "none"
    REUSE = "reuse"
    FRESH = "fresh"


@dataclass(frozen=True, slots=True)
class Resources:
    """Limits of one sandbox; None leaves a resource to the provider.

    *cpu* counts processors, *memory_mb* and *storage_mb* are MiB, *pids* bounds processes and threads, *gpus* counts
    devices.
    """

    cpu: float | None = None
    memory_mb: int | None = None
    pids: int | None = None
    storage_mb: int | None = None
    gpus: int | None = None

    def over(self, other: Resources) -> Resources:
        """Return these limits, and *other*'s where there are none."""
        return Resources(*(getattr(self if getattr(self, name) is not None else other, name) for name in RESOURCES))

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the limits that there are."""
        return tuple(name for name in RESOURCES if getattr(self, name) is not None)


RESOURCES = tuple(field.name for field in fields(Resources))  #: the names of all limits


@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """What an attempt needs of its sandbox; *labels* say whose it is (run, task, attempt, role).

    *build* is a folder of this machine with a ``Dockerfile`` (or a ``docker-compose.yaml``, whose service ``main`` is
    the sandbox) from which the image is made; *image* names one that exists, and wins over a Dockerfile.
    """

    network: NetworkPolicy = NetworkPolicy()
    env: Mapping[str, str] = field(default_factory=dict)
    image: str | None = None
    build: str | None = None
    workdir: str | None = None
    resources: Resources = Resources()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a provider can do; a request for anything else is refused before the run.

    *dynamic_network*: an open sandbox can change its policy. *builds*: `EnvironmentSpec.build` is understood.
    *resources* names the limits that are enforced. *private_root*: a sandbox has a file system of its own, so that a
    task may use absolute paths in it.
    """

    network_modes: frozenset[NetworkMode] = frozenset({NetworkMode.PUBLIC})
    dynamic_network: bool = False
    users: bool = False
    images: bool = False
    builds: bool = False
    resources: frozenset[str] = frozenset()
    private_root: bool = False
    remote: bool = False


@dataclass(frozen=True, slots=True)
class TransferLimits:
    """How much one copy out of a sandbox may bring: bytes (in the archive), and entries."""

    max_bytes: int = 16384 * 1024 * 1024
    max_files: int = 100_000


@dataclass(frozen=True, slots=True)
class Leftover:
    """A sandbox, or a part of one, that nobody has closed.

    *id* is the provider's own and names it to `release`; *owner* is the process that opened it, *abandoned* says that
    this process has ended on this machine, *kept* that it was asked to stay. *labels* are those of its spec.
    """

    provider: str
    id: str
    what: str
    owner: str
    abandoned: bool
    kept: bool
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExecResult:
    """The outcome of one command.

    *stdout* and *stderr* hold at most the head and the tail of each stream, as bytes; *stdout_size* and
    *stderr_size* are the true sizes. *exit_code* is None when the command was killed at its limit; a command ended by
    signal N has exit code 128 + N. *seconds* is wall time.
    """

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    stdout_size: int
    stderr_size: int
    timed_out: bool
    seconds: float

    @property
    def truncated(self) -> bool:
        """Tell whether a part of the output is missing here."""
        return self.stdout_size > len(self.stdout) or self.stderr_size > len(self.stderr)

    @property
    def text(self) -> str:
        """Return stdout and stderr as text for people: undecodable bytes are replaced."""
        return (self.stdout + self.stderr).decode("utf-8", "replace")
