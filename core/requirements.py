"""What user, task and provider must agree on, refused where they do not."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import UsageError
from .metrics.contract import MetricContract
from .model.environment import Capabilities, EnvironmentSpec, EvaluationMode, Resources
from .model.network import NetworkPolicy
from .model.plan import TaskPlan
from .model.request import RunRequest, Setup


@dataclass(frozen=True, slots=True)
class Parts:
    """What the chosen components declare, as far as planning needs it.

    *model_host* is the endpoint that the agent calls from inside the sandbox, None if it calls none from there.
    """

    metrics: MetricContract
    evaluation_mode: EvaluationMode
    has_harness: bool
    default_run_timeout_seconds: float | None
    capabilities: Capabilities
    collects_artifacts: bool = False
    model_host: str | None = None


def evaluation_mode(request: RunRequest, parts: Parts, asked: TaskPlan) -> EvaluationMode:
    """Return where an attempt is graded: as the user says, else the task, else the benchmark."""
    return request.sandbox.evaluation_mode or asked.evaluation_mode or parts.evaluation_mode


def require_possible(request: RunRequest, parts: Parts) -> None:
    """Refuse, before there are tasks, what no task of the benchmark could be planned with.

    Raises:
        UsageError: naming the option.
    """
    mode = evaluation_mode(request, parts, TaskPlan())
    if mode is EvaluationMode.NONE and parts.evaluation_mode is not EvaluationMode.NONE:
        problem = f"{request.benchmark.id} grades in a sandbox"
        where = f"environments.{request.environment.id}.evaluation_environment_mode"
        raise UsageError(where, problem, f"use {parts.evaluation_mode.value!r}")
    if not parts.collects_artifacts:  # of others, each task may choose its mode
        require_fresh(request, mode)
        if mode is EvaluationMode.FRESH and parts.evaluation_mode is EvaluationMode.REUSE:
            where = f"environments.{request.environment.id}.evaluation_environment_mode"
            problem = f"{request.benchmark.id} collects no artifacts that a fresh verifier could grade"
            raise UsageError(where, problem, f"use {parts.evaluation_mode.value!r}")
    options = request.sandbox
    wanted = EnvironmentSpec(image=options.setup.image, resources=options.resources)
    require_able(request, parts.capabilities, wanted, None)
    for policy in (options.network, options.run_network, options.evaluation_network, options.verifier_network):
        if policy is not None:
            require_mode(request.environment.id, parts.capabilities, policy)
    require_artifacts(request, parts)


def require_fresh(request: RunRequest, mode: EvaluationMode) -> None:
    """Refuse what is for fresh verifiers only, where there is none."""
    if mode is EvaluationMode.FRESH:
        return
    options = request.sandbox
    started = options.variables.verifier_start is not None
    given = (
        ("evaluation_environment_env_variables", started, "evaluation_env_variables"),
        ("evaluation_setup", options.verifier_setup != Setup(), "setup"),
        ("evaluation_resources", options.verifier_resources != Resources(), "resources"),
        ("evaluation_environment_network_policy", options.verifier_network is not None, "verifier_network_policy"),
    )
    for name, is_given, other in given:
        if is_given:
            raise UsageError(
                f"environments.{request.environment.id}.{name}",
                f"needs the evaluation mode fresh, and {request.benchmark.id} is graded with {mode.value!r}",
                f"use {other}",
            )


def require_able(
    request: RunRequest, able: Capabilities, environment: EnvironmentSpec, verifier: EnvironmentSpec | None
) -> tuple[str, ...]:
    """Refuse what the provider cannot do; return the limits of the task (none of the user's) that it cannot keep."""
    provider = f"environment {request.environment.id}"
    wanted = {*request.sandbox.resources.given, *(request.sandbox.verifier_resources.given if verifier else ())}
    unenforced: dict[str, None] = {}
    for spec in filter(None, (environment, verifier)):
        if spec.image and not able.images:
            raise UsageError(provider, f"cannot run the image {spec.image!r}", "use a container sandbox")
        if spec.build and not spec.image and not able.builds:
            raise UsageError(provider, f"cannot build what the task brings in {spec.build}", "use a container sandbox")
        for name in spec.resources.given:
            if name in able.resources:
                continue
            if name in wanted:
                enforced = ", ".join(sorted(able.resources)) or "nothing"
                where = f"environments.{request.environment.id}.resources.{name}"
                raise UsageError(where, f"{request.environment.id} cannot limit it here", f"it can limit: {enforced}")
            unenforced[name] = None
    return tuple(unenforced)


def require_networks(provider: str, able: Capabilities, switches: list[tuple[NetworkPolicy, NetworkPolicy]]) -> None:
    """Refuse policies that the provider cannot enforce, or cannot change in an open sandbox."""
    for before, after in switches:
        require_mode(provider, able, before)
        require_mode(provider, able, after)
        if before != after and not able.dynamic_network:
            raise UsageError(
                f"environment {provider}",
                f"cannot switch an open sandbox from {before.network_mode.value!r} to {after.network_mode.value!r}",
                "use one network policy for all phases",
            )


def require_mode(provider: str, able: Capabilities, policy: NetworkPolicy) -> None:
    """Refuse a mode that the provider does not have."""
    mode = policy.network_mode
    if mode not in able.network_modes:
        modes = ", ".join(sorted(able.network_modes))
        raise UsageError(
            f"environment {provider}", f"cannot enforce the network mode {mode.value!r}", f"it can: {modes}"
        )


def require_artifacts(request: RunRequest, parts: Parts) -> None:
    """Refuse options of artifacts for a benchmark that collects none."""
    execution = request.execution
    given = {
        "artifacts": execution.artifacts is not None,
        "artifact_collect": execution.artifact_collect is not None,
        "save_artifacts": bool(execution.save_artifacts),
    }
    for name, is_given in given.items():
        if is_given and not parts.collects_artifacts:
            raise UsageError(f"execution.{name}", f"{request.benchmark.id} collects no artifacts", "leave it out")
