"""Two runs compared on the tasks that both have: the paired difference, how sure it is, and which tasks changed.

Miller 2024, "Adding Error Bars to Evals" (arXiv 2411.00640), section 4: differences within tasks leave out what tasks
have in common, so that the paired error is smaller than that of two separate means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .distributions import normal_quantile, regularized_beta
from .estimators import mean, root_sum_of_squares
from .intervals import (
    Range,
    around,
    bootstrap_interval,
    clustered_standard_error,
    own_clusters,
    standard_error,
)

BOOTSTRAP_SEED, RESAMPLES = 20240101, 2000
POWER, SIZE = 0.8, 0.05  #: of the least difference that a comparison is likely to show


@dataclass(frozen=True, slots=True)
class Side:
    """One run: the value of each evaluated task by id, and the cluster of those that share one.

    *trials*: every value is the success (1) or failure (0) of a single attempt.
    """

    name: str
    values: Mapping[str, float]
    clusters: Mapping[str, str | None] = field(default_factory=dict)
    trials: bool = False


@dataclass(frozen=True, slots=True)
class Flips:
    """How the tasks of two binary runs went: *first* and *second* are the ids that only that run has right."""

    both: int
    neither: int
    first: tuple[str, ...]
    second: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The difference *second* minus *first* over the *common* tasks.

    *standard_error* is the paired one, None for fewer than two tasks or clusters; *unpaired* is what two separate means
    would say. *exact* is the two-sided p of McNemar's exact test, for single trials only. *detectable* is the least
    true difference that such a comparison shows four times in five.
    """

    first: str
    second: str
    common: int
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    means: tuple[float, float] | None
    difference: float | None
    standard_error: float | None
    unpaired: float | None
    clustered: bool
    interval: Range | None
    bootstrap: Range | None
    p_value: float | None
    exact: float | None
    flips: Flips | None
    detectable: float | None
    adjusted: float | None = None  #: the p among several comparisons, by Holm

    @property
    def decisive_p(self) -> float | None:
        """The p that counts: the exact one where there is one."""
        return self.exact if self.exact is not None else self.p_value


def compare(first: Side, second: Side) -> Comparison:
    """Return how *second* differs from *first*."""
    ids = [task for task in first.values if task in second.values]
    pairs = [(first.values[task], second.values[task]) for task in ids]
    differences = [b - a for a, b in pairs]
    clusters = [first.clusters.get(task) for task in ids]
    clustered = len(set(own_clusters(clusters))) < len(ids)
    error = clustered_standard_error(differences, clusters) if clustered else standard_error(differences)
    df = len(set(own_clusters(clusters))) - 1
    center = mean(differences)
    flips = _flips(ids, pairs) if first.trials and second.trials else None
    return Comparison(
        first.name,
        second.name,
        len(ids),
        tuple(task for task in first.values if task not in second.values),
        tuple(task for task in second.values if task not in first.values),
        _means(pairs),
        center,
        error,
        _unpaired(pairs),
        clustered,
        None if center is None or error is None else around(center, error, df),
        bootstrap_interval(differences, _average, BOOTSTRAP_SEED, RESAMPLES),
        _t_test(center, error, df),
        mcnemar(len(flips.first), len(flips.second)) if flips else None,
        flips,
        None if error is None else least_difference(error),
    )


def _average(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _means(pairs: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    first, second = mean([a for a, _ in pairs]), mean([b for _, b in pairs])
    return None if first is None or second is None else (first, second)


def _unpaired(pairs: Sequence[tuple[float, float]]) -> float | None:
    errors = [standard_error([pair[side] for pair in pairs]) for side in (0, 1)]
    known = [error for error in errors if error is not None]
    return root_sum_of_squares(known) if len(known) == len(errors) else None


def _t_test(center: float | None, error: float | None, df: int) -> float | None:
    """Return the two-sided p of no difference; Abramowitz and Stegun 26.7.1."""
    if center is None or error is None:
        return None
    if error == 0:
        return 1.0 if center == 0 else 0.0
    t = center / error
    return regularized_beta(df / 2, 0.5, df / (df + t * t))


def _flips(ids: Sequence[str], pairs: Sequence[tuple[float, float]]) -> Flips:
    outcomes = [(a >= 1, b >= 1) for a, b in pairs]
    return Flips(
        sum(outcome == (True, True) for outcome in outcomes),
        sum(outcome == (False, False) for outcome in outcomes),
        tuple(task for task, outcome in zip(ids, outcomes, strict=True) if outcome == (True, False)),
        tuple(task for task, outcome in zip(ids, outcomes, strict=True) if outcome == (False, True)),
    )


def mcnemar(first: int, second: int) -> float:
    """Return the two-sided p of *first* against *second* discordant pairs under equal chances, by the binomial.

    McNemar 1947 (Psychometrika 12, 153-157), in its exact form.
    """
    n, least = first + second, min(first, second)
    tail: float = sum(math.comb(n, successes) for successes in range(least + 1)) / (1 << n)
    return min(1.0, 2 * tail)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return *p_values* adjusted for being several, in their order; None stays None.

    Holm 1979 (Scandinavian Journal of Statistics 6, 65-70).
    """
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, index) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - rank)))
        adjusted[index] = largest
    return adjusted


def least_difference(error: float, size: float = SIZE, power: float = POWER) -> float:
    """Return the least true difference that a comparison with this standard *error* shows with chance *power*.

    Miller 2024, section 5: (z of size/2 + z of power) times the standard error.
    """
    return (normal_quantile(1 - size / 2) + normal_quantile(power)) * error


def tasks_needed(difference: float, spread: float, size: float = SIZE, power: float = POWER) -> int:
    """Return how many tasks show *difference*, when differences within tasks have the standard deviation *spread*.

    Raises:
        ValueError: the difference is not positive.
    """
    if not difference > 0:
        raise ValueError(f"{difference} is no difference")
    return math.ceil(((normal_quantile(1 - size / 2) + normal_quantile(power)) * spread / difference) ** 2)
