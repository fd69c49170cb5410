"""The benchmark ``harbor``: any folder of tasks in the Harbor format."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

from agentcompass.core.errors import PhaseFailed, UsageError
from agentcompass.core.model.issue import Issue, IssuePhase, Severity
from agentcompass.core.model.plan import EvaluationMode, TaskPlan
from agentcompass.core.model.result import RunResult, Verdict
from agentcompass.core.model.task import Finding, PreparedTask, RejectedItem, Task
from agentcompass.ports.benchmark import Benchmark, LoadedTasks
from agentcompass.ports.environment import Environment

from .lint import lint
from .loader import Loaded, load
from .plans import as_plan, as_task, solution
from .sandbox import make_folders, renew_folders, run_setup, wait_until_healthy
from .scoring import Scoring, combined, misses
from .staging import staged
from .values import Format, HarborTask, Step
from .variables import resolved
from .verifier import Tests, verify

log = logging.getLogger("agentcompass.harbor")
_NAMED = 5  #: rejected folders that a refusal names


class Harbor(Benchmark):
    """Tasks from folders; an attempt is worth the reward that the task's own tests write."""

    version = "1"
    evaluation_mode = EvaluationMode.REUSE
    isolated = True
    collects_artifacts = True

    def __init__(
        self,
        tasks_dir: str,
        dataset: str | None = None,
        allow_invalid: bool = False,
        binary: bool = False,
        reward_key: str | None = None,
        reward_range: Sequence[float] = (0, 1),
        host_env: Sequence[str] | None = None,
        data_dir: str = "data",
    ) -> None:
        self._tasks_dir, self._dataset, self._data_dir = tasks_dir, dataset, data_dir
        self._allow_invalid = allow_invalid
        self._scoring = Scoring(reward_key, float(reward_range[0]), float(reward_range[1]), binary)
        self._host_env = None if host_env is None else frozenset(host_env)
        self.metrics = self._scoring.contract

    def load_tasks(self) -> LoadedTasks:
        """Read the folders; one that is no task stops the run before it costs anything, unless that is allowed."""
        loaded = load(self._tasks_dir, self._dataset, self._data_dir)
        errors = [finding for finding in loaded.findings if finding.is_error]
        if errors and not (self._allow_invalid and loaded.tasks):
            raise self._refusal(loaded, errors)
        rejected = tuple(RejectedItem(finding.where, finding.message) for finding in errors)
        return LoadedTasks([as_task(staged(task, self._data_dir)) for task in loaded.tasks], rejected, tolerated=True)

    def _refusal(self, loaded: Loaded, errors: Sequence[Finding]) -> UsageError:
        for finding in errors:
            log.error("no task: %s: %s", finding.where, finding.message)
        lines = [f"{finding.where}: {finding.message}" for finding in errors[:_NAMED]]
        more = f"; and {len(errors) - _NAMED} more errors" if len(errors) > _NAMED else ""
        problem = f"{len(loaded.rejected)} of {len(loaded.folders)} folders are no tasks: {'; '.join(lines)}{more}"
        mend = f"see agentcompass tasks lint {self._tasks_dir}, or set allow_invalid to run the others"
        return UsageError("benchmarks.harbor.tasks_dir", problem, mend)

    def lint(self) -> Sequence[Finding]:
        """Return what keeps folders from being tasks, and what their authors should mend."""
        return lint(self._tasks_dir, self._dataset, self._data_dir)

    def plan(self, task: Task) -> TaskPlan:
        """Return what the task's files ask for; a variable that this machine lacks is refused here."""
        harbor = _data(task)
        for step in harbor.config.steps or (None,):
            self._verifier_env(harbor, step)
        return as_plan(harbor, os.environ, self._host_env)

    def _verifier_env(self, task: HarborTask, step: Step | None) -> dict[str, str]:
        verifier = task.config.verifier_of(step)
        found = resolved(verifier.env, os.environ, f"{task.path('task.toml')}: verifier.env", self._host_env)
        return {"TEST_DIR": "/tests", **found} if task.format is Format.TERMINAL_BENCH else found

    async def prepare_task(self, task: Task, environment: Environment) -> PreparedTask:
        """Make the promised folders, wait for the sandbox to be healthy, and set up the first step."""
        harbor = _data(task)
        await make_folders(environment)
        machine = harbor.config.machine
        if machine.image and harbor.has("environment") and not harbor.bakes_tests("environment"):
            await environment.upload(harbor.path("environment"), environment.workdir)
        if machine.healthcheck:
            await wait_until_healthy(environment, machine.healthcheck)
        return await self._prepare(harbor, 0, environment)

    async def _prepare(self, task: HarborTask, index: int, environment: Environment) -> PreparedTask:
        steps = task.config.steps
        step = steps[index] if steps else None
        metadata: dict[str, Any] = {}
        if step is not None:
            folder = ("steps", step.name, "workdir")
            if task.has(*folder):
                await run_setup(environment, task.path(*folder), has_script=task.has(*folder, "setup.sh"))
            if step.healthcheck:
                await wait_until_healthy(environment, step.healthcheck)
            metadata = {"step": step.name, "step_index": index, "steps": len(steps)}
        agent, machine = task.config.agent_of(step), task.config.machine
        if machine.mcp_servers:
            metadata["mcp_servers"] = [dict(server) for server in machine.mcp_servers]
        if machine.skills_dir:
            metadata["skills_dir"] = machine.skills_dir
        return PreparedTask(
            prompt=step.instruction if step else task.instruction,
            user=agent.user,
            solution=solution(task, step, os.environ, self._host_env),
            metadata=metadata,
        )

    async def evaluate(
        self, task: Task, prepared: PreparedTask, result: RunResult, environment: Environment | None
    ) -> Verdict:
        """Run the task's tests, and take the reward that they write."""
        assert environment is not None
        harbor, index = _data(task), prepared.metadata.get("step_index", 0)
        step = harbor.config.steps[index] if harbor.config.steps else None
        tests = Tests(harbor, step, self._verifier_env(harbor, step))
        own = harbor.config.verifier_of(step).timeout_seconds
        within = own if step is not None and own != task.evaluation_timeout_seconds else None
        try:
            return await verify(tests, environment, self._scoring, within)
        except UsageError as exc:  # the sandbox cannot do what the task asks for
            issue = Issue(Severity.FATAL, IssuePhase.EVALUATE, "verifier_setup_failed", str(exc))
            raise PhaseFailed(issue) from exc

    async def next_step(
        self, task: Task, prepared: PreparedTask, verdicts: Sequence[Verdict], environment: Environment
    ) -> PreparedTask | None:
        """Set up the step after the last, unless that was the last one or did not earn it."""
        harbor = _data(task)
        done = len(verdicts)
        if done >= len(harbor.config.steps):
            return None
        broken = any(issue.severity is Severity.FATAL for issue in verdicts[-1].issues)
        if broken or misses(harbor.config.steps[done - 1], verdicts[-1], self._scoring.key):
            return None
        if not harbor.config.separate:
            await renew_folders(environment, keep_tests=False)
        return await self._prepare(harbor, done, environment)

    def combine(self, task: Task, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the mean of the steps, or the last one, as the task says."""
        return combined(_data(task), verdicts, self._scoring)


def _data(task: Task) -> HarborTask:
    assert isinstance(task.data, HarborTask)
    return task.data
