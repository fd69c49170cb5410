"""Point estimates: the mean over tasks, and the two estimators of repeated success within one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def finite(value: float) -> bool:
    """Tell whether *value* is a finite number that a float can hold (an int may be too large)."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def mean(values: Sequence[float]) -> float | None:
    """Return the arithmetic mean, or None for no values.

    The sum is exactly rounded, so the order of *values* does not matter; equal values have exactly that mean.
    """
    if not values:
        return None
    n = len(values)
    try:
        average = math.fsum(values) / n
    except OverflowError:  # the sum is beyond the largest float although the mean is not
        average = math.fsum(value / n for value in values)
    return float(min(max(average, min(values)), max(values)))


def total(values: Iterable[float]) -> float:
    """Return the exactly rounded sum, or infinity when it, or a part of it, is beyond the largest float."""
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # ValueError: infinities of both signs
        return math.inf


def root_sum_of_squares(values: Iterable[float]) -> float:
    """Return the square root of the sum of squares, without overflow of the squares and in any order alike."""
    sizes = [abs(value) for value in values]
    largest = max(sizes, default=0.0)
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    return largest * math.sqrt(math.fsum((size / largest) ** 2 for size in sizes))


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Return the chance that any of *k* attempts succeeds, when *c* of *n* did; None when n < k.

    The unbiased estimator 1 - C(n-c, k) / C(n, k) of Chen et al. 2021 (arXiv 2107.03374, section 2.1), in whole
    numbers up to one correctly rounded division.

    Raises:
        ValueError: not 0 <= c <= n, or k < 1.
    """
    _check_counts(n, c, k)
    if n < k:
        return None
    ways = math.comb(n, k)
    return (ways - math.comb(n - c, k)) / ways


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """Return the chance that all of *k* attempts succeed, when *c* of *n* did; None when n < k.

    The unbiased estimator C(c, k) / C(n, k) of tau-bench (Yao et al. 2024, arXiv 2406.12045, section 3, pass^k).

    Raises:
        ValueError: not 0 <= c <= n, or k < 1.
    """
    _check_counts(n, c, k)
    return math.comb(c, k) / math.comb(n, k) if n >= k else None


def _check_counts(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n or k < 1:
        raise ValueError(f"{c} successes in {n} attempts, {k} drawn: give 0 <= c <= n and k >= 1")
