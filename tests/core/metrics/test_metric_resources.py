"""Consumption: what is known, over how many tasks, and at what price a success comes."""

from __future__ import annotations

import pytest

from agentcompass.core.metrics.aggregate import aggregate
from agentcompass.core.metrics.contract import binary_contract, scalar_contract
from agentcompass.core.metrics.intervals import bootstrap_interval, t_interval
from agentcompass.core.metrics.observation import TaskKey
from agentcompass.core.metrics.resources import BOOTSTRAP_LIMIT
from agentcompass.core.model.request import AttemptPlan, Strategy
from agentcompass.core.model.result import Usage


def consumed(observations, *, k=1, strategy=Strategy.AVG, tasks=None, contract=None, seed=0):
    ids = tasks or dict.fromkeys(seen.task_id for seen in observations)
    return aggregate(
        contract=contract or binary_contract(),
        plan=AttemptPlan(k, strategy),
        tasks=[TaskKey(task) for task in ids],
        observations=observations,
        mode="micro_weighted",
        hierarchy=None,
        seed=seed,
    ).resources


def quantity(resources, name):
    return next(each for each in resources.quantities if each.id == name)


def costs(observe, *amounts, **metrics):
    return [observe(f"t{place}", usage=Usage(cost_usd=amount), **metrics) for place, amount in enumerate(amounts)]


def test_every_quantity_has_mean_and_total(observe):
    """Tokens stay whole numbers; time and money do not."""
    usage = Usage(100, 40, 20, 3, 0.5, 7.0, 2.0)
    resources = consumed([observe("a", usage=usage, seconds=10.0), observe("b", usage=usage, seconds=14.0)])

    assert {
        "seconds": (12.0, 24.0),
        "model_seconds": (7.0, 14.0),
        "tool_seconds": (2.0, 4.0),
        "prompt_tokens": (100.0, 200),
        "cached_tokens": (40.0, 80),
        "completion_tokens": (20.0, 40),
        "model_calls": (3.0, 6),
        "cost_usd": (0.5, 1.0),
        "discarded_prompt_tokens": (None, None),
        "discarded_completion_tokens": (None, None),
        "discarded_cost_usd": (None, None),
    } == {each.id: (each.mean, each.total) for each in resources.quantities}
    assert int is type(quantity(resources, "prompt_tokens").total)


def test_unknown_is_not_zero(observe):
    """A task of unknown cost is in neither mean nor total, and the counts say so."""
    cost = quantity(consumed(costs(observe, 1.0, None, 3.0)), "cost_usd")

    assert (2.0, 4.0, 2, 2) == (cost.mean, cost.total, cost.tasks, cost.attempts)


def test_wholly_unknown_stays_unknown(observe):
    """Nothing known: null, over no tasks, without an interval."""
    seconds = quantity(consumed(costs(observe, 1.0, 2.0)), "seconds")

    assert (None, None, None, 0, 0) == (
        seconds.mean,
        seconds.total,
        seconds.standard_error,
        seconds.tasks,
        seconds.attempts,
    )
    assert "none" == seconds.interval.method


@pytest.mark.parametrize("nonsense", [float("nan"), float("inf"), -1.0, 1e300, 10**400])
def test_impossible_amounts_are_unknown(observe, nonsense):
    """A harness that reports NaN or less than nothing has told nothing."""
    cost = quantity(consumed(costs(observe, 1.0, nonsense)), "cost_usd")

    assert (1.0, 1) == (cost.total, cost.tasks)


def test_a_task_consumes_what_its_attempts_do(observe):
    """The mean is per task, over the sum of its attempts; tasks that lack one are left to the total."""
    resources = consumed(
        [
            observe("a", 1, seconds=1.0),
            observe("a", 2, seconds=2.0),
            observe("b", 1, seconds=10.0),
            observe("c", 1, seconds=4.0),
            observe("c", 2, seconds=None),
        ],
        k=2,
    )
    seconds = quantity(resources, "seconds")

    assert (3.0, 1, 17.0, 4) == (seconds.mean, seconds.tasks, seconds.total, seconds.attempts)
    assert (2, 5) == (resources.tasks, resources.attempts)


def test_an_early_stop_is_a_complete_task(observe):
    """Under pass, a task that succeeded at once cost one attempt."""
    resources = consumed(
        [
            observe("a", 1, seconds=3.0, correct=True),
            observe("b", 1, seconds=1.0, correct=False),
            observe("b", 2, seconds=1.0, correct=False),
            observe("c", 1, seconds=99.0, correct=False),
        ],
        k=2,
        strategy=Strategy.PASS,
    )
    seconds = quantity(resources, "seconds")

    assert (2.5, 2, 104.0) == (seconds.mean, seconds.tasks, seconds.total)


def test_few_tasks_are_bootstrapped(observe):
    """Skewed consumption of few tasks has a bootstrap interval, whose seed and resamples are told."""
    amounts = [float(place**3) for place in range(12)]
    resources = consumed(costs(observe, *amounts), seed=5)
    interval = quantity(resources, "cost_usd").interval

    assert ("bootstrap", "percentile, 1000 resamples, seed 5") == (interval.method, interval.note)
    assert bootstrap_interval(amounts, lambda xs: sum(xs) / len(xs), 5, 1000) == pytest.approx(
        (interval.low, interval.high)
    )
    assert (5, 1000) == (resources.seed, resources.resamples)


def test_many_tasks_have_a_t_interval(observe):
    """Above the limit the mean is near enough to normal; consumption is never below 0."""
    amounts = [float(place % 7) for place in range(BOOTSTRAP_LIMIT + 1)]
    interval = quantity(consumed(costs(observe, *amounts)), "cost_usd").interval

    skewed = quantity(consumed(costs(observe, 1000.0, *([0.0] * BOOTSTRAP_LIMIT))), "cost_usd").interval

    assert "t" == interval.method
    assert pytest.approx(t_interval(amounts)) == (interval.low, interval.high)
    assert ("t", 0.0) == (skewed.method, skewed.low)


def test_the_limit_itself_is_bootstrapped(observe):
    """Two hundred tasks are still few."""
    amounts = [float(place % 7) for place in range(BOOTSTRAP_LIMIT)]

    assert "bootstrap" == quantity(consumed(costs(observe, *amounts)), "cost_usd").interval.method


def test_equal_consumption_has_no_interval(observe):
    """Equal amounts, or one, show no spread."""
    for amounts in ((2.0, 2.0, 2.0), (2.0,)):
        assert "none" == quantity(consumed(costs(observe, *amounts)), "cost_usd").interval.method


def test_a_success_has_its_price(observe):
    """All known cost, failures included, by the successes among the same attempts."""
    resources = consumed(
        [
            observe("a", usage=Usage(cost_usd=1.0), correct=True),
            observe("b", usage=Usage(cost_usd=2.0), correct=False),
            observe("c", usage=Usage(cost_usd=3.0), correct=True),
            observe("d", usage=Usage(), correct=True),
        ]
    )

    assert (3.0, 2) == (resources.cost_per_success, resources.priced_successes)


def test_no_success_has_no_price(observe):
    """Without a success, or without a known cost, or for scalars, the price is null."""
    assert consumed(costs(observe, 1.0, 2.0, correct=False)).cost_per_success is None
    assert consumed(costs(observe, None, correct=True)).cost_per_success is None
    assert consumed(costs(observe, 1.0, score=1.0), contract=scalar_contract()).cost_per_success is None


def test_retries_are_counted(observe):
    """Discarded executions, the attempts that came of them, and their tasks."""
    resources = consumed(
        [
            observe("a", 1, retries=2),
            observe("a", 2, retries=1),
            observe("b", 1, retries=1),
            observe("b", 2),
            observe("c", 1),
        ],
        k=2,
    )

    assert (4, 3, 2) == (resources.retries, resources.retried_attempts, resources.retried_tasks)
