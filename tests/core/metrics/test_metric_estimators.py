"""Point estimates: worked values, brute force, and sums that do not lose digits."""

from __future__ import annotations

from itertools import combinations

import pytest

from agentcompass.core.metrics.estimators import finite, mean, pass_at_k, pass_hat_k, root_sum_of_squares

SMALL = [(n, c, k) for n in range(1, 8) for c in range(n + 1) for k in range(1, n + 1)]


@pytest.mark.parametrize(("k", "value"), [(1, 0.3), (2, 0.533333), (3, 0.708333), (5, 0.916667), (8, 1.0)])
def test_pass_at_k_has_the_published_values(k, value):
    """Ten attempts, three of them right."""
    assert pytest.approx(value, abs=5e-7) == pass_at_k(10, 3, k)


@pytest.mark.parametrize(
    ("k", "value"), [(1, 0.8), (2, 0.622222), (3, 0.466667), (5, 0.222222), (8, 0.022222), (9, 0.0)]
)
def test_pass_hat_k_has_the_published_values(k, value):
    """Ten attempts, eight of them right."""
    assert pytest.approx(value, abs=5e-7) == pass_hat_k(10, 8, k)


@pytest.mark.parametrize(("n", "c", "k"), SMALL)
def test_both_estimators_count_subsets(n, c, k):
    """pass@k is the share of k-subsets with a success, pass^k that of those without a failure."""
    subsets = list(combinations([True] * c + [False] * (n - c), k))

    assert pytest.approx(sum(map(any, subsets)) / len(subsets), abs=1e-15) == pass_at_k(n, c, k)
    assert pytest.approx(sum(map(all, subsets)) / len(subsets), abs=1e-15) == pass_hat_k(n, c, k)


@pytest.mark.parametrize("c", [0, 2, 4])
def test_fewer_attempts_than_drawn_have_no_estimate(c):
    """n < k is undefined, even with every attempt right; it is never 1.0."""
    assert pass_at_k(4, c, 5) is None
    assert pass_hat_k(4, c, 5) is None


def test_many_attempts_keep_their_digits():
    """A chance that a difference from 1 would round away survives."""
    assert pytest.approx(1e-4, rel=1e-12) == pass_at_k(10_000, 1, 1)
    assert 1.0 == pass_at_k(10_000, 9_999, 2)
    assert 0.0 < pass_hat_k(1_000, 500, 500) < 1e-290


def test_any_of_all_and_all_of_all_are_certain():
    """With k = n, pass@k is whether any succeeded, pass^k whether all did."""
    assert [0.0, 1.0, 1.0, 1.0] == [pass_at_k(3, c, 3) for c in range(4)]
    assert [0.0, 0.0, 0.0, 1.0] == [pass_hat_k(3, c, 3) for c in range(4)]


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 0), (-1, 0, 1)])
def test_impossible_counts_are_refused(n, c, k):
    """More successes than attempts, or no draw, is a mistake of the caller."""
    for estimator in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match="give 0 <= c <= n"):
            estimator(n, c, k)


def test_the_mean_of_nothing_is_nothing():
    """No values have no mean, in particular not 0."""
    assert mean([]) is None


def test_the_mean_is_exact_and_without_order():
    """Cancellation loses nothing, and equal values have exactly that mean."""
    assert 1 / 3 == mean([1e100, 1.0, -1e100]) == mean([1.0, 1e100, -1e100])
    assert 0.1 == mean([0.1] * 7)
    assert 1.7e308 == mean([1.7e308] * 3)


def test_the_mean_of_booleans_is_a_number():
    """A value that leaves the estimators is a float, whatever entered."""
    assert float is type(mean([True, True]))


def test_squares_neither_overflow_nor_vanish():
    """The root of a sum of squares is in range whenever its terms are."""
    assert pytest.approx(5e200) == root_sum_of_squares([3e200, -4e200])
    assert pytest.approx(5e-200) == root_sum_of_squares([3e-200, 4e-200])
    assert 0.0 == root_sum_of_squares([])


def test_finite_takes_numbers_that_a_float_can_hold():
    """Whole numbers may be too large for a float."""
    assert [True, True, False, False, False] == [
        finite(value) for value in (1, 1.5, float("nan"), float("-inf"), 10**400)
    ]
