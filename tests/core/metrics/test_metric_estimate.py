"""The weighted mean of groups: its error, its interval, and what it says when it has none."""

from __future__ import annotations

import math

import pytest

from agentcompass.core.metrics.distributions import t_quantile
from agentcompass.core.metrics.estimate import Sample, Scale, alone, bounds, estimate
from agentcompass.core.metrics.intervals import clustered_t_interval, own_clusters, t_interval, wilson

UNIT = Scale(0.0, 1.0, unit=True)
SHARE = Scale(0.0, 1.0, unit=True, proportion=True)
X = [1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]


def samples(*groups, missing=0):
    """Make a sample per group of values or of (value, cluster) pairs; other tasks are their own clusters."""
    made = {}
    for number, group in enumerate(groups):
        pairs = [each if isinstance(each, tuple) else (each, f"{number}/{place}") for place, each in enumerate(group)]
        made[f"g{number}"] = Sample([value for value, _ in pairs], [cluster for _, cluster in pairs], missing)
    return made


def evenly(sizes):
    used = [name for name, size in sizes.items() if size]
    return {name: 1 / len(used) for name in used}


def test_one_group_has_the_usual_interval():
    """A scalar mean has the t interval of its values, unclipped on an open scale."""
    found = estimate(samples(X), alone, Scale())

    assert "t" == found.interval.method
    assert t_interval(X) == (found.interval.low, found.interval.high)


def test_shared_clusters_widen_the_interval():
    """Clustered tasks have the clustered interval, and the method says so."""
    sites = [f"s{place // 3}" for place in range(12)]
    found = estimate(samples(list(zip(X, sites, strict=True))), alone, Scale())

    assert "clustered_t" == found.interval.method
    assert pytest.approx(0.192450, abs=5e-7) == found.standard_error
    assert pytest.approx(clustered_t_interval(X, sites)) == (found.interval.low, found.interval.high)


def test_single_attempts_at_success_have_the_wilson_interval():
    """Independent successes and failures do not rest on a normal approximation."""
    found = estimate(samples([1.0] * 8 + [0.0] * 2), alone, SHARE)

    assert "wilson" == found.interval.method
    assert wilson(8, 10) == (found.interval.low, found.interval.high)


def test_one_success_has_an_interval_but_no_error():
    """A single task shows no spread, yet a proportion of one has its bounds."""
    found = estimate(samples([1.0]), alone, SHARE)

    assert found.standard_error is None
    assert wilson(1, 1) == (found.interval.low, found.interval.high)


def test_clustered_successes_have_no_wilson_interval():
    """Dependent tasks are fewer than they look."""
    found = estimate(samples([(1.0, "a"), (1.0, "a"), (0.0, "b"), (1.0, "c")]), alone, SHARE)

    assert "clustered_t" == found.interval.method


def test_intervals_end_with_the_scale():
    """No interval promises a value that the metric cannot take."""
    found = estimate(samples([1.0, 1.0, 0.9, 0.2]), alone, UNIT)

    assert (1.0, True) == (found.interval.high, 0.0 <= found.interval.low < 0.5)


def test_the_error_of_a_macro_mean_is_its_own():
    """sqrt(SE_1^2 + SE_2^2) / 2, and Welch's degrees of freedom."""
    first, second = [1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0]  # errors 1/4 and 1/3
    found = estimate(samples(first, second), evenly, Scale())
    error = math.sqrt(1 / 16 + 1 / 9) / 2
    df = (1 / 16 + 1 / 9) ** 2 / ((1 / 16) ** 2 / 3 + (1 / 9) ** 2 / 2)

    assert pytest.approx((3 / 4 + 1 / 3) / 2) == found.value
    assert pytest.approx(error) == found.standard_error
    assert "stratified_t" == found.interval.method
    assert pytest.approx(found.value + t_quantile(0.975, df) * error) == found.interval.high


def test_clusters_within_groups_add_up_like_groups():
    """When no cluster crosses groups, the macro error is sqrt(sum of squared clustered errors) / G."""
    group = [(1.0, "a"), (1.0, "a"), (0.0, "b"), (1.0, "c")]
    other = [(value, f"other {cluster}") for value, cluster in group]
    single = estimate(samples(group), alone, Scale()).standard_error

    assert pytest.approx(single / math.sqrt(2)) == estimate(samples(group, other), evenly, Scale()).standard_error


def test_clusters_that_cross_groups_do_not_average_out():
    """Two groups of the same two clusters are as unsure together as each is alone; one degree of freedom is left."""
    group = [(1.0, "a"), (0.0, "b")]
    found = estimate(samples(group, group), evenly, Scale())

    assert pytest.approx(0.5) == found.standard_error
    assert pytest.approx(0.5 + t_quantile(0.975, 1) * 0.5) == found.interval.high
    assert "stratified_clustered_t" == found.interval.method


def test_a_group_of_one_leaves_the_macro_error_undefined():
    """The value stands, the error does not, and the note names the group."""
    found = estimate(samples([1.0, 0.0], [1.0]), evenly, Scale())

    assert (0.75, None) == (found.value, found.standard_error)
    assert (None, None, "none") == (found.interval.low, found.interval.high, found.interval.method)
    assert "'g1': a single task shows no spread" == found.interval.note


def test_a_single_cluster_leaves_the_error_undefined():
    """One shared cluster is one observation."""
    found = estimate(samples([(1.0, "a"), (0.0, "a")]), alone, Scale())

    assert found.standard_error is None
    assert "a single cluster shows no spread" == found.interval.note


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_agreement_at_an_end_is_not_certainty(value):
    """All fractions at 0 or at 1 have the width of a proportion of as many tasks."""
    found = estimate(samples([value] * 5), alone, UNIT)

    assert 0.0 == found.standard_error
    assert wilson(5 * value, 5) == (found.interval.low, found.interval.high)


def test_agreement_of_clusters_counts_clusters():
    """Twelve right tasks of four equal clusters are four observations."""
    found = estimate(samples([(1.0, f"s{place // 3}") for place in range(12)]), alone, SHARE)

    assert pytest.approx(wilson(4, 4)) == (found.interval.low, found.interval.high)


def test_agreement_elsewhere_has_no_interval():
    """Equal values within the scale show no spread, so none is claimed."""
    for scale, value in ((UNIT, 0.1), (Scale(), 1.0)):
        found = estimate(samples([value] * 7), alone, scale)

        assert (value, 0.0, "none") == (found.value, found.standard_error, found.interval.method)


def test_clusters_that_cancel_have_no_interval():
    """Clusters with the same mean leave rounding for an error; it is not taken for certainty."""
    found = estimate(samples([(0.1, "a"), (0.3, "a"), (0.3, "b"), (0.1, "b")]), alone, UNIT)

    assert "none" == found.interval.method


def test_nothing_has_no_value():
    """No evaluated task: neither value, nor error, nor interval."""
    found = estimate(samples([], missing=3), alone, SHARE)

    assert (None, None, "no task was evaluated") == (found.value, found.standard_error, found.interval.note)


def test_spread_beyond_any_number_has_no_interval():
    """An interval that a float cannot hold is not given."""
    for group in ([1.7e308, -1.7e308], [(1.7e308, "a"), (-1.7e308, "b"), (1.7e308, "a"), (-1.7e308, "b")]):
        found = estimate(samples(group), alone, Scale())

        assert (0.0, None, "none") == (found.value, found.standard_error, found.interval.method)
        assert "the spread is beyond the largest number" == found.interval.note


def test_bounds_fill_missing_tasks_with_the_ends_of_the_scale():
    """Eight of ten tasks right, two missing: between 0.8 and 1."""
    found = bounds(samples([1.0] * 8, missing=2), alone, SHARE)

    assert pytest.approx((0.8, 1.0)) == (found.low, found.high)


def test_bounds_are_filled_within_groups():
    """A wholly missing group counts as much as another in a macro mean."""
    found = bounds({"a": Sample([1.0], ["x"], 1), "b": Sample([], [], 4)}, evenly, Scale(-1.0, 3.0))

    assert pytest.approx(((1 - 1) / 2 / 2 - 1 / 2, (1 + 3) / 2 / 2 + 3 / 2)) == (found.low, found.high)


def test_bounds_need_missing_tasks_and_a_range():
    """Complete runs need none; an open scale has none."""
    assert bounds(samples([1.0]), alone, SHARE) is None
    assert bounds(samples([1.0], missing=1), alone, Scale(low=0.0)) is None
    assert bounds({}, alone, SHARE) is None


def test_own_clusters_never_meet_named_ones():
    """A task without a cluster is apart even from one whose cluster is spelled like its place."""
    assert 3 == len(set(own_clusters([None, "0", None])))
