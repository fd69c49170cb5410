"""What both drivers share: the far side of one request, which answers effects by their fates, and its store.

`instant` answers what takes no time. Everything else has a fate: a driver waits as long as that says, and then asks
`answer` for the value or the exception.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from math import nan
from typing import Any

from agentcompass.core.config.sections import parse_execution, parse_selection
from agentcompass.core.errors import PhaseFailed, SandboxError, UsageError
from agentcompass.core.metrics.contract import binary_contract, scalar_contract
from agentcompass.core.model.artifact import Artifact, ArtifactCommand, ArtifactStatus, SavedArtifact
from agentcompass.core.model.environment import Capabilities
from agentcompass.core.model.event import Event
from agentcompass.core.model.issue import Issue, IssuePhase, Severity
from agentcompass.core.model.network import NetworkMode, NetworkPolicy
from agentcompass.core.model.plan import EvaluationMode, TaskPlan
from agentcompass.core.model.request import Choice, RunRequest, SandboxOptions, Setup
from agentcompass.core.model.result import HarnessResult, Usage, Verdict
from agentcompass.core.model.task import PreparedTask, RejectedItem, Task
from agentcompass.core.planning import resolve_plan
from agentcompass.core.records.checkpoints import checkpoint_document
from agentcompass.core.records.events import TASK_EVENTS, event_document
from agentcompass.core.records.progress import Progress
from agentcompass.core.records.results import attempt_document, retry_document, task_document
from agentcompass.core.requirements import Parts
from agentcompass.core.runtime import effects as fx
from agentcompass.core.runtime import run_effects as rx
from agentcompass.core.runtime.attempt import Job
from agentcompass.core.runtime.ledger import AttemptRecord, Key, Ledger
from agentcompass.core.runtime.phases import Phase

from .fate import Fate, fate_of
from .settings import Order, Settings

KINDS: dict[type[Any], str] = {
    fx.ResolvePlan: "plan",
    fx.OpenEnvironment: "open",
    fx.PrepareTask: "prepare",
    fx.NextStep: "next",
    fx.CombineSteps: "combine",
    fx.StartHarness: "start",
    fx.RunHarness: "run",
    fx.RunTask: "run_task",
    fx.KillProcesses: "kill",
    fx.CollectResult: "collect",
    fx.SwitchNetwork: "switch",
    fx.SwitchGradingNetwork: "switch",
    fx.PrepareArtifacts: "ready",
    fx.ReserveArtifacts: "reserve",
    fx.DownloadArtifact: "download",
    fx.RestoreArtifact: "restore",
    fx.CloseHarness: "close_session",
    fx.CloseEnvironment: "close",
    fx.Evaluate: "evaluate",
    fx.SaveAttempt: "save_attempt",
    fx.SaveTask: "save_task",
    fx.SaveRetry: "save_retry",
    fx.SaveCheckpoint: "save_checkpoint",
    rx.LoadTasks: "load",
    rx.SaveReport: "save_report",
    rx.SaveRunInfo: "save_run_info",
}
PHASES = {
    "open": IssuePhase.SETUP,
    "prepare": IssuePhase.SETUP,
    "next": IssuePhase.SETUP,
    "start": IssuePhase.SETUP,
    "run": IssuePhase.RUN,
    "run_task": IssuePhase.RUN,
    "collect": IssuePhase.COLLECT,
    "ready": IssuePhase.COLLECT,
    "download": IssuePhase.COLLECT,
    "close_session": IssuePhase.CLEANUP,
    "evaluate": IssuePhase.EVALUATE,
}
_BAD_METRICS: tuple[Any, ...] = ({"PRIMARY": nan}, {"PRIMARY": "yes"}, {"PRIMARY": 3.5}, {"other": True}, "none", {})


@dataclass(eq=False, slots=True)
class Sandbox:
    """An open sandbox, and how often it has been closed."""

    key: Key
    role: str
    network: Any = None
    restored: list[str] = field(default_factory=list)
    closes: int = 0


@dataclass(eq=False, slots=True)
class Session:
    """A harness's session in *sandbox*."""

    sandbox: Sandbox
    closes: int = 0


class CancelledItself(Exception):  # noqa: N818
    """Stands for work that ends as cancelled although nobody cancelled it."""


@dataclass(slots=True)
class Store:
    """What is on disk: each document whole or absent."""

    run_infos: list[dict[str, Any]] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    attempts: dict[tuple[str, int], Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    retries: dict[tuple[str, int, int], Any] = field(default_factory=dict)
    checkpoints: dict[tuple[str, int], Any] = field(default_factory=dict)
    spent: dict[tuple[str, int], Any] = field(default_factory=dict)
    report: Any = None
    events: list[dict[str, Any]] = field(default_factory=list)

    def save(self, there: dict[Any, Any], name: Any, document: Any) -> None:
        """Save a document that must not have been saved before."""
        assert name not in there, f"saved twice: {name}"
        there[name] = document


class Office:
    """The far side of request number *index*."""

    def __init__(self, settings: Settings, index: int, now: Callable[[], float], link: int = 0) -> None:
        self.settings, self.index, self.now = settings, index, now
        self.order = settings.orders[index]
        self.run_id = f"run-{index}.{link}"
        self.request = request_of(self.order)
        self.contract = scalar_contract(minimum=0, maximum=1) if self.order.scalar else binary_contract()
        self.parts = _parts(self.order, self.contract)
        self.tasks = _tasks(self.order)
        self.store, self.progress = Store(), Progress(self.run_id)
        self.ledger: Ledger | None = None
        self.steps: dict[Key, int] = {}
        self.observer: Callable[[Key | None, Event], None] = lambda key, event: None

    def open_ledger(self, tasks: list[Task]) -> Ledger:
        """Return the ledger of *tasks*, as the engine makes it."""
        self.ledger = Ledger(
            self.index,
            self.run_id,
            tasks,
            self.request.execution,
            self.order.provider,
            self.order.isolated,
            self.contract.primary.id,
        )
        return self.ledger

    def fate(self, key: Key | None, job: Job | None, effect: Any) -> Fate:
        """Return the fate of *effect*."""
        kind = KINDS.get(type(effect), "save_plans")
        may_hang = getattr(effect, "within", None) is not None or self.settings.may_stop
        return fate_of(self.settings, self._name(key, job, effect), kind, may_hang)

    def _name(self, key: Key | None, job: Job | None, effect: Any) -> str:
        if key is None or job is None:
            return f"{self.index}/{getattr(effect, 'status', None) is not None}"
        role = f"{getattr(effect, 'role', '')}/{self.steps.get(key, 1)}"
        for part in ("artifact", "entry", "number", "policy"):
            role += f"/{getattr(effect, part)}" if hasattr(effect, part) else ""
        return f"{key.request}.{key.task}.{key.attempt}#{job.retries}{role}"

    def instant(self, key: Key | None, job: Job | None, effect: Any) -> tuple[Any, BaseException | None]:
        """Answer an effect that takes no time."""
        if isinstance(effect, fx.Announce):
            self._announce(key, job, effect)
            return None, None
        if isinstance(effect, fx.ReadStopwatch):
            return self.now(), None
        assert isinstance(effect, fx.ResolvePlan)
        assert job is not None
        if self.fate(key, job, effect).trouble:
            return None, RuntimeError("plan trouble")
        asked = asked_of(self.order)
        return resolve_plan(self.request, self.parts, job.task, asked), None

    def _announce(self, key: Key | None, job: Job | None, effect: fx.Announce) -> None:
        task = job.task if job else None
        whole = job is None or effect.event in TASK_EVENTS or effect.phase == Phase.SAVE_PARTIAL
        event = Event(
            effect.event,
            self.now(),
            task.id if task else None,
            task.category if task else None,
            None if whole or job is None else job.attempt,
            effect.phase,
            effect.status,
            effect.payload,
        )
        self.progress.apply(event)
        self.store.events.append(event_document(event, self.run_id))
        self.observer(key, event)

    def answer(self, key: Key | None, job: Job | None, effect: Any, fate: Fate) -> tuple[Any, BaseException | None]:
        """Return what *effect* gives, or what it raises, at its end."""
        kind = KINDS.get(type(effect), "save_plans")
        if fate.trouble and fate.trouble not in ("issues", "metrics"):
            return None, _exception(kind, fate)
        if key is None or job is None:
            return self._run_answer(kind, effect)
        return _ANSWERS[kind](self, key, job, effect, fate), None

    def _run_answer(self, kind: str, effect: Any) -> tuple[Any, BaseException | None]:
        if kind == "load":
            return self._load()
        if kind == "save_report":
            self.store.report = effect.report
        elif kind == "save_run_info":
            self.store.run_infos.append({"status": effect.status, "error": effect.error})
        elif kind == "save_plans":
            self.store.tasks = [task.id for task in effect.tasks]
        return None, None

    def _load(self) -> tuple[Any, BaseException | None]:
        wrong = {
            "usage": UsageError("data", "is broken"),
            "disk": OSError("no data"),
            "defect": ValueError("a defect of the benchmark"),
        }.get(self.order.load)
        rejected = tuple(RejectedItem(f"line {n}", "odd") for n in range(self.order.rejected))
        return rx.Loaded(() if self.order.load == "empty" else self.tasks, rejected), wrong

    def _save_attempt(self, key: Key, job: Job, effect: fx.SaveAttempt, fate: Fate) -> Any:
        record = AttemptRecord(effect.result, effect.retries, effect.plan, effect.discarded)
        document = attempt_document(job.task, job.attempt, record)
        self.store.save(self.store.attempts, (job.task.id, job.attempt), document)
        assert self.ledger is not None
        return None if effect.result.cancelled else self.ledger.keep(key, record)

    def _save_task(self, key: Key, job: Job, effect: fx.SaveTask, fate: Fate) -> None:
        document = task_document(effect.task, self.order.k, self.order.strategy)
        self.store.save(self.store.details, effect.task.task.id, document)

    def _save_retry(self, key: Key, job: Job, effect: fx.SaveRetry, fate: Fate) -> str:
        document = retry_document(job.task, job.attempt, effect.result, job.plan, effect.details)
        self.store.save(self.store.retries, (job.task.id, job.attempt, effect.retry), document)
        if document["scope"] != "evaluate":
            self.store.checkpoints.pop((job.task.id, job.attempt), None)
        return f"retries/{effect.retry}"

    def _save_checkpoint(self, key: Key, job: Job, effect: fx.SaveCheckpoint, fate: Fate) -> None:
        document = checkpoint_document(job.task, job.attempt, self.run_id, effect.plan, effect.prepared, effect.result)
        assert document is not None
        self.store.checkpoints[job.task.id, job.attempt] = document

    def _verdict(self, key: Key, job: Job, effect: fx.Evaluate, fate: Fate) -> Verdict:
        primary = self.contract.primary.id
        luck, which, _ = fate.dice
        if fate.trouble == "metrics":
            bad = _BAD_METRICS[int(which * len(_BAD_METRICS))]
            given = {primary if name == "PRIMARY" else name: v for name, v in bad.items()} if bad != "none" else bad
            return Verdict(given)
        value: Any = luck if self.order.scalar else luck < self.order.success
        return Verdict({primary: value}, _issues("evaluate", fate), {"graded": True})

    def _collected(self, key: Key, job: Job, effect: Any, fate: Fate) -> HarnessResult:
        kind = KINDS[type(effect)]
        answer = f"{self.run_id}/{key.task}.{key.attempt}#{job.retries}"
        return HarnessResult(answer, usage=Usage(model_calls=1), issues=_issues(kind, fate))

    def _prepared(self, key: Key, job: Job, effect: Any, fate: Fate) -> PreparedTask:
        self.steps[key] = 1
        return PreparedTask("")

    def _next(self, key: Key, job: Job, effect: fx.NextStep, fate: Fate) -> PreparedTask | None:
        if len(effect.verdicts) == self.order.steps or fate.dice[0] < 0.1:
            return None
        self.steps[key] += 1
        return PreparedTask("")

    def _combined(self, key: Key, job: Job, effect: fx.CombineSteps, fate: Fate) -> Verdict:
        return effect.verdicts[-1]

    def _downloaded(self, key: Key, job: Job, effect: fx.DownloadArtifact, fate: Fate) -> SavedArtifact:
        artifact = effect.artifact
        if fate.dice[0] < 0.2:
            return SavedArtifact(artifact.source, artifact.destination, ArtifactStatus.MISSING)
        mark = f"{key.task}.{key.attempt}#{job.retries}/{artifact.source}/{self.steps.get(key, 1)}"
        refused = ("a link",) if fate.dice[1] < 0.1 else ()
        return SavedArtifact(artifact.source, artifact.destination, ArtifactStatus.COLLECTED, 1, 10, mark, refused)

    def _killed(self, key: Key, job: Job, effect: Any, fate: Fate) -> int:
        return 1 + int(fate.dice[0] * 3) if fate.dice[1] < self.settings.troubles.get("killed", 0.0) else 0


_ANSWERS: dict[str, Callable[..., Any]] = {
    "open": lambda office, key, job, effect, fate: Sandbox(key, effect.role, effect.spec.network),
    "switch": lambda office, key, job, effect, fate: setattr(effect.env, "network", effect.policy),
    "ready": lambda office, key, job, effect, fate: None,
    "reserve": lambda office, key, job, effect, fate: "artifacts",
    "download": Office._downloaded,
    "restore": lambda office, key, job, effect, fate: effect.env.restored.append(effect.entry.fingerprint),
    "prepare": Office._prepared,
    "next": Office._next,
    "combine": Office._combined,
    "start": lambda office, key, job, effect, fate: Session(effect.env),
    "run": lambda office, key, job, effect, fate: None,
    "run_task": Office._collected,
    "kill": Office._killed,
    "collect": Office._collected,
    "close_session": lambda office, key, job, effect, fate: None,
    "close": lambda office, key, job, effect, fate: None,
    "evaluate": Office._verdict,
    "save_attempt": Office._save_attempt,
    "save_task": Office._save_task,
    "save_retry": Office._save_retry,
    "save_checkpoint": Office._save_checkpoint,
}


def _exception(kind: str, fate: Fate) -> BaseException:
    trouble = fate.trouble or ""
    if trouble in ("fatal", "error", "warning"):
        issue = Issue(Severity(trouble), PHASES[kind], f"{kind}_trouble", "connection reset")
        return PhaseFailed(issue, "", fate.retry_after)
    return {
        "raise": RuntimeError(f"{kind} trouble"),
        "sandbox": SandboxError(f"{kind}: the sandbox is gone"),
        "timeout": TimeoutError("the agent's own budget is spent"),
        "cancels": CancelledItself(),
        "exits": SystemExit("enough"),
        "save": OSError("no space left on device"),
    }[trouble]


def _issues(kind: str, fate: Fate) -> tuple[Issue, ...]:
    if fate.trouble != "issues":
        return ()
    severity = tuple(Severity)[int(fate.dice[2] * 3)]
    return (Issue(severity, PHASES[kind], f"{kind}_reported", "model trouble"),)


def request_of(order: Order) -> RunRequest:
    """Return the request that *order* stands for."""
    selection, _ = parse_selection({"aggregation_mode": order.aggregation}, "benchmark.params")
    execution, _ = parse_execution(
        {
            "attempts": {"k": order.k, "strategy": order.strategy},
            "keep_environment": order.keep,
            "max_retries": order.max_retries,
            "retry_pattern_list": list(order.patterns),
            "retry_min_delay_seconds": order.min_delay,
            "retry_max_delay_seconds": order.max_delay,
            "timeout_multiplier": order.multiplier,
            "run_timeout_multiplier": order.run_multiplier,
            "evaluation_timeout_multiplier": order.evaluation_multiplier,
            "run_timer_compensation_seconds": order.compensation,
            "runresult_collect_timeout_seconds": order.collect_seconds,
            "speculative": order.speculative,
        }
    )
    harness = Choice("agent" if order.harness else "none")
    sandbox = SandboxOptions(Setup(order.build_seconds))
    return RunRequest(Choice("bench"), harness, Choice(order.provider), None, selection, execution, sandbox=sandbox)


def _parts(order: Order, contract: Any) -> Parts:
    able = Capabilities(frozenset(NetworkMode), dynamic_network=True, private_root=True)
    return Parts(
        contract, EvaluationMode(order.mode), order.harness, None, able, collects_artifacts=order.artifacts > 0
    )


def asked_of(order: Order) -> TaskPlan:
    """Return what the tasks of *order* ask for."""
    sources = tuple(Artifact(f"/app/{n}", f"app/{n}") for n in range(order.artifacts))
    commands = tuple(ArtifactCommand(f"make {n}", 3.0, optional=n == 1) for n in range(order.artifacts))
    closed = NetworkPolicy(NetworkMode.NO_NETWORK) if order.networks else None
    listed = NetworkPolicy(NetworkMode.ALLOWLIST, ("a.org",)) if order.networks else None
    return TaskPlan(
        order.run_seconds,
        order.evaluation_seconds,
        run_network=closed,
        evaluation_network=listed,
        artifacts=sources,
        artifact_collect=commands,
        steps=order.steps,
    )


def _tasks(order: Order) -> list[Task]:
    return [
        Task(f"t{n}", category=f"c{n % order.categories}" if order.categories else None) for n in range(order.tasks)
    ]


def readable(document: Any) -> Any:
    """Return *document* as it is read from disk."""
    return json.loads(json.dumps(document))
