"""One weighted mean over groups of tasks, with the standard error and the interval of exactly that estimator."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from .estimators import finite, mean, root_sum_of_squares, total
from .intervals import LEVEL, around, clustered_residuals, standard_error, wilson
from .report import Bounds, Interval

Weighting = Callable[[Mapping[str, int]], dict[str, float]]  #: from tasks per group to weights, empty groups left out
_NIL = 1e-12  #: spread below this share of the largest value is rounding


@dataclass(frozen=True, slots=True)
class Scale:
    """The least and the greatest value, None for an open end.

    *unit*: they are 0 and 1, so that no value spreads more than the successes and failures of that mean. *proportion*:
    every task's value is a success or a failure.
    """

    low: float | None = None
    high: float | None = None
    unit: bool = False
    proportion: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """The values of a group's evaluated tasks, each with its cluster, and how many tasks have none."""

    values: Sequence[float]
    clusters: Sequence[Hashable]
    missing: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value over tasks, and how sure it is."""

    value: float | None
    standard_error: float | None
    interval: Interval


@dataclass(frozen=True, slots=True)
class _Stratum:
    """A group with values, and its weight; *sums* are residuals by cluster, None when no two tasks share one."""

    name: str
    weight: float
    values: Sequence[float]
    clusters: Sequence[Hashable]
    sums: Mapping[Hashable, float] | None

    @property
    def units(self) -> int:
        """The number of independent units: clusters, or tasks."""
        return len(self.values) if self.sums is None else len(self.sums)

    def spread(self) -> dict[Hashable, float]:
        """Return what each cluster adds to the error of the weighted mean, corrected by C / (C - 1)."""
        factor = self.weight / len(self.values) * math.sqrt(self.units / (self.units - 1))
        return {cluster: factor * part for cluster, part in (self.sums or {}).items()}

    def error(self) -> float:
        """Return the standard error of the weighted mean of this group alone; it needs two units."""
        if self.sums is None:
            error = standard_error(self.values)
            return math.inf if error is None else self.weight * error
        return root_sum_of_squares(self.spread().values())


def estimate(samples: Mapping[str, Sample], weighting: Weighting, scale: Scale) -> Estimate:
    """Return the weighted mean of the group means, with its standard error and interval.

    For one group, the mean with the usual or the clustered error (Miller 2024, arXiv 2411.00640). For several,
    sqrt(sum of (w_g SE_g)^2), which for equal weights is sqrt(sum of SE_g^2) / G; a cluster with tasks in several
    groups adds up before it is squared. Undefined when a group has a single task or cluster.
    """
    strata = _strata(samples, weighting)
    if not strata:
        return Estimate(None, None, _none("no task was evaluated"))
    value = _value(strata)
    lone = [stratum.name for stratum in strata if stratum.units < 2]
    error = None if lone else _error(strata)
    return Estimate(value, error, _interval(strata, value, error, scale, lone))


def alone(sizes: Mapping[str, int]) -> dict[str, float]:
    """Weight the only group there is, unless it is empty."""
    return {name: 1.0 for name, size in sizes.items() if size}


def bounds(samples: Mapping[str, Sample], weighting: Weighting, scale: Scale) -> Bounds | None:
    """Return the value with every missing task at the least and at the greatest value.

    None when none is missing, or the scale has an open end.
    """
    weights = weighting({name: len(sample.values) + sample.missing for name, sample in samples.items()})
    if scale.low is None or scale.high is None or not any(samples[name].missing for name in weights):
        return None
    low, high = (_filled(samples, weights, end) for end in (scale.low, scale.high))
    return Bounds(low, high)


def _filled(samples: Mapping[str, Sample], weights: Mapping[str, float], fill: float) -> float:
    parts = []
    for name, weight in weights.items():
        sample = samples[name]
        share = sample.missing / (len(sample.values) + sample.missing)
        parts.append(weight * ((mean(sample.values) or 0.0) * (1 - share) + fill * share))
    return math.fsum(parts) / math.fsum(weights.values())


def _strata(samples: Mapping[str, Sample], weighting: Weighting) -> list[_Stratum]:
    weights = weighting({name: len(sample.values) for name, sample in samples.items()})
    used = {name: samples[name] for name in weights}
    sizes = Counter(cluster for sample in used.values() for cluster in sample.clusters)
    shared = len(sizes) < sum(len(sample.values) for sample in used.values())
    return [
        _Stratum(
            name,
            weights[name],
            sample.values,
            sample.clusters,
            clustered_residuals(sample.values, sample.clusters) if shared else None,
        )
        for name, sample in used.items()
    ]


def _value(strata: Sequence[_Stratum]) -> float:
    weight = math.fsum(stratum.weight for stratum in strata)
    return math.fsum(stratum.weight * (mean(stratum.values) or 0.0) for stratum in strata) / weight


def _error(strata: Sequence[_Stratum]) -> float | None:
    if strata[0].sums is None:
        error = root_sum_of_squares(stratum.error() for stratum in strata)
    else:
        parts: dict[Hashable, list[float]] = {}
        for stratum in strata:
            for cluster, part in stratum.spread().items():
                parts.setdefault(cluster, []).append(part)
        error = root_sum_of_squares(total(each) for each in parts.values())
    return error if finite(error) else None


def _interval(
    strata: Sequence[_Stratum], value: float, error: float | None, scale: Scale, lone: Sequence[str]
) -> Interval:
    clustered = strata[0].sums is not None
    if scale.proportion and len(strata) == 1 and not clustered:
        n = len(strata[0].values)
        return _clipped(wilson(round(value * n), n), scale, "wilson", "")
    if error is None:
        return _none(_why_undefined(strata, lone, clustered=clustered))
    if error <= _NIL * max(abs(number) for stratum in strata for number in stratum.values):
        return _without_spread(strata, value, scale)
    several = "stratified_" if len(strata) > 1 else ""
    method = f"{several}{'clustered_' if clustered else ''}t"
    return _clipped(around(value, error, _degrees_of_freedom(strata)), scale, method, "")


def _why_undefined(strata: Sequence[_Stratum], lone: Sequence[str], *, clustered: bool) -> str:
    unit = "cluster" if clustered else "task"
    if not lone:
        return "the spread is beyond the largest number"
    if len(strata) == 1:
        return f"a single {unit} shows no spread"
    return f"{listed(lone)}: a single {unit} shows no spread"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return the first of *names*, quoted, and how many there are beyond."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def _without_spread(strata: Sequence[_Stratum], value: float, scale: Scale) -> Interval:
    """Not a width of 0: that would claim certainty, where the tasks only happen to agree."""
    if not scale.unit or value not in (0.0, 1.0):
        return _none("the values do not differ, so their spread is unknown")
    n = _effective_size(strata)
    return _clipped(wilson(value * n, n), scale, "wilson", f"the values do not differ; {n:.4g} effective tasks")


def _effective_size(strata: Sequence[_Stratum]) -> float:
    """Return how many equally weighted tasks are worth as much: 1 / sum of squared weights (Kish 1965, section 11.7).

    A cluster counts as one task, the worst case of its dependence.
    """
    shares: dict[Hashable, list[float]] = {}
    for stratum in strata:
        for cluster in stratum.clusters:
            shares.setdefault(cluster, []).append(stratum.weight / len(stratum.values))
    weight = math.fsum(stratum.weight for stratum in strata)
    return weight**2 / math.fsum(math.fsum(each) ** 2 for each in shares.values())


def _degrees_of_freedom(strata: Sequence[_Stratum]) -> float:
    """Return those of Welch 1947 and Satterthwaite 1946 for a sum of independent errors; n - 1 for one group.

    Where clusters cross groups the errors are dependent, and their number less one is the limit.
    """
    errors = [stratum.error() for stratum in strata]
    largest = max(errors)
    squares = [(error / largest) ** 2 for error in errors]
    spread = math.fsum(square**2 / (stratum.units - 1) for square, stratum in zip(squares, strata, strict=True))
    units = {cluster for stratum in strata for cluster in stratum.clusters}
    return min(math.fsum(squares) ** 2 / spread, len(units) - 1)


def _clipped(ends: tuple[float, float] | None, scale: Scale, method: str, note: str) -> Interval:
    if ends is None or not all(map(finite, ends)):
        return _none("the spread is beyond the largest number")
    low = ends[0] if scale.low is None else max(ends[0], scale.low)
    high = ends[1] if scale.high is None else min(ends[1], scale.high)
    return Interval(low, high, LEVEL, method, note)


def _none(note: str) -> Interval:
    return Interval(None, None, LEVEL, "none", note)
