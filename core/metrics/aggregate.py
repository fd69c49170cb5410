"""From the observations of a run to its report: every series, by category, by node, and in all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..model.request import AttemptPlan
from .contract import MetricContract, require_strategy
from .curves import curves
from .estimate import Sample, Scale, Weighting, alone, bounds, estimate, listed
from .hierarchy import Node, leaf_weights
from .observation import Observation, TaskKey
from .records import collect, counts, coverage
from .reducers import PlannedSeries, Reducer, partial_mean, planned_series, reduce_task
from .report import Display, GroupScore, MetricReport, MetricSeries, Partial
from .resources import resources
from .table import AggregationMode, Column, Table, parse_scheme, tabulate


def aggregate(
    *,
    contract: MetricContract,
    plan: AttemptPlan,
    tasks: Sequence[TaskKey],
    observations: Iterable[Observation],
    mode: str,
    hierarchy: Mapping[str, Any] | None,
    seed: int = 0,
) -> MetricReport:
    """Return the report over all planned *tasks*; those without their observations are counted as unavailable.

    A FATAL attempt invalidates its task in every series, and then no value is official. *seed* is the bootstrap's.
    Neither the order of *tasks* nor that of *observations* changes a number.

    Raises:
        UsageError: the mode is unknown, the hierarchy is wrong or missing, or the strategy does not fit the contract.
        ValueError: two tasks have one id, or an observation belongs to no planned attempt or repeats another.
    """
    require_strategy(contract, plan)
    table = tabulate(collect(tasks, observations, plan, contract.primary.id), parse_scheme(mode, hierarchy))
    return MetricReport(
        k=plan.k,
        strategy=plan.strategy.value,
        aggregation=table.scheme.mode.value,
        evaluation_failed=table.failed,
        series=tuple(_series(planned, table) for planned in planned_series(contract, plan)),
        curves=curves(contract, plan, table.records, table.score),
        attempts=coverage(table.records),
        resources=resources(table.records, contract.primary, seed),
    )


@dataclass(frozen=True, slots=True)
class _Sheet:
    """One series while it is made: a value for each task, in all and by category, and the weights of categories."""

    table: Table
    column: Column
    scale: Scale
    samples: Mapping[str, Sample]
    weights: Mapping[str, float]

    def group(self, names: Iterable[str], weighting: Weighting, aggregation: str | None) -> GroupScore:
        """Return the score of the categories *names* together."""
        mine = [name for name in names if name in self.samples]
        places = [place for name in mine for place in self.table.categories[name]]
        return GroupScore(
            self.table.official(estimate({name: self.samples[name] for name in mine}, weighting, self.scale)),
            counts([self.table.records[place] for place in places], [self.column[place] for place in places]),
            sum(self.weights.get(name, 0.0) for name in mine),
            aggregation,
        )

    def categories(self) -> dict[str, GroupScore]:
        """Return the score of each category."""
        return {name: self.group([name], alone, None) for name in self.samples}

    def nodes(self) -> dict[str, GroupScore]:
        """Return the score of each node of the hierarchy, if there is one."""
        root = self.table.scheme.root
        return {node.path: self._node(node) for node in root.walk()} if root else {}

    def _node(self, node: Node) -> GroupScore:
        return self.group(node.leaves(), partial(leaf_weights, node), node.aggregation.value)

    def note(self) -> str:
        """Say which categories the value leaves out."""
        if self.table.scheme.mode is AggregationMode.MICRO_WEIGHTED:
            return ""
        root = self.table.scheme.root
        leaves = dict.fromkeys(root.leaves() if root else self.samples)
        empty = [name for name in leaves if name not in self.weights]
        outside = [name for name in self.samples if name not in leaves]
        notes = (("without a value", empty), ("not in the hierarchy", outside))
        return "; ".join(f"left out, {why}: {listed(names)}" for why, names in notes if names)


def _series(planned: PlannedSeries, table: Table) -> MetricSeries:
    metric = planned.metric
    sheet = _sheet(planned, table)
    return MetricSeries(
        series_id=planned.series_id,
        metric_id=metric.id,
        kind=metric.kind,
        reducer=planned.reducer,
        role=planned.role,
        k=planned.k,
        aggregation=table.scheme.mode.value,
        score=table.score(sheet.column, sheet.scale),
        bounds=bounds(table.strata(sheet.column), table.scheme.weights, sheet.scale),
        counts=counts(table.records, sheet.column),
        display=Display(metric.label or metric.id, metric.description, metric.unit, metric.precision),
        categories=sheet.categories(),
        hierarchy=sheet.nodes(),
        partial=_partial(planned, table, sheet.column),
        note=sheet.note(),
    )


def _sheet(planned: PlannedSeries, table: Table) -> _Sheet:
    metric = planned.metric
    column = [
        None if record.invalidated else reduce_task(planned.reducer, record.values(metric.id))
        for record in table.records
    ]
    samples = table.by_category(column)
    weights = table.scheme.weights({name: len(sample.values) for name, sample in samples.items()})
    unit = metric.span == (0.0, 1.0)
    return _Sheet(table, column, Scale(*metric.span, unit=unit, proportion=planned.proportion), samples, weights)


def _partial(planned: PlannedSeries, table: Table, column: Column) -> Partial | None:
    """Return the mean that takes unavailable tasks at what they have, if there are such tasks."""
    if planned.reducer is not Reducer.AVG:
        return None
    filled = [
        partial_mean(record.values(planned.metric.id)) if value is None and not record.invalidated else value
        for record, value in zip(table.records, column, strict=True)
    ]
    added = column.count(None) - filled.count(None)
    found = estimate(table.strata(filled), table.scheme.weights, Scale()).value if added else None
    return None if found is None else Partial(found, len(filled) - filled.count(None), added)
