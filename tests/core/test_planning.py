"""From a request and a task to the plan of its attempts."""

from __future__ import annotations

import pytest

from agentcompass.core.config.sections import parse_execution, parse_selection
from agentcompass.core.errors import UsageError
from agentcompass.core.metrics.contract import binary_contract
from agentcompass.core.model.environment import Capabilities, EnvironmentSpec
from agentcompass.core.model.network import NetworkMode, NetworkPolicy
from agentcompass.core.model.plan import Budget, EvaluationMode, RetryPolicy, TaskPlan
from agentcompass.core.model.request import AttemptPlan, Choice, Output, RunRequest, SandboxOptions, Setup, Strategy
from agentcompass.core.model.task import Task
from agentcompass.core.planning import resolve_plan
from agentcompass.core.requirements import Parts


def _plan(execution=None, *, task=None, asked=None, harness=True, default=None, able=None, build=None):
    request = RunRequest(
        Choice("swe"),
        Choice("agent"),
        Choice("docker"),
        None,
        parse_selection({}, "b")[0],
        parse_execution(execution or {})[0],
        Output(),
        sandbox=SandboxOptions(Setup(build)),
    )
    parts = Parts(binary_contract(), EvaluationMode.FRESH, harness, default, able or Capabilities())
    return resolve_plan(request, parts, task or Task("t"), asked or TaskPlan())


@pytest.mark.seed("TO-03")
@pytest.mark.parametrize(
    ("execution", "asked", "own", "default", "run"),
    [
        ({"run_timeout_seconds": 1}, 2.0, 3.0, 4.0, (1.0, "execution.run_timeout_seconds")),
        ({"run_timeout_seconds": None}, 2.0, 3.0, 4.0, (2.0, "benchmark swe")),
        ({}, None, 3.0, 4.0, (3.0, "task t")),
        ({}, None, None, 4.0, (4.0, "harness agent")),
        ({}, None, None, None, None),
    ],
)
def test_the_budget_of_a_run_and_its_source(execution, asked, own, default, run):
    """The request, the benchmark's plan, the task, then the harness; null does not clear what is inherited."""
    plan = _plan(
        execution, asked=TaskPlan(run_timeout_seconds=asked), task=Task("t", run_timeout_seconds=own), default=default
    )

    assert run == (plan.run and (plan.run.base, plan.run.source))


@pytest.mark.seed("TO-03")
def test_a_grading_never_falls_back_to_the_harness():
    """The harness's default is for the run only; nor does a benchmark without a harness have one."""
    assert _plan(default=4.0).evaluation is None
    assert _plan(default=4.0, harness=False).run is None
    assert Budget(9.0, 9.0, 1.0, "task t") == _plan(task=Task("t", evaluation_timeout_seconds=9.0)).evaluation


@pytest.mark.seed("TO-04")
def test_the_example_of_the_guide():
    """7,200 seconds for the run and 600 for the grading; nothing else is stretched."""
    plan = _plan(
        {
            "run_timeout_seconds": 3600,
            "evaluation_timeout_seconds": 600,
            "timeout_multiplier": 2,
            "evaluation_timeout_multiplier": 1,
        },
        build=30.0,
    )

    assert (7200.0, 600.0) == (plan.run.seconds, plan.evaluation.seconds)
    assert (120.0, 60.0, 30.0) == (plan.run_compensation_seconds, plan.collect_seconds, plan.build_seconds)


@pytest.mark.seed("TO-06")
@pytest.mark.parametrize(
    ("execution", "harness", "outer"),
    [
        ({"run_timeout_seconds": 100}, True, 220.0),
        ({"run_timeout_seconds": 100, "run_timeout_multiplier": 2}, True, 320.0),
        ({"run_timeout_seconds": 5400, "run_timer_compensation_seconds": 300}, True, 5700.0),
        ({"run_timeout_seconds": 100}, False, 100.0),
        ({}, True, None),
        ({}, False, None),
    ],
)
def test_the_outer_limit_of_a_run(execution, harness, outer):
    """A harness gets the compensation on top of its budget, unstretched; without a budget there is no limit."""
    assert outer == _plan(execution, harness=harness).run_outer_seconds


@pytest.mark.seed("ER-09")
def test_the_rules_of_retries_are_in_the_plan():
    """Budget and patterns of the request are those of the plan."""
    given = {
        "max_retries": 3, "retry_pattern_list": ["a", "b"], "retry_min_delay_seconds": 1, "retry_max_delay_seconds": 2,
        "attempts": {"k": 4, "strategy": "pass"}, "keep_environment": True,
    }  # fmt: skip
    plan = _plan(given)

    assert RetryPolicy(3, ("a", "b"), 1.0, 2.0) == plan.retry
    assert (AttemptPlan(4, Strategy.PASS), True) == (plan.attempts, plan.keep_environment)
    assert () == _plan({"retry_pattern_list": None}).retry.patterns


@pytest.mark.seed("CP-05")
@pytest.mark.parametrize("mode", NetworkMode)
def test_a_network_that_the_provider_lacks_is_refused(mode):
    """A policy is enforced or refused at planning, never ignored; the refusal says what there is."""
    asked = TaskPlan(environment=EnvironmentSpec(NetworkPolicy(mode)))
    others = Capabilities(frozenset(NetworkMode) - {mode})
    with pytest.raises(UsageError) as refused:
        _plan(asked=asked, able=others)

    assert f"cannot enforce the network mode {mode.value!r}" in str(refused.value)
    assert all(other in refused.value.mend for other in set(NetworkMode) - {mode})
    assert asked.environment == _plan(asked=asked, able=Capabilities(frozenset({mode}))).environment


def test_an_image_that_the_provider_cannot_run_is_refused():
    """A task that needs an image needs a provider that has images."""
    asked = TaskPlan(environment=EnvironmentSpec(image="debian:12"))
    with pytest.raises(UsageError, match=r"environment docker: cannot run the image 'debian:12'"):
        _plan(asked=asked)

    assert "debian:12" == _plan(asked=asked, able=Capabilities(images=True)).environment.image
