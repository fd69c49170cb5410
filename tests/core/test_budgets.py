"""Time budgets: who sets one, and what stretches it."""

from __future__ import annotations

import pytest

from agentcompass.core.budgets import describe, resolve
from agentcompass.core.model.plan import Budget

NONE = (("request", None), ("benchmark", None), ("task", None))


@pytest.mark.seed("TO-03")
@pytest.mark.parametrize(
    ("given", "source"),
    [
        ((1.0, 2.0, 3.0, 4.0), "request"),
        ((None, 2.0, 3.0, 4.0), "benchmark"),
        ((None, None, 3.0, 4.0), "task"),
        ((None, None, None, 4.0), "harness"),
    ],
)
def test_the_first_that_is_given_counts(given, source):
    """Null inherits: the request's budget, the benchmark's, the task's, the harness's."""
    sources = ("request", "benchmark", "task", "harness")
    base = next(seconds for seconds in given if seconds is not None)

    assert Budget(base, base, 1.0, source) == resolve(zip(sources, given, strict=True), 1.0, None)


@pytest.mark.seed("TO-03", "TO-04")
@pytest.mark.parametrize("multipliers", [(1.0, None), (5.0, None), (1.0, 7.0)])
def test_no_multiplier_makes_a_budget(multipliers):
    """Where nobody sets a base there is no deadline."""
    assert resolve(NONE, *multipliers) is None
    assert resolve((), *multipliers) is None


@pytest.mark.seed("TO-04")
@pytest.mark.parametrize(
    ("common", "own", "seconds"),
    [(1.0, None, 600.0), (2.0, None, 1200.0), (2.0, 1.0, 600.0), (2.0, 3.0, 1800.0), (0.5, None, 300.0)],
)
def test_the_phases_own_multiplier_replaces_the_common_one(common, own, seconds):
    """The two never multiply together, and an explicit budget is stretched too."""
    budget = resolve([("execution.run_timeout_seconds", 600.0)], common, own)

    assert (seconds, 600.0) == (budget.seconds, budget.base)
    assert seconds == budget.base * budget.multiplier


def test_a_budget_is_told_with_its_source():
    """A message about a limit says its value, how it came about, and who set it."""
    assert "20 s = 10 s x 2, set by task t" == describe(Budget(20.0, 10.0, 2.0, "task t"))
    assert "10 s, set by harness h" == describe(Budget(10.0, 10.0, 1.0, "harness h"))
