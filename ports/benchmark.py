"""Benchmarks: tasks, and the graders that say how well an attempt did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agentcompass.core.metrics.contract import MetricContract
from agentcompass.core.model.plan import EvaluationMode, TaskPlan
from agentcompass.core.model.result import HarnessResult, RunResult, Verdict
from agentcompass.core.model.task import Finding, PreparedTask, RejectedItem, Task

from .environment import Environment
from .harness import AttemptContext


@dataclass(frozen=True, slots=True)
class LoadedTasks:
    """What a benchmark's data holds: its tasks, and the items that are none, so that nothing vanishes in silence.

    A run with rejected items fails at its end, unless they are *tolerated* because the user said so.
    """

    tasks: Sequence[Task]
    rejected: tuple[RejectedItem, ...] = ()
    tolerated: bool = False


class Benchmark(Protocol):
    """One benchmark. Subclass it for the defaults; it works over ports only, never over a provider's library.

    `isolated` promises that attempts do not meet outside their sandboxes. `evaluation_mode` says where grading
    happens: in no sandbox, in the run's, or in a fresh one.
    """

    version: str = "0"
    metrics: MetricContract
    evaluation_mode: EvaluationMode = EvaluationMode.NONE
    isolated: bool = False
    runs_itself: bool = False  #: it brings `run_task` and takes no harness
    collects_artifacts: bool = False  #: its plans may name artifacts, and its users replace them

    def load_tasks(self) -> LoadedTasks:
        """Read the tasks (in a worker thread, so it may block).

        Raises:
            UsageError: the data is missing or unreadable.
        """
        ...

    def lint(self) -> Sequence[Finding]:
        """Return what is wrong with the data that the parameters name, without running anything (it may block)."""
        raise NotImplementedError

    def plan(self, task: Task) -> TaskPlan:
        """Return what this benchmark asks for *task*: budgets, image, network; must not touch the world."""
        return TaskPlan()

    async def prepare_task(self, task: Task, environment: Environment) -> PreparedTask:
        """Put the task's material into the sandbox and return what the agent gets to see."""
        ...

    async def run_task(self, task: Task, prepared: PreparedTask, context: AttemptContext) -> HarnessResult:
        """Run the task without a harness; only for benchmarks with `runs_itself`."""
        raise NotImplementedError

    async def evaluate(
        self, task: Task, prepared: PreparedTask, result: RunResult, environment: Environment | None
    ) -> Verdict:
        """Grade one attempt, or one step of it. The agent's processes are dead.

        *environment* is None with evaluation mode none; with fresh it is a new sandbox, in which the artifacts lie
        where they came from.

        Raises:
            PhaseFailed: with the benchmark's own classification; any other exception is ERROR `evaluate_failed`.
        """
        ...

    async def next_step(
        self, task: Task, prepared: PreparedTask, verdicts: Sequence[Verdict], environment: Environment
    ) -> PreparedTask | None:
        """Make the step after *prepared* ready in the same sandbox, or return None: the attempt is over.

        Called for plans with more than one step, when the last of *verdicts* has graded *prepared*.
        """
        return None

    def combine(self, task: Task, verdicts: Sequence[Verdict]) -> Verdict:
        """Return what the verdicts of the steps come to; there is at least one."""
        return verdicts[-1]
