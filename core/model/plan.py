"""Plans: what one attempt will do, with every budget and where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..metrics.contract import MetricContract
from .environment import EnvironmentSpec
from .request import AttemptPlan


class EvaluationMode(StrEnum):
    """Where an attempt is graded: in no sandbox, in the one it ran in, or in a fresh one."""

    NONE = "none"
    REUSE = "reuse"
    FRESH = "fresh"


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """What a benchmark asks for one task; None leaves it to the task, then to the harness or the provider."""

    run_timeout_seconds: float | None = None
    evaluation_timeout_seconds: float | None = None
    environment: EnvironmentSpec = EnvironmentSpec()


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
    verifier: EnvironmentSpec | None = None  #: the fresh verifier, where it differs from *environment*

    @property
    def run_outer_seconds(self) -> float | None:
        """The runtime's own limit of the run: a harness gets the compensation on top of its budget."""
        if self.run is None:
            return None
        return self.run.seconds + (self.run_compensation_seconds if self.has_harness else 0.0)
