"""From a request and a task to a plan: every decision about an attempt, with its budgets and their sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from . import budgets
from .config.artifacts import CONVENTION, require_apart
from .errors import UsageError
from .model.artifact import Artifact, ArtifactPlan
from .model.environment import EnvironmentSpec, EvaluationMode, Resources
from .model.network import NetworkMode, NetworkPolicy
from .model.plan import Budget, Plan, TaskPlan
from .model.request import RunRequest, Setup
from .model.task import Task
from .requirements import (
    Parts,
    evaluation_mode,
    require_able,
    require_artifacts,
    require_fresh,
    require_networks,
)
from .runtime.ledger import retry_policy

_MIB = 1024 * 1024


def resolve_plan(request: RunRequest, parts: Parts, task: Task, asked: TaskPlan, recipes: tuple[str, ...] = ()) -> Plan:
    """Return the plan of *task*'s attempts; *recipes* are those that have changed what is *asked*.

    Raises:
        UsageError: user or task ask for something that the provider cannot do, or for what contradicts itself.
    """
    execution = request.execution
    mode = evaluation_mode(request, parts, asked)
    require_fresh(request, mode)
    environment = _environment(request, asked)
    verifier = _verifier(request, asked, environment) if mode is EvaluationMode.FRESH else None
    run_network = request.sandbox.run_network or asked.run_network or environment.network
    run_network = open_to_model(run_network, parts.model_host)
    start = (verifier or environment).network
    evaluation_network = request.sandbox.evaluation_network or asked.evaluation_network or start
    before = start if mode is EvaluationMode.FRESH else run_network
    switches = [(environment.network, run_network)]
    if mode is not EvaluationMode.NONE:
        switches.append((before, evaluation_network))
    require_networks(request.environment.id, parts.capabilities, switches)
    return Plan(
        provider=request.environment.id,
        environment=environment,
        evaluation_mode=mode,
        has_harness=parts.has_harness,
        attempts=execution.attempts,
        run=_run_budget(request, parts, task, asked),
        run_compensation_seconds=execution.run_timer_compensation_seconds,
        evaluation=_evaluation_budget(request, task, asked),
        collect_seconds=execution.runresult_collect_timeout_seconds,
        build_seconds=request.sandbox.setup.build_timeout_seconds or asked.build_timeout_seconds,
        retry=retry_policy(execution),
        metrics=parts.metrics,
        keep_environment=execution.keep_environment,
        run_network=run_network,
        evaluation_network=evaluation_network,
        verifier=verifier,
        artifacts=_artifacts(request, parts, asked, mode),
        steps=asked.steps,
        recipes=recipes,
        unenforced=require_able(request, parts.capabilities, environment, verifier),
    )


def _run_budget(request: RunRequest, parts: Parts, task: Task, asked: TaskPlan) -> Budget | None:
    execution = request.execution
    return budgets.resolve(
        (
            ("execution.run_timeout_seconds", execution.run_timeout_seconds),
            (f"benchmark {request.benchmark.id}", asked.run_timeout_seconds),
            (f"task {task.id}", task.run_timeout_seconds),
            (f"harness {request.harness.id}", parts.default_run_timeout_seconds if parts.has_harness else None),
        ),
        execution.timeout_multiplier,
        execution.run_timeout_multiplier,
    )


def _evaluation_budget(request: RunRequest, task: Task, asked: TaskPlan) -> Budget | None:
    execution = request.execution
    return budgets.resolve(
        (
            ("execution.evaluation_timeout_seconds", execution.evaluation_timeout_seconds),
            (f"benchmark {request.benchmark.id}", asked.evaluation_timeout_seconds),
            (f"task {task.id}", task.evaluation_timeout_seconds),
        ),
        execution.timeout_multiplier,
        execution.evaluation_timeout_multiplier,
    )


def _environment(request: RunRequest, asked: TaskPlan) -> EnvironmentSpec:
    options = request.sandbox
    return _made(asked.environment, options.setup, options.resources, options.network, options.variables.common)


def _verifier(request: RunRequest, asked: TaskPlan, environment: EnvironmentSpec) -> EnvironmentSpec | None:
    """Return the sandbox of a fresh verifier; None where it is made like the agent's."""
    options = request.sandbox
    started = options.variables.verifier_start
    base = environment
    if asked.verifier is not None:
        base = _made(asked.verifier, options.setup, options.resources, options.network, options.variables.common)
    elif started is not None:  # in place of the common ones
        base = replace(environment, env=asked.environment.env)
    setup, network = options.verifier_setup, options.verifier_network
    made = _made(base, setup, options.verifier_resources, network, started or {})
    return None if made == environment else made


def _made(
    spec: EnvironmentSpec,
    setup: Setup,
    resources: Resources,
    network: NetworkPolicy | None,
    variables: Mapping[str, str],
) -> EnvironmentSpec:
    """Return *spec* with what the user wants over it."""
    made = replace(
        spec,
        image=setup.image or spec.image,
        build=None if setup.image else spec.build,
        workdir=setup.workdir or spec.workdir,
        resources=resources.over(spec.resources),
        network=network or spec.network,
        env={**spec.env, **variables} if variables else spec.env,
    )
    return spec if made == spec else made


def _artifacts(request: RunRequest, parts: Parts, asked: TaskPlan, mode: EvaluationMode) -> ArtifactPlan | None:
    require_artifacts(request, parts)
    if not parts.collects_artifacts:
        return None
    execution, fresh = request.execution, mode is EvaluationMode.FRESH
    if fresh and execution.save_artifacts is False:
        raise UsageError("execution.save_artifacts", "is false, but fresh verifiers need them", "leave it out")
    declared = asked.artifacts if execution.artifacts is None else execution.artifacts
    if fresh and not declared and (asked.evaluation_mode or parts.evaluation_mode) is EvaluationMode.REUSE:
        problem = "a fresh verifier would see nothing of the agent's work: the task declares no artifacts"
        raise UsageError("evaluation_environment_mode", problem, "declare them in execution.artifacts")
    limits = execution.artifact_limits
    return ArtifactPlan(
        sources=_sources(declared, parts.capabilities.private_root),
        commands=asked.artifact_collect if execution.artifact_collect is None else execution.artifact_collect,
        save=fresh if execution.save_artifacts is None else execution.save_artifacts,
        group_seconds=execution.artifact_collect_timeout_seconds,
        transfer_seconds=limits.timeout_seconds,
        max_bytes=limits.max_mb * _MIB,
        max_files=limits.max_files,
    )


def _sources(declared: tuple[Artifact, ...], private_root: bool) -> tuple[Artifact, ...]:
    """Return what is kept: the folder of the convention (where it is the sandbox's own), and what is not in it."""
    if not private_root:
        return declared
    others = [entry for entry in declared if not f"{entry.source}/".startswith(f"{CONVENTION}/")]
    found = (Artifact(CONVENTION, CONVENTION.lstrip("/")), *others)
    require_apart(found, "artifacts")
    return found


def open_to_model(policy: NetworkPolicy, host: str | None) -> NetworkPolicy:
    """Return *policy*, let through to the model's endpoint *host*, which the agent cannot do without."""
    if host is None or policy.network_mode in (NetworkMode.PUBLIC, NetworkMode.DENYLIST):
        return policy
    known = host in policy.allowed_hosts or host.rpartition(":")[0] in policy.allowed_hosts
    return NetworkPolicy(NetworkMode.ALLOWLIST, policy.allowed_hosts if known else (*policy.allowed_hosts, host))
