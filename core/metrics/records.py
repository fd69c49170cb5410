"""The planned tasks with what was observed of them, missing attempts included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..model.issue import Severity
from ..model.request import AttemptPlan, Strategy
from .observation import Observation, TaskKey
from .report import AttemptCoverage, Counts

_GRAVE = (Severity.ERROR, Severity.FATAL)


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A planned task and its k attempts in order, None for one that has not ended.

    *invalidated*: an attempt ended with FATAL. *error*: how many ended with ERROR or FATAL. *spared*: how many were not
    needed after a success.
    """

    key: TaskKey
    attempts: tuple[Observation | None, ...]
    invalidated: bool
    error: int
    spared: int

    def values(self, metric_id: str) -> list[float | None]:
        """Return the value of each attempt, None where the attempt or its value is missing."""
        return [None if seen is None else seen.metrics.get(metric_id) for seen in self.attempts]

    @property
    def observed(self) -> Iterator[Observation]:
        """The attempts that have ended."""
        return (seen for seen in self.attempts if seen is not None)

    @property
    def complete(self) -> bool:
        """Tell whether no attempt is missing that was needed."""
        return self.attempts.count(None) == self.spared


def collect(
    tasks: Sequence[TaskKey], observations: Iterable[Observation], plan: AttemptPlan, primary_id: str
) -> tuple[TaskRecord, ...]:
    """Return a record for each of *tasks*, in order.

    Raises:
        ValueError: a task is planned twice, or an observation is of no planned attempt, or of one already observed.
    """
    seen: dict[str, list[Observation | None]] = {task.id: [None] * plan.k for task in tasks}
    if len(seen) < len(tasks):
        raise ValueError("two planned tasks have the same id")
    for observation in observations:
        attempts, index = seen.get(observation.task_id), observation.attempt - 1
        if attempts is None or not 0 <= index < plan.k:
            raise ValueError(f"attempt {observation.attempt} of task {observation.task_id!r} is not planned")
        if attempts[index] is not None:
            raise ValueError(f"attempt {observation.attempt} of task {observation.task_id!r} was observed twice")
        attempts[index] = observation
    stops_early = plan.strategy is Strategy.PASS
    return tuple(_record(task, tuple(seen[task.id]), primary_id if stops_early else None) for task in tasks)


def _record(key: TaskKey, attempts: tuple[Observation | None, ...], stop_metric: str | None) -> TaskRecord:
    severities = [seen.severity for seen in attempts if seen is not None]
    stopped = stop_metric is not None and any(seen.metrics.get(stop_metric) for seen in attempts if seen is not None)
    return TaskRecord(
        key,
        attempts,
        invalidated=Severity.FATAL in severities,
        error=sum(severity in _GRAVE for severity in severities),
        spared=len(attempts) - len(severities) if stopped else 0,
    )


def counts(records: Iterable[TaskRecord], values: Iterable[float | None]) -> Counts:
    """Return how many of *records* are in which state, by their *values*: None also for every invalidated task."""
    total = evaluated = invalidated = error = 0
    for record, value in zip(records, values, strict=True):
        total += 1
        error += record.error
        invalidated += record.invalidated
        evaluated += value is not None
    return Counts(total, evaluated, total - evaluated - invalidated, invalidated, error)


def coverage(records: Sequence[TaskRecord]) -> AttemptCoverage:
    """Return how many attempts of *records* are in which state."""
    planned = sum(len(record.attempts) for record in records)
    missing = sum(record.attempts.count(None) for record in records)
    spared = sum(record.spared for record in records)
    error = sum(record.error for record in records)
    return AttemptCoverage(planned, planned - missing, spared, missing - spared, error)
