"""Errors that cross the rooms, each with the evidence that its message is made from.

AgentCompassError
    UsageError              the user can mend it: one line, exit code 2
        UnknownComponentError, MissingExtraError
    SandboxError            a sandbox itself failed, not what ran in it
        TransferLimitError  a copy would bring more than it may
    RunFailedError          a run ended without official scores; carries its paths
    PhaseFailed             a phase of one attempt ended with a classified issue
    StorageError            results cannot be saved, whatever was being done; an OSError too
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model.issue import Issue


class AgentCompassError(Exception):
    """Base of every error that AgentCompass raises on purpose."""


class UsageError(AgentCompassError):
    """A request is wrong in a way that its author can mend.

    *field* names what is wrong (``execution.max_retries``), *problem* says what is wrong with it (with the value),
    *mend* says what would be right. ``str()`` joins the three to one line.
    """

    def __init__(self, field: str, problem: str, mend: str = "") -> None:
        super().__init__(" ".join(f"{field}: {problem}{'; ' + mend if mend else ''}".split()))
        self.field, self.problem, self.mend = field, problem, mend


def nearest(name: str, known: Iterable[str]) -> str:
    """Return advice that names the known word nearest to *name*, or all of them when none is near."""
    from difflib import get_close_matches  # only a mistake needs it, and start-up does not wait for it

    words = sorted(known)
    close = get_close_matches(name.lower(), words, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(words) or 'none'}"


def unknown_key(path: str, key: str, known: Iterable[str]) -> UsageError:
    """Return the refusal of *key*, which nothing at *path* understands."""
    full = f"{path}.{key}" if path else key
    return UsageError(full, "unknown key", nearest(key, known))


class UnknownComponentError(UsageError):
    """A request names a component that no plugin registers."""

    def __init__(self, kind: str, name: str, known: tuple[str, ...]) -> None:
        super().__init__(kind, f"{name!r} is not registered", nearest(name, known))
        self.kind, self.name, self.known = kind, name, known


class MissingExtraError(UsageError):
    """A component needs an optional dependency: *extra* of this distribution, or a whole requirement."""

    def __init__(self, component: str, extra: str, module: str) -> None:
        wanted = extra if "[" in extra else f"agentcompass[{extra}]"
        super().__init__(component, f"the Python module {module!r} is missing", f"pip install '{wanted}'")
        self.component, self.extra, self.module = component, extra, module


class RunFailedError(AgentCompassError):
    """A run ended without official scores; *paths* says where its files are."""

    def __init__(self, message: str, status: str, paths: Mapping[str, str]) -> None:
        super().__init__(f"{message}; results: {paths.get('run_dir', 'none')}")
        self.status, self.paths = status, dict(paths)


class SandboxError(AgentCompassError):
    """A sandbox itself failed, not what ran in it; the attempt gets a FATAL `environment_failed`."""


class TransferLimitError(SandboxError):
    """A copy out of a sandbox would bring more than it may; *limit* is the field of `TransferLimits` that says so."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(message)
        self.limit = limit


class StorageError(AgentCompassError, OSError):
    """The place for results takes no more. It is no attempt's fault: the run stops, and the work is done again."""


class PhaseFailed(AgentCompassError):  # noqa: N818  (it reports an outcome as often as an error)
    """A phase of an attempt ended with *issue*; *diagnostics* is a traceback or log, kept beside the result.

    A component raises it to keep its own classification; any other exception is classified by its phase.
    *retry_after* is how many seconds the other side asked to be left alone.
    """

    def __init__(self, issue: Issue, diagnostics: str = "", retry_after: float | None = None) -> None:
        super().__init__(f"{issue.severity}: {issue.code}: {issue.message}")
        self.issue, self.diagnostics, self.retry_after = issue, diagnostics, retry_after
