"""How sure a mean is: standard errors and intervals over tasks; None where the data cannot tell."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Hashable, Iterable, Sequence

from .distributions import inverse_regularized_beta, normal_quantile, t_quantile
from .estimators import mean, root_sum_of_squares, total

LEVEL = 0.95  #: of every interval in a report
Range = tuple[float, float]


def residuals(values: Sequence[float]) -> list[float]:
    """Return the differences of *values* from their mean."""
    center = mean(values)
    return [] if center is None else [value - center for value in values]


def standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of the mean of independent *values*: sd (n - 1) / sqrt(n).

    Miller 2024, "Adding Error Bars to Evals" (arXiv 2411.00640), section 2. None for fewer than two values, which show
    no spread, and where it is beyond the largest float.
    """
    n = len(values)
    if n < 2:
        return None
    return _finite(root_sum_of_squares(residuals(values)) / math.sqrt(n * (n - 1)))


def own_clusters(clusters: Iterable[str | None]) -> list[Hashable]:
    """Return the cluster of each value, where one without a cluster is a cluster of its own."""
    return [index if cluster is None else cluster for index, cluster in enumerate(clusters)]


def clustered_residuals(values: Sequence[float], clusters: Sequence[Hashable]) -> dict[Hashable, float]:
    """Return the sum of the residuals of each cluster."""
    members: dict[Hashable, list[float]] = {}
    for cluster, residual in zip(clusters, residuals(values), strict=True):
        members.setdefault(cluster, []).append(residual)
    return {cluster: total(parts) for cluster, parts in members.items()}


def clustered_standard_error(
    values: Sequence[float], clusters: Sequence[str | None], *, corrected: bool = True
) -> float | None:
    """Return the standard error of the mean when *values* depend on each other within *clusters*.

    sqrt(sum over clusters of (sum of residuals)^2) / n, Miller 2024 (arXiv 2411.00640), section 2.2; *corrected* by
    sqrt(C / (C - 1)) for C clusters, without which few clusters look too sure. None for fewer than two clusters. A
    value whose cluster is None is a cluster of its own.

    Raises:
        ValueError: *values* and *clusters* differ in length.
    """
    sums = clustered_residuals(values, own_clusters(clusters))
    count = len(sums)
    if count < 2:
        return None
    factor = math.sqrt(count / (count - 1)) if corrected else 1.0
    return _finite(factor * root_sum_of_squares(sums.values()) / len(values))


def around(center: float, error: float, df: float, level: float = LEVEL) -> Range:
    """Return *center* plus and minus *error* times the t quantile with *df* degrees of freedom."""
    half = t_quantile((1 + level) / 2, df) * error
    return center - half, center + half


def t_interval(values: Sequence[float], level: float = LEVEL) -> Range | None:
    """Return the t interval of the mean of independent *values*, n - 1 degrees of freedom; None for n < 2."""
    center, error = mean(values), standard_error(values)
    return None if center is None or error is None else around(center, error, len(values) - 1, level)


def clustered_t_interval(values: Sequence[float], clusters: Sequence[str | None], level: float = LEVEL) -> Range | None:
    """Return the t interval of the mean of clustered *values*, C - 1 degrees of freedom; None for C < 2."""
    center, error = mean(values), clustered_standard_error(values, clusters)
    if center is None or error is None:
        return None
    return around(center, error, len(set(own_clusters(clusters))) - 1, level)


def wilson(successes: float, n: float, level: float = LEVEL) -> Range | None:
    """Return the score interval of a proportion; None for n = 0.

    Wilson 1927 (JASA 22, 209-212). It has width also when none or all succeed. *n* may be an effective number of
    trials, hence not whole.

    Raises:
        ValueError: not 0 <= successes <= n.
    """
    _check_proportion(successes, n)
    if n == 0:
        return None
    z, share = normal_quantile((1 + level) / 2), successes / n
    shrink = 1 + z * z / n
    center = (share + z * z / (2 * n)) / shrink
    half = z / shrink * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (
        0.0 if successes == 0 else max(0.0, center - half),
        1.0 if successes == n else min(1.0, center + half),
    )


def clopper_pearson(successes: int, n: int, level: float = LEVEL) -> Range | None:
    """Return the exact interval of a proportion, from beta quantiles; None for n = 0.

    Clopper and Pearson 1934 (Biometrika 26, 404-413).

    Raises:
        ValueError: not 0 <= successes <= n.
    """
    _check_proportion(successes, n)
    if n == 0:
        return None
    tail, failures = (1 - level) / 2, n - successes
    low = inverse_regularized_beta(successes, failures + 1, tail) if successes else 0.0
    high = 1 - inverse_regularized_beta(failures, successes + 1, tail) if failures else 1.0
    return low, high


def bootstrap_interval(
    values: Sequence[float],
    statistic: Callable[[Sequence[float]], float],
    seed: int,
    resamples: int,
    level: float = LEVEL,
) -> Range | None:
    """Return the percentile bootstrap interval of *statistic*; None for fewer than two values.

    Efron and Tibshirani 1993, chapter 13. The draws are SHAKE-256 output, so that a seed means the same interval on
    every machine and in every release; *values* are sorted first, so that their order does not matter.

    Raises:
        ValueError: resamples < 1.
    """
    if resamples < 1:
        raise ValueError(f"{resamples} resamples: give 1 or more")
    if len(values) < 2:
        return None
    ordered = sorted(values)
    drawn = sorted(statistic(_resample(ordered, seed, round_)) for round_ in range(resamples))
    tail = (1 - level) / 2
    return percentile(drawn, tail), percentile(drawn, 1 - tail)


def _resample(values: Sequence[float], seed: int, round_: int) -> list[float]:
    """Draw len(values) of *values* with replacement; 32 random bits each leave a bias below n / 2**32."""
    n = len(values)
    words = hashlib.shake_256(f"{seed}/{round_}".encode()).digest(4 * n)
    return [values[word * n >> 32] for word in struct.unpack(f"<{n}I", words)]


def percentile(ordered: Sequence[float], p: float) -> float:
    """Return the *p* quantile of sorted values, linear between neighbours (Hyndman and Fan 1996, type 7)."""
    place = p * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _check_proportion(successes: float, n: float) -> None:
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n} trials")
