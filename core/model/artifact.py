"""Artifacts: which files of a sandbox outlive it, how they are made ready, and what came of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file or tree to keep of the run's sandbox: *source* there, absolute; *destination*, relative, in the attempt's
    artifacts; *exclude* globs, of a path below the source or of a name anywhere in it.
    """

    source: str
    destination: str
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArtifactCommand:
    """A command that makes artifacts ready, in the sandbox's own workdir; *optional* ones may fail."""

    command: str
    timeout_seconds: float = 60.0
    user: str | None = None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ArtifactPlan:
    """What an attempt does about artifacts: make them ready by *commands*, then keep *sources* if *save* says so.

    *group_seconds* bounds all commands together, *transfer_seconds* each whole download and each restore.
    """

    sources: tuple[Artifact, ...]
    commands: tuple[ArtifactCommand, ...]
    save: bool
    group_seconds: float | None
    transfer_seconds: float
    max_bytes: int
    max_files: int


class ArtifactStatus(StrEnum):
    """What came of one artifact."""

    COLLECTED = "collected"
    MISSING = "missing"
    FAILED = "failed"
    NOT_COLLECTED = "not_collected"


@dataclass(frozen=True, slots=True)
class SavedArtifact:
    """One artifact of an attempt: where it was, where it is below the attempt's artifacts, and what it is.

    *fingerprint* is a SHA-256 over names, modes and contents; *refused* names what was not safe to have.
    """

    source: str
    destination: str
    status: ArtifactStatus
    files: int = 0
    bytes: int = 0
    fingerprint: str | None = None
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """The artifacts of one attempt; *folder* is where they lie on this machine."""

    folder: str
    entries: tuple[SavedArtifact, ...] = ()
