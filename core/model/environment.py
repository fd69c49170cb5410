"""Sandboxes as values: what is asked of one, what a provider can do, what a command gave."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from .network import NetworkMode, NetworkPolicy

CAPTURE_LIMIT = 512 * 1024  #: bytes kept of each end of an output, unless a call says otherwise
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  #: names that a shell keeps; it drops others without a word
OUTPUT_FILE_LIMIT = 64 * 1024 * 1024  #: bytes of an output written to a file


@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """What an attempt needs of its sandbox; *labels* say whose it is (run, task, attempt, random id)."""

    network: NetworkPolicy = NetworkPolicy()
    env: Mapping[str, str] = field(default_factory=dict)
    image: str | None = None
    workdir: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a provider can do; a request for anything else is refused before the run."""

    network_modes: frozenset[NetworkMode] = frozenset({NetworkMode.PUBLIC})
    dynamic_network: bool = False
    users: bool = False
    images: bool = False
    remote: bool = False


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
