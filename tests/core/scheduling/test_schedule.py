"""Tests of the schedule of evaluations that go on where earlier ones ended."""

from __future__ import annotations

import pytest

from agentcompass.core.model.request import AttemptPlan, Execution, Strategy
from agentcompass.core.model.task import PreparedTask, Task
from agentcompass.core.runtime.ledger import Key, Ledger
from agentcompass.core.runtime.notes import Notes
from agentcompass.core.scheduling.schedule import Schedule

EXECUTION = Execution(
    task_concurrency=10,
    attempts=AttemptPlan(1, Strategy.AVG),
    keep_environment=False,
    max_retries=0,
    retry_pattern_list=None,
    retry_min_delay_seconds=1,
    retry_max_delay_seconds=1,
    run_timeout_seconds=None,
    evaluation_timeout_seconds=None,
    timeout_multiplier=1,
    run_timeout_multiplier=None,
    evaluation_timeout_multiplier=None,
    run_timer_compensation_seconds=0,
    runresult_collect_timeout_seconds=1,
    speculative=False,
)


def _schedule(graded):
    """Three tasks on a provider that opens a sandbox a second; those in *graded* need their grading only."""
    ledger = Ledger(0, "run", [Task(f"t{n}") for n in range(3)], EXECUTION, "docker", True, "correct")
    for task in graded:
        ledger.resume(Key(0, task, 1), Notes(prepared=PreparedTask("do")))
    return Schedule([ledger], 10, {}, {"docker": 1.0})


@pytest.mark.seed("CO-03")
@pytest.mark.parametrize(
    ("graded", "at_once"), [((), [0]), ((0, 2), [0, 1, 2]), ((1,), [0, 1]), ((0, 1, 2), [0, 1, 2])]
)
def test_gradings_wait_for_no_opening_when_they_start(graded, at_once):
    """They open a sandbox later if at all, and wait for their turn then; who opens one first waits now."""
    started, again = _schedule(graded).admit(0.0)

    assert at_once == [key.task for key, _ in started]
    assert (1.0 if len(at_once) < 3 else float("inf")) == again
