"""What aggregation is given: the planned tasks, and one small value for each final attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..model.issue import Severity
from ..model.result import Usage

UNCATEGORIZED = "__uncategorized__"  #: the category of tasks without one


@dataclass(frozen=True, slots=True)
class TaskKey:
    """A planned task: *category* groups it in reports, *cluster* names what it shares with dependent tasks."""

    id: str
    category: str | None = None
    cluster: str | None = None

    @property
    def group(self) -> str:
        """The category under which reports show the task."""
        return self.category or UNCATEGORIZED


@dataclass(frozen=True, slots=True)
class Observation:
    """The end of one logical attempt, after its retries.

    *attempt* counts from 1. *metrics* holds checked values by metric id. *severity* is the gravest of the final issues.
    *retries* counts discarded executions. *usage* and *seconds* (wall time) are None where unknown.
    *discarded* is what the discarded executions consumed, beside *usage*.
    """

    task_id: str
    attempt: int
    metrics: Mapping[str, bool | int | float]
    severity: Severity | None
    retries: int
    usage: Usage
    seconds: float | None
    discarded: Usage = Usage()
