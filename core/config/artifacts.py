"""The fields of ``execution`` that say which files of a sandbox are kept, and how they are made ready.

Source: the user guide's run controls, "Configure Artifacts".
"""

from __future__ import annotations

from typing import Any

from ..errors import UsageError
from ..model.artifact import Artifact, ArtifactCommand
from ..model.request import ArtifactLimits
from .fields import Field, Section, count, flag, nested, nullable, parse_section, positive_seconds, text

CONVENTION = "/logs/artifacts"  #: the folder that is always kept


def _source(value: Any, path: str) -> str:
    source = text(value, path)
    clean = f"/{_normal(source)}"
    if not source.startswith("/") or source.startswith("//") or clean == "/" or _escapes(source):
        raise UsageError(path, f"{source!r} is not an absolute path in the sandbox", "start it with /, without ..")
    return clean


def _destination(value: Any, path: str) -> str:
    target = text(value, path)
    clean = _normal(target)
    if target.startswith("/") or not clean or _escapes(target) or clean.split("/")[0] == "manifest.json":
        raise UsageError(path, f"{target!r} is not a relative path", "name a place below the attempt's artifacts")
    return clean


def _normal(path: str) -> str:
    """Return *path* without what says nothing: empty parts, and dots."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def _escapes(path: str) -> bool:
    return ".." in path.split("/") or "\\" in path or "\0" in path


def _globs(value: Any, path: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(glob, str) and glob for glob in value):
        raise UsageError(path, f"{value!r} is not a list of globs", "give a list such as ['*.tmp']")
    return tuple(value)


ARTIFACT: Section = (
    Field("source", "absolute path", None, "The file or folder in the sandbox.", _source),
    Field("destination", "relative path", None, "Its place below the attempt's artifacts.", _destination),
    Field("exclude", "list of globs", (), "What to leave out: paths below the source, or names.", _globs),
)
COMMAND: Section = (
    Field("command", "text", None, "A script for the shell, in the sandbox's own workdir.", text),
    Field("timeout_seconds", "seconds", 60.0, "How long it may take.", positive_seconds),
)
LIMITS: Section = (
    Field("max_mb", "integer", 16384, "Size of all artifacts of an attempt, in MiB.", count(1)),
    Field("max_files", "integer", 100_000, "Their number.", count(1)),
    Field("timeout_seconds", "seconds", 600.0, "Budget of each whole download, and of each restore.", positive_seconds),
)


def artifact(value: Any, path: str) -> Artifact:
    """Take a path, or a mapping with source, destination and exclude."""
    given = parse_section(ARTIFACT, {"source": value} if isinstance(value, str) else value, path)
    if given["source"] is None:
        raise UsageError(f"{path}.source", "is missing", "name a path in the sandbox")
    return Artifact(given["source"], given["destination"] or given["source"].lstrip("/"), given["exclude"])


def _artifacts(value: Any, path: str) -> tuple[Artifact, ...]:
    found = tuple(artifact(entry, f"{path}[{index}]") for index, entry in enumerate(_list(value, path)))
    require_apart(found, path)
    return found


def require_apart(artifacts: tuple[Artifact, ...], path: str) -> None:
    """Refuse artifacts that would lie in one another."""
    taken: dict[str, str] = {}
    for index, entry in enumerate(artifacts):
        for other, source in taken.items():
            if f"{entry.destination}/".startswith(f"{other}/") or f"{other}/".startswith(f"{entry.destination}/"):
                where = f"{path}[{index}].destination"
                raise UsageError(where, f"{entry.destination!r} lies with that of {source}", "name another place")
        taken[entry.destination] = entry.source


def _commands(value: Any, path: str) -> tuple[ArtifactCommand, ...]:
    return tuple(_command(entry, f"{path}[{index}]") for index, entry in enumerate(_list(value, path)))


def _command(value: Any, path: str) -> ArtifactCommand:
    given = parse_section(COMMAND, {"command": value} if isinstance(value, str) else value, path)
    if not given["command"]:
        raise UsageError(f"{path}.command", "is missing", "give a script for the shell")
    return ArtifactCommand(given["command"], given["timeout_seconds"])


def _list(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise UsageError(path, f"{value!r} is not a list", "give a list; [] for none")
    return list(value)


_limits = nested(LIMITS, ArtifactLimits)

ARTIFACTS: Section = (
    Field("save_artifacts", "boolean or null", None, "Keep the declared files; null: only for fresh.", nullable(flag)),
    Field(
        "artifacts",
        "list or null",
        None,
        f"Replaces what the benchmark declares; {CONVENTION} is always kept.",
        nullable(_artifacts),
    ),
    Field(
        "artifact_collect",
        "list or null",
        None,
        "Replaces the commands that make artifacts ready, in order.",
        nullable(_commands),
    ),
    Field(
        "artifact_collect_timeout_seconds",
        "seconds or null",
        None,
        "Budget of all these commands together.",
        nullable(positive_seconds),
    ),
    Field("artifact_limits", "mapping", ArtifactLimits(), "Limits of each download and restore.", _limits),
)
