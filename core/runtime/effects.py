"""Effects: what a life cycle asks of the world, as plain values.

Awaiting an effect hands it to the driver that plays the script, which performs it and sends the result back, or
throws `PhaseFailed` (it failed, classified) or `Cancelled` (the run is being stopped). A *shielded* effect tidies up:
a driver delivers a cancellation only after it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NewType, TypeVar

from ..model.artifact import Artifact, ArtifactCommand, ArtifactPlan, SavedArtifact
from ..model.environment import EnvironmentSpec
from ..model.issue import IssuePhase, Severity
from ..model.network import NetworkPolicy
from ..model.plan import Plan
from ..model.result import HarnessResult, RunResult, Usage, Verdict
from ..model.task import PreparedTask

if TYPE_CHECKING:
    from .ledger import FinishedTask

T_co = TypeVar("T_co", covariant=True)

EnvironmentHandle = NewType("EnvironmentHandle", object)  #: an open sandbox; the core only passes it on
SessionHandle = NewType("SessionHandle", object)  #: a harness's session, likewise


class Stop(StrEnum):
    """Why a run ends before its work does."""

    INTERRUPTED = "interrupted"
    EXPIRED = "expired"
    BROKEN = "broken"


class Cancelled(BaseException):
    """Thrown into a script by its driver when the run is being stopped; *reason* and *error* say why."""

    def __init__(self, reason: Stop = Stop.INTERRUPTED, error: str | None = None) -> None:
        super().__init__(reason.value)
        self.reason, self.error = reason, error


@dataclass(frozen=True, slots=True)
class Failure:
    """How an unclassified failure of an effect is told: severities of an exception and of an expired limit."""

    phase: IssuePhase
    code: str
    severity: Severity
    timeout_code: str = ""
    timeout_severity: Severity = Severity.ERROR


class Effect(Generic[T_co]):
    """Something that only a driver can perform.

    *failure* says how an exception in it is classified; None lets the exception through as it is: storage and the
    user's data are no attempt's fault. What an effect that *acquires* gives has to be released: it is delivered even
    when it comes together with a limit or a cancellation.
    """

    __slots__ = ()
    shielded: ClassVar[bool] = False
    acquires: ClassVar[bool] = False
    failure: ClassVar[Failure | None] = None

    def __await__(self) -> Generator[Effect[T_co], Any, T_co]:
        result: T_co = yield self
        return result


_SETUP = Failure(IssuePhase.SETUP, "setup_failed", Severity.FATAL)
_ENVIRONMENT_SETUP = Failure(
    IssuePhase.SETUP, "environment_failed", Severity.FATAL, "environment_failed", Severity.FATAL
)
_EVALUATE = Failure(IssuePhase.EVALUATE, "evaluate_failed", Severity.ERROR, "evaluation_timeout", Severity.ERROR)
_CLEANUP = Failure(IssuePhase.CLEANUP, "environment_failed", Severity.WARNING, "environment_failed", Severity.WARNING)


@dataclass(frozen=True, slots=True)
class ReadStopwatch(Effect[float]):
    """Return the seconds since some moment."""

    shielded = True


@dataclass(frozen=True, slots=True)
class Announce(Effect[None]):
    """Tell what happened; takes no time, so it is told also while the run is being stopped."""

    shielded = True
    event: str
    phase: str | None = None
    status: str | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResolvePlan(Effect[Plan]):
    """Decide everything about the attempt, and record it."""

    failure = _SETUP


@dataclass(frozen=True, slots=True)
class PaceOpening(Effect[None]):
    """Wait until *provider* may open another sandbox."""

    provider: str


@dataclass(frozen=True, slots=True)
class OpenEnvironment(Effect[EnvironmentHandle]):
    """Open a sandbox to run in, or to verify in."""

    acquires = True
    failure = _ENVIRONMENT_SETUP
    provider: str
    spec: EnvironmentSpec
    role: str
    within: float | None
    limit: str = "setup.build_timeout_seconds"


@dataclass(frozen=True, slots=True)
class PrepareTask(Effect[PreparedTask]):
    """Put the task's material into the sandbox."""

    failure = _SETUP
    env: EnvironmentHandle


@dataclass(frozen=True, slots=True)
class StartHarness(Effect[SessionHandle]):
    """Make the agent ready."""

    acquires = True
    failure = Failure(IssuePhase.SETUP, "harness_setup_failed", Severity.FATAL)
    env: EnvironmentHandle
    prepared: PreparedTask


@dataclass(frozen=True, slots=True)
class RunHarness(Effect[None]):
    """Let the agent work; *timeout* is its own budget, *within* the outer limit, *limit* its description."""

    failure = Failure(IssuePhase.RUN, "harness_failed", Severity.FATAL, "run_timeout")
    session: SessionHandle
    prepared: PreparedTask
    timeout: float | None
    within: float | None
    limit: str


@dataclass(frozen=True, slots=True)
class RunTask(Effect[HarnessResult]):
    """Let the benchmark itself run the task."""

    failure = Failure(IssuePhase.RUN, "run_failed", Severity.ERROR, "run_timeout")
    env: EnvironmentHandle
    prepared: PreparedTask
    within: float | None
    limit: str


@dataclass(frozen=True, slots=True)
class KillProcesses(Effect[int]):
    """Kill whatever still runs in the sandbox, and count it."""

    shielded = True
    failure = Failure(IssuePhase.RUN, "environment_failed", Severity.FATAL)
    env: EnvironmentHandle


@dataclass(frozen=True, slots=True)
class CollectResult(Effect[HarnessResult]):
    """Read what the agent left."""

    shielded = True
    failure = Failure(IssuePhase.COLLECT, "result_collect_failed", Severity.FATAL, "result_collect_failed")
    session: SessionHandle
    prepared: PreparedTask
    within: float
    limit: str = "execution.runresult_collect_timeout_seconds"


@dataclass(frozen=True, slots=True)
class SwitchNetwork(Effect[None]):
    """Let the sandbox reach what *policy* says."""

    failure = Failure(IssuePhase.RUN, "environment_failed", Severity.FATAL)
    env: EnvironmentHandle
    policy: NetworkPolicy


@dataclass(frozen=True, slots=True)
class SwitchGradingNetwork(Effect[None]):
    """Let the sandbox reach what *policy* says while it is graded in."""

    failure = Failure(IssuePhase.EVALUATE, "environment_failed", Severity.FATAL)
    env: EnvironmentHandle
    policy: NetworkPolicy


@dataclass(frozen=True, slots=True)
class NextStep(Effect["PreparedTask | None"]):
    """Make the step after *prepared* ready; None when there is none."""

    failure = _SETUP
    env: EnvironmentHandle
    prepared: PreparedTask
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class PrepareArtifacts(Effect[None]):
    """Run one of the commands that make artifacts ready."""

    failure = Failure(IssuePhase.COLLECT, "artifact_prepare_failed", Severity.ERROR, "artifact_prepare_failed")
    env: EnvironmentHandle
    command: ArtifactCommand
    number: int
    within: float
    limit: str


@dataclass(frozen=True, slots=True)
class ReserveArtifacts(Effect[str]):
    """Return the folder of this machine in which the attempt's artifacts go."""


@dataclass(frozen=True, slots=True)
class DownloadArtifact(Effect[SavedArtifact]):
    """Copy one artifact into *folder*, whole or not at all; one that is missing is no failure.

    *bytes_before* and *files_before* are what the attempt's earlier artifacts have used of the *limits*.
    """

    failure = Failure(IssuePhase.COLLECT, "artifact_transfer_failed", Severity.FATAL, "artifact_transfer_failed")
    env: EnvironmentHandle
    folder: str
    artifact: Artifact
    limits: ArtifactPlan
    bytes_before: int
    files_before: int
    within: float
    limit: str = "execution.artifact_limits.timeout_seconds"


@dataclass(frozen=True, slots=True)
class RestoreArtifact(Effect[None]):
    """Put one artifact where it came from."""

    failure = Failure(IssuePhase.EVALUATE, "evaluation_setup_failed", Severity.FATAL, "evaluation_setup_failed")
    env: EnvironmentHandle
    folder: str
    entry: SavedArtifact
    within: float
    limit: str = "execution.artifact_limits.timeout_seconds"


@dataclass(frozen=True, slots=True)
class CombineSteps(Effect[Verdict]):
    """Make one verdict of those of the steps."""

    failure = Failure(IssuePhase.EVALUATE, "evaluate_failed", Severity.FATAL)
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class CloseHarness(Effect[None]):
    """End the agent's session."""

    shielded = True
    failure = Failure(IssuePhase.CLEANUP, "harness_cleanup_failed", Severity.WARNING)
    session: SessionHandle


@dataclass(frozen=True, slots=True)
class CloseEnvironment(Effect[None]):
    """Release a sandbox."""

    shielded = True
    failure = _CLEANUP
    env: EnvironmentHandle


@dataclass(frozen=True, slots=True)
class Evaluate(Effect[Verdict]):
    """Grade what was collected, in *env* or in none."""

    failure = _EVALUATE
    env: EnvironmentHandle | None
    prepared: PreparedTask
    result: RunResult
    within: float | None
    limit: str


@dataclass(frozen=True, slots=True)
class SaveCheckpoint(Effect[None]):
    """Save what is to be graded, so that no agent has to run again if the grading is cut short."""

    plan: Plan
    prepared: PreparedTask
    result: RunResult


@dataclass(frozen=True, slots=True)
class SaveRetry(Effect[str]):
    """Keep an execution that is about to be replaced; returns where."""

    shielded = True
    result: RunResult
    retry: int
    stage: str
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SaveAttempt(Effect["FinishedTask | None"]):
    """Save a final (or cancelled) attempt and enter it in the ledger; returns its task if that is now finished."""

    shielded = True
    plan: Plan | None
    result: RunResult
    retries: int
    discarded: Usage = Usage()


@dataclass(frozen=True, slots=True)
class SaveTask(Effect[None]):
    """Save a finished task."""

    shielded = True
    task: FinishedTask
