"""Standard errors and intervals: worked values, edges, and what every interval owes its data."""

from __future__ import annotations

import math

import pytest

from agentcompass.core.metrics.estimators import mean
from agentcompass.core.metrics.intervals import (
    bootstrap_interval,
    clopper_pearson,
    clustered_standard_error,
    clustered_t_interval,
    percentile,
    standard_error,
    t_interval,
    wilson,
)

X = [1, 1, 1, 0, 0, 1, 0, 0, 1, 1, 1, 1]
THREES = [f"site {place // 3}" for place in range(12)]
FIVE_BY_THREE = ["111", "101", "000", "110", "010"]


def test_the_standard_error_has_the_published_value():
    """Twelve tasks, eight right."""
    assert pytest.approx(0.142134, abs=5e-7) == standard_error(X)


def test_the_t_interval_has_the_published_value():
    """Eleven degrees of freedom, not the normal quantile."""
    assert pytest.approx((0.353832, 0.979501), abs=5e-7) == t_interval(X)


def test_attempts_are_averaged_before_the_spread_is_taken():
    """Five tasks of three attempts: the error over tasks, not the smaller one over fifteen draws."""
    over_tasks = standard_error([mean([int(each) for each in task]) for task in FIVE_BY_THREE])
    over_draws = standard_error([int(each) for task in FIVE_BY_THREE for each in task])

    assert pytest.approx(0.169967, abs=5e-7) == over_tasks
    assert pytest.approx(0.133333, abs=5e-7) == over_draws


def test_the_clustered_standard_error_has_the_published_values():
    """Clusters of three, with and without the factor C / (C - 1)."""
    assert pytest.approx(0.192450, abs=5e-7) == clustered_standard_error(X, THREES)
    assert pytest.approx(0.166667, abs=5e-7) == clustered_standard_error(X, THREES, corrected=False)


def test_the_clustered_interval_counts_clusters():
    """Four clusters leave three degrees of freedom: t is 3.182446."""
    low, high = clustered_t_interval(X, THREES)

    assert pytest.approx((8 / 12, 3.182446 * 0.192450), abs=1e-5) == ((low + high) / 2, (high - low) / 2)


def test_clusters_of_one_change_nothing():
    """Independent tasks have the usual error, also when each has a cluster of its own, or none."""
    alone = [f"site {place}" for place in range(12)]

    assert pytest.approx(standard_error(X), rel=1e-12) == clustered_standard_error(X, alone)
    assert pytest.approx(standard_error(X), rel=1e-12) == clustered_standard_error(X, [None] * 12)


def test_a_missing_cluster_is_a_cluster_of_its_own():
    """Tasks without a cluster do not form one big cluster."""
    partly = ["a", "a", "a", *([None] * 9)]
    spelled = ["a", "a", "a", *(f"own {place}" for place in range(9))]

    assert clustered_standard_error(X, spelled) == clustered_standard_error(X, partly)
    assert clustered_standard_error(X, ["a"] * 3 + ["b"] * 9) != clustered_standard_error(X, partly)


@pytest.mark.parametrize("values", [[], [1.0]])
def test_a_single_value_shows_no_spread(values):
    """Neither an error of exactly 0 nor an interval comes from one task."""
    assert standard_error(values) is None
    assert t_interval(values) is None
    assert bootstrap_interval(values, mean, 0, 100) is None


def test_a_single_cluster_shows_no_spread():
    """One cluster is one observation, however many tasks it has."""
    assert clustered_standard_error(X, ["a"] * 12) is None
    assert clustered_t_interval(X, ["a"] * 12) is None
    assert clustered_standard_error([], []) is None


def test_clusters_and_values_must_match():
    """A cluster for each value, or a mistake."""
    with pytest.raises(ValueError, match="argument 2"):
        clustered_standard_error([1.0], ["a", "b"])


def test_an_error_beyond_the_largest_number_is_none():
    """The result is never infinite."""
    assert standard_error([1.7e308, -1.7e308]) is None
    assert clustered_standard_error([1.7e308, -1.7e308] * 2, ["a", "b"] * 2) is None
    assert clustered_standard_error([1.7e308, -1.7e308] * 2, ["a", "a", "a", "b"]) is None
    assert pytest.approx(1e300) == standard_error([1e300, -1e300])


@pytest.mark.parametrize(
    ("successes", "n", "expected"),
    [
        (8, 10, (0.490162, 0.943318)),
        (0, 30, (0, 0.113513)),
        (30, 30, (0.886487, 1)),
        (50, 164, (0.239556, 0.379132)),
    ],
)
def test_wilson_has_the_published_values(successes, n, expected):
    """All, none and some right."""
    assert pytest.approx(expected, abs=5e-7) == wilson(successes, n)


def test_wilson_ends_exactly_at_the_ends():
    """None right starts at 0, all right ends at 1; rounding moves neither."""
    assert {0.0} == {wilson(0, n)[0] for n in range(1, 300)}
    assert {1.0} == {wilson(n, n)[1] for n in range(1, 300)}


@pytest.mark.parametrize(("successes", "n", "expected"), [(8, 10, (0.443905, 0.974789)), (0, 30, (0, 0.115703))])
def test_clopper_pearson_has_the_published_values(successes, n, expected):
    """The exact interval, also for none right."""
    assert pytest.approx(expected, abs=5e-7) == clopper_pearson(successes, n)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 30, 164])
@pytest.mark.parametrize("interval", [wilson, clopper_pearson])
def test_intervals_of_proportions_hold_the_proportion(interval, n):
    """Every share of successes is inside its interval, which has width, stays in 0 to 1 and mirrors the failures'."""
    for successes in range(0, n + 1, max(1, n // 20)):
        low, high = interval(successes, n)

        assert 0 <= low <= successes / n <= high <= 1
        assert high - low > 0.01
        assert pytest.approx((1 - high, 1 - low), abs=1e-12) == interval(n - successes, n)


def test_the_exact_interval_is_the_wider_one_at_the_ends():
    """Clopper and Pearson are conservative where nothing, or everything, succeeds."""
    assert clopper_pearson(0, 30)[1] > wilson(0, 30)[1]
    assert clopper_pearson(30, 30)[0] < wilson(30, 30)[0]


@pytest.mark.parametrize("interval", [wilson, clopper_pearson])
def test_a_proportion_of_nothing_has_no_interval(interval):
    """No trials, no interval; more successes than trials are a mistake."""
    assert interval(0, 0) is None
    with pytest.raises(ValueError, match="4 successes in 3 trials"):
        interval(4, 3)


def test_the_level_widens_intervals():
    """More confidence is more width, by every method."""
    for method in (t_interval, lambda values, level: wilson(8, 12, level)):
        narrow, wide = method(X, 0.8), method(X, 0.99)
        assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_the_bootstrap_repeats_itself():
    """A seed gives the same bytes each time, on every machine; another seed gives others."""
    values = [0.1 * place**2 for place in range(20)]

    assert pytest.approx((7.17475, 18.200625), rel=1e-12) == bootstrap_interval(values, mean, 7, 200)
    assert bootstrap_interval(values, mean, 7, 200) == bootstrap_interval(values, mean, 7, 200)
    assert bootstrap_interval(values, mean, 7, 200) != bootstrap_interval(values, mean, 8, 200)


def test_the_bootstrap_does_not_see_the_order():
    """The interval belongs to the values, not to how they are listed."""
    values = [3.0, 1.0, 10.0, 2.5, 7.0]

    assert bootstrap_interval(values, mean, 0, 300) == bootstrap_interval(values[::-1], mean, 0, 300)


def test_the_bootstrap_agrees_with_t_for_well_behaved_values():
    """For the mean of many values both intervals are nearly the same."""
    values = [math.sin(place) for place in range(150)]

    assert pytest.approx(t_interval(values), abs=0.02) == bootstrap_interval(values, mean, 1, 1000)


def test_the_bootstrap_takes_any_statistic():
    """The interval of a maximum lies among the values and ends at the largest."""
    low, high = bootstrap_interval([1.0, 2.0, 3.0, 9.0], max, 0, 400)

    assert 9.0 == high
    assert low in (1.0, 2.0, 3.0)


def test_the_bootstrap_needs_resamples():
    """No draws, no interval."""
    with pytest.raises(ValueError, match="give 1 or more"):
        bootstrap_interval(X, mean, 0, 0)


def test_percentiles_are_linear_between_neighbours():
    """Type 7 of Hyndman and Fan, as most software has it."""
    assert [1.0, 1.75, 2.5, 4.0] == [percentile([1.0, 2.0, 3.0, 4.0], p) for p in (0, 0.25, 0.5, 1)]
