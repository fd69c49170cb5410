"""The report of a run: every official number with its uncertainty and its counts, and the document made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any

from .contract import MetricKind
from .estimators import finite
from .reducers import Reducer, Role


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tasks are behind a number: evaluated + unavailable + invalidated = total.

    *unavailable* tasks lack attempts or values, *invalidated* ones had a FATAL issue. *error* is apart from the sum: it
    counts attempts that ended with ERROR or FATAL, each once.
    """

    total: int
    evaluated: int
    unavailable: int
    invalidated: int
    error: int


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of *level* by *method*; both ends None with method ``none``, and *note* says why."""

    low: float | None
    high: float | None
    level: float
    method: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the value would be if every task without one had earned the least, or the most."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Score:
    """A number over tasks: official in *value*, or only for reference in *reference_value*; the other one is None.

    *standard_error* and *interval* belong to whichever is given.
    """

    value: float | None
    reference_value: float | None
    standard_error: float | None
    interval: Interval

    @property
    def shown(self) -> float | None:
        """The number for people, official or not."""
        return self.reference_value if self.value is None else self.value


@dataclass(frozen=True, slots=True)
class GroupScore:
    """The score of one category, or of one node of the hierarchy; *aggregation* says how a node combines its children.

    *aggregation_weight* is the share of the group in the series' value, 0 for a group without values.
    """

    score: Score
    counts: Counts
    aggregation_weight: float
    aggregation: str | None = None


@dataclass(frozen=True, slots=True)
class Partial:
    """An unofficial mean that also takes *incomplete* tasks at the mean of the attempts they have; *tasks* in all."""

    value: float
    tasks: int
    incomplete: int


@dataclass(frozen=True, slots=True)
class Display:
    """How people see a metric; *precision* is digits after the point."""

    label: str
    description: str
    unit: str
    precision: int


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """One metric under one reducer: its score over all tasks, by category and by node of the hierarchy.

    *bounds* is None when every task has a value or the metric has no range. Keys of *hierarchy* are JSON pointers.
    """

    series_id: str
    metric_id: str
    kind: MetricKind
    reducer: Reducer
    role: Role
    k: int
    aggregation: str
    score: Score
    bounds: Bounds | None
    counts: Counts
    display: Display
    categories: Mapping[str, GroupScore]
    hierarchy: Mapping[str, GroupScore]
    partial: Partial | None
    note: str
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def covered(self) -> Counts:
        """The counts of the tasks that the value is about: those in the hierarchy, if there is one, else all."""
        root = next(iter(self.hierarchy.values()), None)
        return root.counts if root else self.counts


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The score of a curve at *j* attempts."""

    j: int
    score: Score


@dataclass(frozen=True, slots=True)
class Curve:
    """How the primary metric depends on the number of attempts, over the tasks with all of them."""

    curve_id: str
    metric_id: str
    formula: str
    counts: Counts
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True)
class AttemptCoverage:
    """The attempts of all tasks: finished + not_needed + missing = planned.

    *error* counts the finished attempts with a final ERROR or FATAL; *not_needed* those that an earlier success spared.
    """

    planned: int
    finished: int
    not_needed: int
    missing: int
    error: int


@dataclass(frozen=True, slots=True)
class Quantity:
    """One resource in *unit*: mean per task over *tasks*, and the total over the *attempts* where it is known."""

    id: str
    unit: str
    tasks: int
    mean: float | None
    standard_error: float | None
    interval: Interval
    attempts: int
    total: float | None


@dataclass(frozen=True, slots=True)
class Resources:
    """What the attempts in the scores consumed; what retries discarded is told apart, as `discarded_*`.

    *tasks* have all their attempts: only those enter means. *attempts* have finished. *cost_per_success* is US dollars,
    over the *priced_successes* among the attempts with a known cost. *seed* and *resamples* are the bootstrap's.
    """

    tasks: int
    attempts: int
    quantities: tuple[Quantity, ...]
    cost_per_success: float | None
    priced_successes: int
    retries: int
    retried_attempts: int
    retried_tasks: int
    seed: int
    resamples: int


@dataclass(frozen=True, slots=True)
class MetricReport:
    """All numbers of a run. With *evaluation_failed* no value is official; reference values cover the valid tasks."""

    k: int
    strategy: str
    aggregation: str
    evaluation_failed: bool
    series: tuple[MetricSeries, ...]
    curves: tuple[Curve, ...]
    attempts: AttemptCoverage
    resources: Resources
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def headline(self) -> MetricSeries:
        """The first series of the primary metric."""
        return self.series[0]

    def document(self) -> dict[str, Any]:
        """Return the report as JSON: plain containers, finite numbers (None for any other), the same each time."""
        document: dict[str, Any] = _plain(self)
        return document


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return _plain_fields(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return None if isinstance(value, float) and not finite(value) else value


def _plain_fields(value: Any) -> dict[str, Any]:
    """A score's fields stand beside those of what it scores, as readers of metrics.json expect them."""
    document: dict[str, Any] = {}
    for name in (item.name for item in fields(value)):
        plain = _plain(getattr(value, name))
        document |= plain if name == "score" else {name: plain}
    return document
