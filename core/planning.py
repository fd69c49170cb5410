"""From a request and a task to a plan: every decision about an attempt, with its budgets and their sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from . import budgets
from .errors import UsageError
from .metrics.contract import MetricContract
from .model.environment import Capabilities, EnvironmentSpec
from .model.plan import EvaluationMode, Plan, TaskPlan
from .model.request import RunRequest
from .model.task import Task
from .runtime.ledger import retry_policy


@dataclass(frozen=True, slots=True)
class Parts:
    """What the chosen components declare, as far as planning needs it."""

    metrics: MetricContract
    evaluation_mode: EvaluationMode
    has_harness: bool
    default_run_timeout_seconds: float | None
    capabilities: Capabilities
    build_seconds: float | None


def resolve_plan(request: RunRequest, parts: Parts, task: Task, asked: TaskPlan) -> Plan:
    """Return the plan of *task*'s attempts.

    Raises:
        UsageError: the task asks for something that the provider cannot do.
    """
    execution = request.execution
    provider = request.environment.id
    _require(provider, parts.capabilities, asked)
    variables = request.variables
    started = variables.verifier_start
    run = budgets.resolve(
        (
            ("execution.run_timeout_seconds", execution.run_timeout_seconds),
            (f"benchmark {request.benchmark.id}", asked.run_timeout_seconds),
            (f"task {task.id}", task.run_timeout_seconds),
            (f"harness {request.harness.id}", parts.default_run_timeout_seconds if parts.has_harness else None),
        ),
        execution.timeout_multiplier,
        execution.run_timeout_multiplier,
    )
    evaluation = budgets.resolve(
        (
            ("execution.evaluation_timeout_seconds", execution.evaluation_timeout_seconds),
            (f"benchmark {request.benchmark.id}", asked.evaluation_timeout_seconds),
            (f"task {task.id}", task.evaluation_timeout_seconds),
        ),
        execution.timeout_multiplier,
        execution.evaluation_timeout_multiplier,
    )
    return Plan(
        provider=provider,
        environment=_with(asked.environment, variables.common),
        evaluation_mode=parts.evaluation_mode,
        has_harness=parts.has_harness,
        attempts=execution.attempts,
        run=run,
        run_compensation_seconds=execution.run_timer_compensation_seconds,
        evaluation=evaluation,
        collect_seconds=execution.runresult_collect_timeout_seconds,
        build_seconds=parts.build_seconds,
        retry=retry_policy(execution),
        metrics=parts.metrics,
        keep_environment=execution.keep_environment,
        verifier=None if started is None else _with(asked.environment, started),
    )


def _with(spec: EnvironmentSpec, variables: Mapping[str, str]) -> EnvironmentSpec:
    """Return *spec* with the user's *variables* over the task's."""
    return replace(spec, env={**spec.env, **variables}) if variables else spec


def _require(provider: str, able: Capabilities, asked: TaskPlan) -> None:
    mode = asked.environment.network.network_mode
    if mode not in able.network_modes:
        modes = ", ".join(sorted(able.network_modes))
        raise UsageError(
            f"environment {provider}", f"cannot enforce the network mode {mode.value!r}", f"it can: {modes}"
        )
    if asked.environment.image and not able.images:
        raise UsageError(f"environment {provider}", f"cannot run the image {asked.environment.image!r}", "use another")
