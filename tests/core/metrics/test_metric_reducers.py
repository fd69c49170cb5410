"""From attempts to the value of a task, and which series a plan has."""

from __future__ import annotations

import pytest

from agentcompass.core.metrics.contract import MetricKind, MetricSpec, binary_contract, scalar_contract
from agentcompass.core.metrics.reducers import Reducer, partial_mean, planned_series, reduce_task, successes
from agentcompass.core.model.request import AttemptPlan, Strategy

STEPS = MetricSpec("steps", MetricKind.SCALAR)
SAFE = MetricSpec("safe", MetricKind.BINARY_SUCCESS)


def ids(contract, k, strategy):
    return [series.series_id for series in planned_series(contract, AttemptPlan(k, strategy))]


@pytest.mark.parametrize("strategy", Strategy)
def test_one_attempt_has_native_series(strategy):
    """With k = 1 every declared metric is shown as it is, under either strategy."""
    assert ["correct.native@1", "steps.native@1"] == ids(binary_contract(STEPS), 1, strategy)


def test_avg_has_a_mean_for_every_metric_and_pass_for_binary_ones():
    """Under avg the primary metric comes first, and scalars have no pass series."""
    expected = ["correct.avg@3", "correct.pass@3", "steps.avg@3", "safe.avg@3", "safe.pass@3"]

    assert expected == ids(binary_contract(STEPS, SAFE), 3, Strategy.AVG)
    assert ["score.avg@2"] == ids(scalar_contract(), 2, Strategy.AVG)


def test_pass_has_only_the_primary_series():
    """Early stops leave no fair mean, and none of the auxiliary metrics."""
    assert ["correct.pass@3"] == ids(binary_contract(STEPS, SAFE), 3, Strategy.PASS)


def test_roles_and_proportions_follow_the_metric():
    """Headline is whatever comes from the primary metric; a mean of attempts is no success or failure."""
    series = planned_series(binary_contract(STEPS), AttemptPlan(2, Strategy.AVG))

    assert ["headline", "headline", "auxiliary"] == [each.role for each in series]
    assert [False, True, False] == [each.proportion for each in series]


@pytest.mark.parametrize(("values", "expected"), [([True], 1.0), ([False], 0.0), ([0.25], 0.25), ([None], None)])
def test_native_is_the_value(values, expected):
    """A missing value stays missing; it does not become 0."""
    assert expected == reduce_task(Reducer.NATIVE, values)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, False, True, True], 0.75),
        ([0.5, 2], 1.25),
        ([False, False], 0.0),
        ([True, None], None),
        ([None, None], None),
    ],
)
def test_avg_needs_every_value(values, expected):
    """The mean of k attempts is of all k, or there is none."""
    assert expected == reduce_task(Reducer.AVG, values)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([False, True, None], 1.0),
        ([None, None, True], 1.0),
        ([True, True, True], 1.0),
        ([False, False, False], 0.0),
        ([False, None, False], None),
        ([None, None, None], None),
    ],
)
def test_pass_needs_one_success_or_all_failures(values, expected):
    """A success decides whatever is missing; a failure is known only when all k are."""
    assert expected == reduce_task(Reducer.PASS, values)


def test_partial_means_take_what_there_is():
    """The unofficial mean is over the values that exist."""
    assert [0.5, 1.0, None] == [partial_mean(each) for each in ([True, None, False], [True], [None, None])]


def test_successes_are_counted_only_when_all_are_known():
    """Curves need all k values of a task."""
    assert [2, 0, None] == [successes(each) for each in ([True, False, True], [False], [True, None])]
