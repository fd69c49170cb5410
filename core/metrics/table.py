"""All planned tasks with their records, how they fall into groups, and how groups combine to one value."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..errors import UsageError, nearest
from .estimate import Estimate, Sample, Scale, estimate
from .hierarchy import Node, check_hierarchy, leaf_weights
from .intervals import own_clusters
from .records import TaskRecord
from .report import Score

Column = Sequence[float | None]  #: a value for each task, in the order of the records


class AggregationMode(StrEnum):
    """How task values become one: all tasks alike, categories alike, or by the user's tree."""

    MICRO_WEIGHTED = "micro_weighted"
    CATEGORY_MEAN = "category_mean"
    CATEGORY_HIERARCHY = "category_hierarchy"


@dataclass(frozen=True, slots=True)
class Scheme:
    """How groups combine: the mode, and its tree if it has one."""

    mode: AggregationMode
    root: Node | None

    def weights(self, sizes: Mapping[str, int]) -> dict[str, float]:
        """Return the weight of each category in the value, by the tasks that it has; empty ones are left out."""
        if self.root is not None:
            return leaf_weights(self.root, sizes)
        used = {name: size for name, size in sizes.items() if size}
        if self.mode is AggregationMode.CATEGORY_MEAN:
            return {name: 1 / len(used) for name in used}
        total = sum(used.values())
        return {name: size / total for name, size in used.items()}


def parse_scheme(mode: str, hierarchy: Mapping[str, Any] | None) -> Scheme:
    """Return how groups combine under *mode*; the hierarchy matters to its own mode only.

    Raises:
        UsageError: the mode is unknown, or its hierarchy is wrong or missing.
    """
    if mode not in list(AggregationMode):
        raise UsageError(
            "aggregation_mode", f"{mode!r} is not a mode", nearest(mode, [each.value for each in AggregationMode])
        )
    if mode != AggregationMode.CATEGORY_HIERARCHY:
        return Scheme(AggregationMode(mode), None)
    if hierarchy is None:
        raise UsageError("category_hierarchy", "is missing", "aggregation_mode category_hierarchy needs it")
    return Scheme(AggregationMode(mode), check_hierarchy(hierarchy))


@dataclass(frozen=True, slots=True)
class Table:
    """The records, the places of each category's tasks among them, and the cluster of each task."""

    records: Sequence[TaskRecord]
    scheme: Scheme
    categories: Mapping[str, Sequence[int]]
    clusters: Sequence[Hashable]
    failed: bool

    def sample(self, column: Column, places: Sequence[int]) -> Sample:
        """Return the values of *column* at *places*."""
        known = [(value, self.clusters[place]) for place in places if (value := column[place]) is not None]
        return Sample([value for value, _ in known], [cluster for _, cluster in known], len(places) - len(known))

    def by_category(self, column: Column) -> dict[str, Sample]:
        """Return the values of each category."""
        return {name: self.sample(column, places) for name, places in self.categories.items()}

    def strata(self, column: Column) -> dict[str, Sample]:
        """Return the groups whose weighted mean the value is.

        Micro weighting pools all tasks, because its spread is that of all tasks and not that within categories.
        """
        if self.scheme.mode is AggregationMode.MICRO_WEIGHTED:
            return {"": self.sample(column, range(len(column)))}
        return self.by_category(column)

    def score(self, column: Column, scale: Scale) -> Score:
        """Return the score over all tasks."""
        return self.official(estimate(self.strata(column), self.scheme.weights, scale))

    def official(self, found: Estimate) -> Score:
        """Return *found* as official, or as a reference when a task is invalidated."""
        value, reference = (None, found.value) if self.failed else (found.value, None)
        return Score(value, reference, found.standard_error, found.interval)


def tabulate(records: Sequence[TaskRecord], scheme: Scheme) -> Table:
    """Return the table of *records*, its categories by name."""
    groups: dict[str, list[int]] = {}
    for place, record in enumerate(records):
        groups.setdefault(record.key.group, []).append(place)
    return Table(
        records,
        scheme,
        dict(sorted(groups.items())),
        own_clusters(record.key.cluster for record in records),
        any(record.invalidated for record in records),
    )
