"""What went wrong in an attempt: the only error contract between components, records and metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much an issue costs: a FATAL invalidates the task, an ERROR is counted, a WARNING is shown."""

    FATAL = "fatal"
    ERROR = "error"
    WARNING = "warning"


class IssuePhase(StrEnum):
    """Where in the attempt an issue arose."""

    SETUP = "setup"
    RUN = "run"
    COLLECT = "collect"
    EVALUATE = "evaluate"
    CLEANUP = "cleanup"


@dataclass(frozen=True, slots=True)
class Issue:
    """One classified problem; *code* is stable, *message* is for people (one paragraph, redacted when written)."""

    severity: Severity
    phase: IssuePhase
    code: str
    message: str


_ORDER = (Severity.WARNING, Severity.ERROR, Severity.FATAL)


def worst(issues: Iterable[Issue]) -> Severity | None:
    """Return the gravest severity among *issues*, or None for no issue."""
    return max((issue.severity for issue in issues), key=_ORDER.index, default=None)


def deduplicated(issues: Iterable[Issue]) -> tuple[Issue, ...]:
    """Return *issues* in order, each once."""
    return tuple(dict.fromkeys(issues))
