"""Plans: what one attempt will do, with every budget and where it came from."""

from __future__ import annotations

from dataclasses import dataclass

from ..metrics.contract import MetricContract
from .artifact import Artifact, ArtifactCommand, ArtifactPlan
from .environment import EnvironmentSpec
from .environment import EvaluationMode as EvaluationMode
from .network import NetworkPolicy
from .request import AttemptPlan


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """What a benchmark asks for one task; None leaves it to the task, then to the harness or the provider.

    *evaluation_mode* replaces the benchmark's. *verifier* is the sandbox of a fresh verifier where it is not like
    *environment*. *run_network* and *evaluation_network* replace the network of *environment* while the agent works,
    and while it is graded. *artifacts* and *artifact_collect* need a benchmark with `collects_artifacts`. *steps*: how
    often the agent is asked, each time graded before the next.
    """

    run_timeout_seconds: float | None = None
    evaluation_timeout_seconds: float | None = None
    environment: EnvironmentSpec = EnvironmentSpec()
    build_timeout_seconds: float | None = None
    evaluation_mode: EvaluationMode | None = None
    verifier: EnvironmentSpec | None = None
    run_network: NetworkPolicy | None = None
    evaluation_network: NetworkPolicy | None = None
    artifacts: tuple[Artifact, ...] = ()
    artifact_collect: tuple[ArtifactCommand, ...] = ()
    steps: int = 1


@dataclass(frozen=True, slots=True)
class Budget:
    """A time limit: *seconds* is *base* times *multiplier*; *source* says who set the base."""

    seconds: float
    base: float
    multiplier: float
    source: str


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and for which errors, an attempt is executed again."""

    max_retries: int
    patterns: tuple[str, ...]
    min_delay_seconds: float
    max_delay_seconds: float


@dataclass(frozen=True, slots=True)
class Plan:
    """One attempt, wholly decided; None for a budget means no limit."""

    provider: str
    environment: EnvironmentSpec
    evaluation_mode: EvaluationMode
    has_harness: bool
    attempts: AttemptPlan
    run: Budget | None
    run_compensation_seconds: float
    evaluation: Budget | None
    collect_seconds: float
    build_seconds: float | None
    retry: RetryPolicy
    metrics: MetricContract
    keep_environment: bool
    run_network: NetworkPolicy = NetworkPolicy()  #: while the agent works
    evaluation_network: NetworkPolicy = NetworkPolicy()  #: while the attempt is graded
    verifier: EnvironmentSpec | None = None  #: the fresh verifier, where it differs from *environment*
    artifacts: ArtifactPlan | None = None  #: None for a benchmark that collects none
    steps: int = 1
    recipes: tuple[str, ...] = ()  #: what has changed this plan, in order
    unenforced: tuple[str, ...] = ()  #: limits that the task asks for and the provider cannot keep

    @property
    def run_outer_seconds(self) -> float | None:
        """The runtime's own limit of the run: a harness gets the compensation on top of its budget."""
        if self.run is None:
            return None
        return self.run.seconds + (self.run_compensation_seconds if self.has_harness else 0.0)
