"""From the attempts of one task to its value, series by series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..model.request import AttemptPlan, Strategy
from .contract import MetricContract, MetricKind, MetricSpec
from .estimators import mean

Values = Sequence[float | None]  #: by attempt; None where the attempt or its value is missing


class Reducer(StrEnum):
    """How attempts become a value: the only one, their mean, or whether any succeeds."""

    NATIVE = "native"
    AVG = "avg"
    PASS = "pass"  # noqa: S105


class Role(StrEnum):
    """Whose series it is: the primary metric's, or another's."""

    HEADLINE = "headline"
    AUXILIARY = "auxiliary"


@dataclass(frozen=True, slots=True)
class PlannedSeries:
    """A series that a report will have."""

    metric: MetricSpec
    reducer: Reducer
    role: Role
    k: int

    @property
    def series_id(self) -> str:
        """The name of the series, unique in its report."""
        return f"{self.metric.id}.{self.reducer}@{self.k}"

    @property
    def proportion(self) -> bool:
        """Tell whether every task's value is 0 or 1."""
        return self.metric.kind is MetricKind.BINARY_SUCCESS and self.reducer is not Reducer.AVG


def planned_series(contract: MetricContract, plan: AttemptPlan) -> tuple[PlannedSeries, ...]:
    """Return the series of *contract* under *plan*, those of the primary metric first.

    One attempt: each metric as it is. Several under avg: the mean of each metric, and for binary ones whether any
    attempt succeeds. Several under pass: only the latter, of the primary metric.
    """
    if plan.k == 1:
        return tuple(_series(contract, spec, Reducer.NATIVE, 1) for spec in contract.metrics)
    if plan.strategy is Strategy.PASS:
        return (_series(contract, contract.primary, Reducer.PASS, plan.k),)
    return tuple(
        _series(contract, spec, reducer, plan.k)
        for spec in contract.metrics
        for reducer in (Reducer.AVG, Reducer.PASS)
        if reducer is Reducer.AVG or spec.kind is MetricKind.BINARY_SUCCESS
    )


def _series(contract: MetricContract, spec: MetricSpec, reducer: Reducer, k: int) -> PlannedSeries:
    return PlannedSeries(spec, reducer, Role.HEADLINE if spec is contract.primary else Role.AUXILIARY, k)


def reduce_task(reducer: Reducer, values: Values) -> float | None:
    """Return the value of a task from the *values* of all its k attempts, or None when it has none.

    native: the only value. avg: the mean, if no value is missing. pass: 1 if any attempt succeeds, whatever is missing
    (an early stop leaves later attempts out); 0 only if all k have a value and none succeeds.
    """
    if reducer is Reducer.NATIVE:
        return None if values[0] is None else float(values[0])
    if reducer is Reducer.PASS and any(values):
        return 1.0
    known = _known(values)
    if len(known) < len(values):
        return None
    return 0.0 if reducer is Reducer.PASS else mean(known)


def partial_mean(values: Values) -> float | None:
    """Return the mean of the values that a task has, or None for none; it is never official."""
    return mean(_known(values))


def successes(values: Values) -> int | None:
    """Return how many of all k attempts succeed, or None when a value is missing."""
    known = _known(values)
    return round(math.fsum(known)) if len(known) == len(values) else None


def _known(values: Values) -> list[float]:
    return [value for value in values if value is not None]
