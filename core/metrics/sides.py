"""A run as one side of a comparison: the value of each task that has one, and what each task cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..model.request import AttemptPlan
from .contract import MetricContract, MetricKind
from .observation import Observation, TaskKey
from .paired import Side
from .records import TaskRecord, collect
from .reducers import Reducer, planned_series, reduce_task

#: What an attempt can cost, and how an observation tells it.
COSTS: tuple[tuple[str, str, Callable[[Observation], float | None]], ...] = (
    ("cost", "USD per task", lambda seen: seen.usage.cost_usd),
    ("tokens out", "per task", lambda seen: seen.usage.completion_tokens),
    ("wall time", "seconds per task", lambda seen: seen.seconds),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """One run, measured: its *side*, what its *series* is called, and each cost by task."""

    side: Side
    series: str
    costs: Mapping[str, Mapping[str, float]]


def measured(
    name: str,
    contract: MetricContract,
    plan: AttemptPlan,
    tasks: Sequence[TaskKey],
    observations: Iterable[Observation],
) -> Measured:
    """Return the run *name* as a side of a comparison; invalidated and unavailable tasks have no value."""
    records = collect(tasks, observations, plan, contract.primary.id)
    series = planned_series(contract, plan)[0]
    values: dict[str, float] = {}
    for record in records:
        value = None if record.invalidated else reduce_task(series.reducer, record.values(contract.primary.id))
        if value is not None:
            values[record.key.id] = value
    trials = contract.primary.kind is MetricKind.BINARY_SUCCESS and series.reducer is Reducer.NATIVE
    clusters = {task.id: task.cluster for task in tasks}
    costs = {label: _per_task(records, read) for label, _, read in COSTS}
    return Measured(Side(name, values, clusters, trials), series.series_id, costs)


def _per_task(records: Iterable[TaskRecord], read: Callable[[Observation], float | None]) -> dict[str, float]:
    """Return the mean over the attempts of each task, where it is known of all of them."""
    found = {}
    for record in records:
        amounts = [read(seen) for seen in record.observed]
        known = [amount for amount in amounts if amount is not None and math.isfinite(amount)]
        if known and len(known) == len(amounts):
            found[record.key.id] = math.fsum(known) / len(known)
    return found
