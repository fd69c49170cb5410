"""A request: which benchmark, harness, model and environment, under which rules; all of it already validated.

The defaults are in ``core/config/sections.py``, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from .artifact import Artifact, ArtifactCommand
from .environment import EvaluationMode, Resources
from .network import NetworkPolicy


class Strategy(StrEnum):
    """How the attempts of a task become its value: their mean, or whether any succeeds."""

    AVG = "avg"
    PASS = "pass"  # noqa: S105


@dataclass(frozen=True, slots=True)
class AttemptPlan:
    """*k* attempts per task, under *strategy*."""

    k: int
    strategy: Strategy


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The model under evaluation; *api_protocols* in order of preference, empty for the harness's own choice."""

    id: str
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    api_protocols: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Choice:
    """A component by id, with its validated parameters."""

    id: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskSelection:
    """The parameters that every benchmark has: which tasks, and how they are aggregated."""

    sample_ids: tuple[str, ...] | None
    limit: int | None
    aggregation_mode: str
    category_hierarchy: Mapping[str, Any] | None
    cluster_by: str | None


@dataclass(frozen=True, slots=True)
class ArtifactLimits:
    """How much the artifacts of an attempt may be, and how long one transfer of them may take."""

    max_mb: int = 16384
    max_files: int = 100_000
    timeout_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class Execution:
    """The rules of execution; budgets in seconds, None for inherited."""

    task_concurrency: int
    attempts: AttemptPlan
    keep_environment: bool
    max_retries: int
    retry_pattern_list: tuple[str, ...] | None
    retry_min_delay_seconds: float
    retry_max_delay_seconds: float
    run_timeout_seconds: float | None
    evaluation_timeout_seconds: float | None
    timeout_multiplier: float
    run_timeout_multiplier: float | None
    evaluation_timeout_multiplier: float | None
    run_timer_compensation_seconds: float
    runresult_collect_timeout_seconds: float
    speculative: bool
    save_artifacts: bool | None = None
    artifacts: tuple[Artifact, ...] | None = None
    artifact_collect: tuple[ArtifactCommand, ...] | None = None
    artifact_collect_timeout_seconds: float | None = None
    artifact_limits: ArtifactLimits = ArtifactLimits()
    enabled_recipes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Runtime:
    """The rules of the process: where files go, how long it may take, how fast it may start."""

    store: str
    results_dir: str
    data_dir: str
    timeout_seconds: float
    cleanup_grace_seconds: float
    provider_limits: Mapping[str, int]
    env_open_qps: Mapping[str, float]
    reuse: bool
    reuse_run_id: str | None
    checkpoint_resume: bool
    progress: str
    log_level: str
    file_log_level: str


@dataclass(frozen=True, slots=True)
class Reuse:
    """Whether an earlier run of the same place is continued; *run_id* None for the latest."""

    wanted: bool = False
    run_id: str | None = None
    checkpoint_resume: bool = True


@dataclass(frozen=True, slots=True)
class Output:
    """Names of a run's place below the results directory; *run_id* None for one made from the time."""

    run_name: str = ""
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class Variables:
    """Environment variables by scope: everywhere, the agent's set-up and run, the grader's commands, a fresh verifier.

    *verifier_start* is None unless it was given: it needs the evaluation mode fresh.
    """

    common: Mapping[str, str] = field(default_factory=dict)
    run: Mapping[str, str] = field(default_factory=dict)
    evaluation: Mapping[str, str] = field(default_factory=dict)
    verifier_start: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """How a sandbox is made; None leaves it to the task."""

    build_timeout_seconds: float | None = None
    image: str | None = None
    workdir: str | None = None


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """What the user wants of every sandbox, over what the tasks ask; None leaves it to them.

    *verifier_setup*, *verifier_resources* and *verifier_network* are of a fresh verifier at its start.
    """

    setup: Setup = Setup()
    verifier_setup: Setup = Setup()
    resources: Resources = Resources()
    verifier_resources: Resources = Resources()
    network: NetworkPolicy | None = None
    run_network: NetworkPolicy | None = None
    evaluation_network: NetworkPolicy | None = None
    verifier_network: NetworkPolicy | None = None
    evaluation_mode: EvaluationMode | None = None
    variables: Variables = Variables()


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One evaluation, wholly decided."""

    benchmark: Choice
    harness: Choice
    environment: Choice
    model: ModelSpec | None
    selection: TaskSelection
    execution: Execution
    output: Output = Output()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    sandbox: SandboxOptions = field(default_factory=SandboxOptions, repr=False)
    reuse: Reuse = Reuse()
