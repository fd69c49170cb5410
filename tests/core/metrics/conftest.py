"""A run in a few characters: outcomes of attempts by task, aggregated."""

from __future__ import annotations

import pytest

from agentcompass.core.metrics.aggregate import aggregate
from agentcompass.core.metrics.contract import binary_contract, scalar_contract
from agentcompass.core.metrics.observation import Observation, TaskKey
from agentcompass.core.model.issue import Severity
from agentcompass.core.model.request import AttemptPlan, Strategy
from agentcompass.core.model.result import Usage

NEVER = "."
OUTCOMES = {
    "1": (True, None),
    "0": (False, None),
    "?": (None, None),  # finished, without a value
    "w": (True, Severity.WARNING),
    "S": (True, Severity.ERROR),
    "e": (False, Severity.ERROR),
    "E": (None, Severity.ERROR),
    "T": (True, Severity.FATAL),
    "F": (None, Severity.FATAL),
}


def observation(task_id, attempt=1, *, severity=None, retries=0, usage=None, seconds=None, **metrics):
    return Observation(task_id, attempt, metrics, severity, retries, usage or Usage(), seconds)


def observations_of(task_id, attempts):
    for number, outcome in enumerate(attempts, 1):
        if isinstance(outcome, float):
            yield observation(task_id, number, score=outcome)
        elif outcome != NEVER:
            value, severity = OUTCOMES[outcome]
            yield observation(task_id, number, severity=severity, **({} if value is None else {"correct": value}))


def run_of(outcomes, *, strategy="avg", contract=None, categories=None, clusters=None, **settings):
    scalar = any(isinstance(attempt, float) for attempts in outcomes.values() for attempt in attempts)
    settings = {"mode": "micro_weighted", "hierarchy": None, **settings}
    return aggregate(
        contract=contract or (scalar_contract() if scalar else binary_contract()),
        plan=AttemptPlan(max(map(len, outcomes.values()), default=1), Strategy(strategy)),
        tasks=[TaskKey(task, (categories or {}).get(task), (clusters or {}).get(task)) for task in outcomes],
        observations=[seen for task, attempts in outcomes.items() for seen in observations_of(task, attempts)],
        **settings,
    )


@pytest.fixture(name="observe")
def observe_fixture():
    """Make an observation: task, attempt, then what differs from an attempt of which nothing is known."""
    return observation


@pytest.fixture(name="run")
def run_fixture():
    """Aggregate a run given as {task: a character or a score per attempt}."""
    return run_of
