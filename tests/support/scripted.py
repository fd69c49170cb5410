"""A plugin with a benchmark and a harness that do what each task says, execution by execution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentcompass.adapters.engine.host import BUILTIN, Host
from agentcompass.adapters.sandboxes.local_process import HostProcessProvider
from agentcompass.core.errors import PhaseFailed, SandboxError, UsageError
from agentcompass.core.metrics.contract import MetricKind, MetricSpec, binary_contract
from agentcompass.core.model.artifact import Artifact
from agentcompass.core.model.component import Component, parameters
from agentcompass.core.model.issue import Issue, IssuePhase, Severity
from agentcompass.core.model.plan import EvaluationMode, TaskPlan
from agentcompass.core.model.result import HarnessResult, Usage, Verdict
from agentcompass.core.model.task import PreparedTask, RejectedItem, Task
from agentcompass.ports.benchmark import Benchmark, LoadedTasks
from agentcompass.ports.environment import unrecorded
from agentcompass.ports.harness import Harness
from agentcompass.ports.hookspecs import hookimpl

TRAJECTORY = {
    "schema_version": "ATIF-v1.8",
    "agent": {"name": "scripted", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "do it"},
        {"step_id": 2, "source": "agent", "message": "done", "metrics": {"prompt_tokens": 5, "completion_tokens": 3}},
    ],
    "final_metrics": {"total_steps": 2},
}


class ScriptedBenchmark(Benchmark):
    """Tasks as the parameters say.

    Each task is a mapping: *id*, *category*, *cluster*, *truth*; *run* and *grade* list what happens in each execution
    (the last entry stands for all that follow): ok, wrong, skip, fatal, error, warning, crash, sandbox, nan.
    """

    version = "7"
    isolated = True
    metrics = binary_contract(MetricSpec("length", MetricKind.SCALAR, unit="characters", minimum=0.0))

    def __init__(
        self,
        tasks: list[dict[str, Any]],
        mode: str = "none",
        rejected: int = 0,
        broken: str = "",
        artifacts: tuple[str, ...] = (),
    ) -> None:
        self._tasks, self._rejected, self._broken = tasks, rejected, broken
        self._artifacts = tuple(Artifact(name, name) for name in artifacts)
        self.collects_artifacts = bool(artifacts)
        self.evaluation_mode = EvaluationMode(mode)
        self._graded: dict[str, int] = {}

    def load_tasks(self) -> LoadedTasks:
        """Return the tasks, or fail as told."""
        if self._broken:
            raise UsageError("benchmark scripted", self._broken, "mend it")
        tasks = [
            Task(row["id"], "do it", row.get("category"), row.get("cluster"), row.get("truth"), data=row)
            for row in self._tasks
        ]
        return LoadedTasks(tasks, tuple(RejectedItem(f"data:{n}", "no task") for n in range(self._rejected)))

    def plan(self, task: Task) -> TaskPlan:
        """Ask for the artifacts."""
        return TaskPlan(artifacts=self._artifacts)

    async def prepare_task(self, task: Task, environment: Any) -> PreparedTask:
        """Tell the harness what to do; every artifact but the last is there."""
        for artifact in self._artifacts[:-1]:
            await environment.write_file(artifact.source, b"kept")
        return PreparedTask("do it", metadata={"id": task.id, "run": task.data.get("run", ["ok"])})

    async def evaluate(self, task: Task, prepared: PreparedTask, result: Any, environment: Any) -> Verdict:
        """Grade as told."""
        grade = _turn(self._graded, task.id, task.data.get("grade", ["ok"]))
        if grade == "nan":
            return Verdict({"correct": True, "length": float("nan")})
        issues = _act(grade, IssuePhase.EVALUATE)
        if grade == "skip":
            return Verdict({}, issues)
        return Verdict({"correct": grade != "wrong", "length": 4}, issues, {"exit_code": 0})


@dataclass
class _Session:
    script: dict[str, Any]
    issues: tuple[Issue, ...] = ()


class ScriptedHarness(Harness):
    """Does what the task says, and brings back a trajectory."""

    version = "7"
    needs_model = False
    isolated = True

    def __init__(self) -> None:
        self._ran: dict[str, int] = {}

    async def open_session(self, context: Any, prepared: PreparedTask) -> _Session:
        """Take the script."""
        return _Session(dict(prepared.metadata))

    async def execute_task(self, session: _Session, prepared: PreparedTask, *, timeout: float | None) -> None:
        """Act, or fail as told."""
        session.issues = _act(_turn(self._ran, session.script["id"], session.script["run"]), IssuePhase.RUN)

    async def collect_result(self, session: _Session, prepared: PreparedTask) -> HarnessResult:
        """Bring back an answer."""
        usage = Usage(5, 1, 3, 1, 0.25, 0.5, 0.125)
        return HarnessResult({"said": "done"}, TRAJECTORY, usage, session.issues, {"log": "x"}, {"turns": 1})

    async def close_session(self, session: _Session) -> None:
        """Release nothing."""


def _turn(counts: dict[str, int], task: str, script: list[str]) -> str:
    counts[task] = counts.get(task, 0) + 1
    return script[min(counts[task], len(script)) - 1]


def _act(word: str, phase: IssuePhase) -> tuple[Issue, ...]:
    if word == "crash":
        raise ValueError("it broke\nin two lines")
    if word == "sandbox":
        raise SandboxError("the sandbox is gone")
    if word in ("fatal", "error"):
        raise PhaseFailed(Issue(Severity(word), phase, "harness_failed", f"a planned {word}"), "Traceback: planned")
    return (Issue(Severity.WARNING, phase, "output_missing", "a planned warning"),) if word == "warning" else ()


@hookimpl
def register_benchmarks() -> list[Component]:
    """Name the benchmark."""
    params = parameters(
        ("tasks",),
        tasks={"type": "array", "items": {"type": "object"}, "description": "What happens."},
        mode={"enum": ["none", "reuse", "fresh"], "default": "none", "description": "Where it is graded."},
        rejected={"type": "integer", "default": 0, "description": "Items that are no tasks."},
        artifacts={"type": "array", "items": {"type": "string"}, "default": [], "description": "What is kept."},
        broken={"type": "string", "default": "", "description": "Why nothing loads."},
    )
    return [Component("scripted", "Does as it is told.", f"{__name__}:ScriptedBenchmark", params)]


@hookimpl
def register_harnesses() -> list[Component]:
    """Name the harness."""
    return [Component("scripted", "Does as it is told.", f"{__name__}:ScriptedHarness", parameters())]


class Recording(HostProcessProvider):
    """Local processes, each taken down when it is opened."""

    async def open(self, spec: Any, record: Any = unrecorded) -> Any:
        """Take it down, then open it."""
        record({"id": "there"})
        return await super().open(spec)


@hookimpl
def register_environments() -> list[Component]:
    """Name the environment."""
    return [Component("recording", "Local processes.", f"{__name__}:Recording", parameters())]


def scripted_host() -> Host:
    """Return a host that knows the components in the box, and these."""
    return Host((*BUILTIN, __name__), external=False)
