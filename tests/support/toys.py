"""Toy components that follow a script, found through an entry point as any stranger's are.

The benchmark's parameter ``tasks`` maps a task's id to its script. Under the name of a step (`plan`, `open`, `prepare`,
`start`, `run`, `kill`, `collect`, `finish`, `evaluate`, `close`) stands a word, a list of words (one per execution of
an attempt, the last one repeats), or a mapping from attempts to those:

    ok                  nothing special
    raise[:text]        RuntimeError; `sandbox` SandboxError, `timeout` TimeoutError, `cancel` CancelledError
    hang                waits for ever; `stubborn` too, and ignores the first cancellation
    garbage             returns something of a wrong type
    fatal, error, warning [:code[:message]]     raises PhaseFailed
    returns:severity:code[:message]             returns an issue (collect and evaluate)
    crowd:N             waits, not for long, until N executions are at this step
    stop                stops the run from within, as a signal would

`verdict` is the value (or the mapping of values) that the benchmark grades with, scripted likewise. All else in a
script is said by the task or the harness: `category`, `prompt`, `answer`, `telemetry`, `artifacts`, `evidence`,
`ground_truth`, `usage` and the two budgets.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentcompass import Component, PhaseFailed, SandboxError, UsageError, hookimpl, parameters
from agentcompass.core.metrics.contract import binary_contract, scalar_contract
from agentcompass.core.model.environment import Capabilities, EnvironmentSpec, ExecResult
from agentcompass.core.model.issue import Issue, IssuePhase, Severity
from agentcompass.core.model.network import NetworkMode, NetworkPolicy
from agentcompass.core.model.plan import EvaluationMode, TaskPlan
from agentcompass.core.model.result import HarnessResult, Usage, Verdict
from agentcompass.core.model.task import PreparedTask, RejectedItem, Solution, Task
from agentcompass.ports.benchmark import Benchmark, LoadedTasks
from agentcompass.ports.environment import EnvironmentProvider
from agentcompass.ports.harness import AttemptContext, Harness

from .running import Command, Ran

PHASES = {
    "plan": IssuePhase.SETUP,
    "open": IssuePhase.SETUP,
    "prepare": IssuePhase.SETUP,
    "start": IssuePhase.SETUP,
    "run": IssuePhase.RUN,
    "kill": IssuePhase.RUN,
    "collect": IssuePhase.COLLECT,
    "evaluate": IssuePhase.EVALUATE,
    "finish": IssuePhase.CLEANUP,
    "close": IssuePhase.CLEANUP,
}
NUMBERS = {"nan": float("nan"), "inf": float("inf")}
PATIENCE = 0.3  #: seconds that a crowd waits for those who never come
ENTRY_POINTS = "[agentcompass.plugins]\ntoys = support.toys\n"


class Board:
    """What the toys were told, and what they did."""

    def __init__(self) -> None:
        self.tasks: dict[str, Mapping[str, Any]] = {}
        self.counts: Counter[tuple[str, int, str]] = Counter()
        self.did: list[tuple[str, str]] = []  #: (step, task) in order
        self.active: Counter[str] = Counter()
        self.peak: Counter[str] = Counter()
        self.opened_at: list[float] = []
        self.open: list[Sandbox] = []
        self.networks: list[str] = []  #: which network was open when, and what was done in it
        self.prompts: list[Any] = []
        self.timeouts: list[float | None] = []
        self.cancelled: list[tuple[str, str]] = []
        self.stop: Any = None

    def begin(self, tasks: Mapping[str, Mapping[str, Any]]) -> None:
        """Take the scripts of *tasks*, from their beginning."""
        self.tasks.update(tasks)
        for key in [key for key in self.counts if key[0] in tasks]:
            del self.counts[key]

    def word(self, task: str, attempt: int, step: str, default: Any = "ok") -> Any:
        """Return what the script says for this execution of *step*."""
        number = self.counts[task, attempt, step]
        self.counts[task, attempt, step] += 1
        script = self.tasks.get(task, {}).get(step, default)
        if isinstance(script, Mapping) and all(key.isdigit() for key in script):
            script = script.get(str(attempt), default)
        return script[min(number, len(script) - 1)] if isinstance(script, list) else script

    def times(self, step: str, task: str) -> int:
        """Return how often *step* began for *task*."""
        return self.did.count((step, task))

    async def act(self, task: str, attempt: int, step: str) -> str:
        """Do what the script says; return the word, for those that only the caller can obey."""
        word: str = self.word(task, attempt, step)
        self.did.append((step, task))
        self.active[step] += 1
        self.peak[step] = max(self.peak[step], self.active[step])
        try:
            await self._obey(word, step)
        except asyncio.CancelledError:
            self.cancelled.append((step, task))
            raise
        finally:
            self.active[step] -= 1
        return word

    async def _obey(self, word: str, step: str) -> None:
        head, _, rest = word.partition(":")
        if head == "hang":
            await asyncio.sleep(3600)
        elif head == "stubborn":
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                await asyncio.sleep(3600)
        elif head == "crowd":
            over = asyncio.get_running_loop().time() + PATIENCE
            while self.active[step] < int(rest) and asyncio.get_running_loop().time() < over:
                await asyncio.sleep(0.005)
        elif head == "stop":
            self.stop()
            await asyncio.sleep(0)
        else:
            fail(word, step)


BOARD = Board()


def fail(word: str, step: str) -> None:
    """Raise what *word* asks for, if it does."""
    head, _, rest = word.partition(":")
    if head == "raise":
        raise RuntimeError(rest or f"the toy's {step} broke")
    if head == "sandbox":
        raise SandboxError(rest or "the toy's sandbox broke")
    if head == "timeout":
        raise TimeoutError(rest or "the toy gave up")
    if head == "cancel":
        raise asyncio.CancelledError
    if head in ("fatal", "error", "warning"):
        raise PhaseFailed(issue(word, step), diagnostics=f"log of the toy's {step}")


def issue(word: str, step: str) -> Issue:
    """Return the issue that ``severity:code:message`` describes."""
    severity, _, rest = word.partition(":")
    code, _, message = rest.partition(":")
    return Issue(Severity(severity), PHASES[step], code or f"toy_{severity}", message or f"{severity} by the toy")


def returned(word: str, step: str) -> tuple[Issue, ...]:
    """Return the issue that a step is to return, if it is."""
    head, _, rest = word.partition(":")
    return (issue(rest, step),) if head == "returns" else ()


class ToyBenchmark(Benchmark):
    """Its tasks are its parameters."""

    version = "toy"

    def __init__(
        self,
        tasks: Mapping[str, Mapping[str, Any]],
        mode: str = "none",
        isolated: bool = True,
        scalar: bool = False,
        runs_itself: bool = False,
        plan: Mapping[str, Any] | None = None,
        load: str = "ok",
        rejected: list[str] | None = None,
        ids: list[Any] | None = None,
        steps: int = 1,
    ) -> None:
        BOARD.begin(tasks)
        self._steps = steps
        self.metrics = scalar_contract(minimum=0, maximum=1) if scalar else binary_contract()
        self.evaluation_mode, self.isolated, self.runs_itself = EvaluationMode(mode), isolated, runs_itself
        self._tasks, self._plan, self._load, self._rejected = tasks, plan or {}, load, rejected or []
        self._ids = list(tasks) if ids is None else ids

    def load_tasks(self) -> Any:
        if self._load == "garbage":
            return ["no tasks at all"]
        if self._load == "usage":
            raise UsageError("toy data", "is not there", "make some")
        fail(self._load, "prepare")
        tasks = [_task(name, self._tasks.get(str(name), {})) for name in self._ids]
        return LoadedTasks(tasks, tuple(RejectedItem(where, "no task") for where in self._rejected))

    def plan(self, task: Task) -> Any:
        word = BOARD.word(task.id, 0, "plan")
        fail(word, "plan")
        return (
            word
            if word == "garbage"
            else TaskPlan(environment=EnvironmentSpec(labels={"toy": task.id}), steps=self._steps, **self._plan)
        )

    async def prepare_task(self, task: Task, environment: Any) -> Any:
        word = await BOARD.act(task.id, 0, "prepare")
        prepared = PreparedTask(task.prompt, solution=Solution(answer="42"), metadata={"script": task.id})
        return word if word == "garbage" else prepared

    async def next_step(self, task: Task, prepared: PreparedTask, verdicts: Any, environment: Any) -> Any:
        BOARD.networks.append("next")
        word = await BOARD.act(task.id, 0, "next")
        if len(verdicts) == self._steps or word == "end":
            return None
        return PreparedTask(f"step {len(verdicts) + 1}", metadata={"script": task.id})

    def combine(self, task: Task, verdicts: Any) -> Verdict:
        values = [verdict.metrics[self.metrics.primary.id] for verdict in verdicts]
        return Verdict({self.metrics.primary.id: sum(values) / self._steps}, evidence={"steps": values})

    async def run_task(self, task: Task, prepared: PreparedTask, context: AttemptContext) -> Any:
        return await _collected(task.id, context.attempt, "run")

    async def evaluate(self, task: Task, prepared: PreparedTask, result: Any, environment: Any) -> Any:
        attempt = result.telemetry.get("attempt", 0)
        BOARD.networks.append("grade")
        word = await BOARD.act(task.id, attempt, "evaluate")
        value = BOARD.word(task.id, attempt, "verdict", True)
        value = NUMBERS.get(value, value) if isinstance(value, str) else value
        metrics = value if isinstance(value, Mapping) else {self.metrics.primary.id: value}
        verdict = Verdict(metrics, returned(word, "evaluate"), task.data.get("evidence", {}))
        return metrics if word == "garbage" else verdict


def _task(name: Any, script: Mapping[str, Any]) -> Task:
    known = ("category", "prompt", "ground_truth", "run_timeout_seconds", "evaluation_timeout_seconds")
    return Task(name, data=script, **{key: script[key] for key in known if key in script})


async def _collected(task: str, attempt: int, step: str) -> Any:
    word = await BOARD.act(task, attempt, step)
    script = BOARD.tasks[task]
    result = HarnessResult(
        script.get("answer"),
        script.get("trajectory"),
        Usage(**script.get("usage", {})),
        returned(word, step),
        script.get("artifacts", {}),
        {**script.get("telemetry", {}), "attempt": attempt},
    )
    return {"answer": 42} if word == "garbage" else result


class ToyHarness(Harness):
    """Does as its task's script says; its session is the attempt's number."""

    version = "toy"
    needs_model = False
    protocols = ()

    def __init__(self, isolated: bool = True, default_run_timeout_seconds: float | None = None) -> None:
        self.isolated, self.default_run_timeout_seconds = isolated, default_run_timeout_seconds

    async def open_session(self, context: AttemptContext, prepared: PreparedTask) -> Any:
        assert prepared.solution is None, "a harness must not see the solution"
        await BOARD.act(context.task_id, context.attempt, "start")
        return context.task_id, context.attempt

    async def execute_task(self, session: Any, prepared: PreparedTask, *, timeout: float | None) -> None:
        BOARD.timeouts.append(timeout)
        BOARD.networks.append("run")
        BOARD.prompts.append(prepared.prompt)
        await BOARD.act(*session, "run")

    async def collect_result(self, session: Any, prepared: PreparedTask) -> Any:
        return await _collected(*session, "collect")

    async def close_session(self, session: Any) -> None:
        await BOARD.act(*session, "finish")


class Sandbox:
    """A sandbox that holds files in memory."""

    workdir = "/toy"

    def __init__(self, task: str) -> None:
        self.task, self.files, self.closed = task, {}, 0

    async def exec(self, command: Any, **_: Any) -> ExecResult:
        return ExecResult(0, b"", b"", 0, 0, False, 0.0)

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        self.files[path] = data

    async def read_file(self, path: str, *, limit: int = 0) -> bytes | None:
        return self.files.get(path)

    async def set_network(self, policy: NetworkPolicy) -> None:
        BOARD.networks.append(policy.network_mode.value)

    async def kill_all(self) -> int:
        await BOARD.act(self.task, 0, "kill")
        return 0

    async def close(self) -> None:
        self.closed += 1
        await BOARD.act(self.task, 0, "close")
        BOARD.open.remove(self)


class ToyProvider(EnvironmentProvider):
    """Opens what it counts."""

    def __init__(self, remote: bool = False, broken: str = "", networks: str = "") -> None:
        modes = frozenset(NetworkMode) if networks else frozenset({NetworkMode.PUBLIC})
        self.capabilities = Capabilities(modes, dynamic_network=networks == "dynamic", remote=remote)
        self._broken = broken

    async def open(self, spec: EnvironmentSpec, record: Any = None) -> Any:
        task = spec.labels["toy"]
        BOARD.networks.append(f"open {spec.network.network_mode.value}")
        BOARD.opened_at.append(asyncio.get_running_loop().time())
        await BOARD.act(task, 0, "open")
        sandbox = Sandbox(task)
        BOARD.open.append(sandbox)
        return sandbox

    async def check(self) -> str:
        if self._broken:
            raise UsageError("environment toy", self._broken, "repair the toy")
        return "a toy answers"


def _any(kind: Any, default: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": kind, "default": default, "description": "For the tests.", **more}


@hookimpl
def register_benchmarks() -> list[Component]:
    return [
        Component(
            "toy",
            "Follows a script.",
            f"{__name__}:ToyBenchmark",
            parameters(
                ("tasks",),
                tasks={"type": "object", "description": "The scripts by task."},
                mode=_any("string", "none", enum=["none", "reuse", "fresh"]),
                isolated=_any("boolean", True),
                scalar=_any("boolean", False),
                runs_itself=_any("boolean", False),
                plan=_any(["object", "null"]),
                load=_any("string", "ok"),
                rejected=_any(["array", "null"]),
                ids=_any(["array", "null"]),
                steps=_any("integer", 1),
            ),
        )
    ]


@hookimpl
def register_harnesses() -> list[Component]:
    budget = _any(["number", "null"])
    params = parameters(isolated=_any("boolean", True), default_run_timeout_seconds=budget)
    return [Component("toy", "Follows a script.", f"{__name__}:ToyHarness", params)]


@hookimpl
def register_environments() -> list[Component]:
    params = parameters(remote=_any("boolean", False), broken=_any("string", ""), networks=_any("string", ""))
    return [Component("toy", "Holds files in memory.", f"{__name__}:ToyProvider", params)]


class Toys:
    """Runs evaluations of the toys through the command line."""

    def __init__(self, command: Command) -> None:
        self._command = command

    @property
    def board(self) -> Board:
        """What the toys did since the test began."""
        return BOARD

    @staticmethod
    def words(
        tasks: Mapping[str, Any],
        *,
        harness: str = "toy",
        model: str | None = None,
        harness_params: Mapping[str, Any] | None = None,
        env_params: Mapping[str, Any] | None = None,
        execution: Mapping[str, Any] | None = None,
        **benchmark: Any,
    ) -> list[str]:
        """Return the command line that runs *tasks*; retries wait for next to nothing."""
        rules = {"retry_min_delay_seconds": 0.001, "retry_max_delay_seconds": 0.002, **(execution or {})}
        given = {
            "--benchmark-params": {"tasks": tasks, **benchmark},
            "--harness-params": harness_params or {},
            "--env-params": env_params or {},
            "--execution-params": rules,
        }
        options = [word for name, value in given.items() for word in (name, json.dumps(value))]
        return ["toy", harness, *([model] if model else []), "--env", "toy", *options]

    def run(self, tasks: Mapping[str, Any], *options: str, quiet: bool = True, **more: Any) -> Ran:
        """Run *tasks*; *options* are of the command line, *more* of `words`."""
        return self._command(*self.words(tasks, **more), *options, quiet=quiet)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str = "toys", text: str = ENTRY_POINTS) -> None:
    """Put a distribution *name* with these entry points on the path: what pip leaves behind, and nothing else."""
    info = folder / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(text)
    monkeypatch.syspath_prepend(str(folder))


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Toys:
    """Install the toys for one test, with an empty board."""
    install(tmp_path / "site", monkeypatch)
    BOARD.__init__()
    return Toys(command)
