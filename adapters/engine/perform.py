"""Performs the effects of an attempt; the one place where foreign exceptions become classified issues."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from agentcompass.core.errors import PhaseFailed, SandboxError, StorageError, UsageError
from agentcompass.core.model.artifact import SavedArtifact
from agentcompass.core.model.event import Event
from agentcompass.core.model.issue import Issue, IssuePhase, Severity
from agentcompass.core.model.network import NetworkPolicy
from agentcompass.core.model.plan import Plan
from agentcompass.core.model.request import RunRequest
from agentcompass.core.model.result import HarnessResult, Verdict
from agentcompass.core.model.task import PreparedTask
from agentcompass.core.notice import with_notice
from agentcompass.core.records.checkpoints import checkpoint_document
from agentcompass.core.records.events import TASK_EVENTS
from agentcompass.core.records.results import attempt_document, retry_document, task_document
from agentcompass.core.requirements import Parts
from agentcompass.core.runtime import effects as fx
from agentcompass.core.runtime.attempt import Job
from agentcompass.core.runtime.ledger import AttemptRecord, FinishedTask, Key
from agentcompass.core.runtime.phases import Phase
from agentcompass.core.scheduling.schedule import Schedule
from agentcompass.ports.environment import Environment
from agentcompass.ports.harness import AttemptContext, Harness

from . import artifacts
from .parts import Components, expect
from .recorder import Recorder
from .resources import Resources
from .scopes import scoped

log = logging.getLogger("agentcompass.attempt")
T = TypeVar("T")
LONGEST_MESSAGE = 4000  #: characters of what a sandbox says of its failure


class AttemptPerformer:
    """Performs what the script of one execution asks for; a new one for each execution."""

    def __init__(
        self,
        request: RunRequest,
        components: Components,
        parts: Parts,
        recorder: Recorder,
        resources: Resources,
        schedule: Schedule,
        key: Key,
        job: Job,
    ) -> None:
        self._request, self._components, self._parts = request, components, parts
        self._recorder, self._schedule = recorder, schedule
        self.key, self.job = key, job
        self._resources = resources
        self._facts: dict[str, dict[str, str]] = {}  #: of the sandboxes of this execution, by role
        self._run_network = job.plan.run_network if job.plan else NetworkPolicy()

    def perform(self, effect: fx.Effect[Any]) -> Any:
        """Return the result of *effect*, or an awaitable of it."""
        return _HANDLERS[type(effect)](self, effect)

    def _announce(self, effect: fx.Announce) -> None:
        task = self.job.task
        whole = effect.event in TASK_EVENTS or effect.phase == Phase.SAVE_PARTIAL
        attempt = None if whole else self.job.attempt
        now = self._recorder.clock.now()
        phase, status, payload = effect.phase, effect.status, effect.payload
        self._recorder.emit(Event(effect.event, now, task.id, task.category, attempt, phase, status, payload))

    def _read_stopwatch(self, effect: fx.ReadStopwatch) -> float:
        return self._recorder.clock.monotonic()

    def _resolve_plan(self, effect: fx.ResolvePlan) -> Plan:
        task = self.job.task
        plan = self._components.plan(self._request, self._parts, task)
        self._run_network = plan.run_network
        document = self._recorder.plan_document(plan)
        self._recorder.add_plan(task.id, self.job.attempt, document)
        now = self._recorder.clock.now()
        self._recorder.emit(
            Event("execution_plan_resolved", now, task.id, task.category, self.job.attempt, Phase.PLAN, None, document)
        )
        return plan

    async def _pace_opening(self, effect: fx.PaceOpening) -> None:
        now = asyncio.get_running_loop().time()
        at = self._schedule.reserve_opening(effect.provider, now)
        if at > now:
            await asyncio.sleep(at - now)

    async def _open_environment(self, effect: fx.OpenEnvironment) -> Environment:
        job, keep = self.job, self._request.execution.keep_environment
        about = {"run": self._recorder.info.run_id, "task": job.task.id, "attempt": job.attempt, "role": effect.role}
        labels = {**effect.spec.labels, **{name: str(value) for name, value in about.items()}}
        if keep:
            labels["kept"] = "true"
        env = await self._resources.open(replace(effect.spec, labels=labels), {**about, "kept": keep})
        facts = getattr(env, "facts", None)
        if facts:
            self._facts[effect.role] = dict(facts)
        return env

    async def _prepare_task(self, effect: fx.PrepareTask) -> PreparedTask:
        prepared = await self._components.benchmark.prepare_task(self.job.task, _environment(effect.env))
        return expect(PreparedTask, prepared, "prepare_task")

    async def _next_step(self, effect: fx.NextStep) -> PreparedTask | None:
        benchmark, env = self._components.benchmark, _environment(effect.env)
        following = await benchmark.next_step(self.job.task, effect.prepared, effect.verdicts, env)
        return None if following is None else expect(PreparedTask, following, "next_step")

    async def _switch_network(self, effect: fx.SwitchNetwork | fx.SwitchGradingNetwork) -> None:
        await _environment(effect.env).set_network(effect.policy)

    def _context(self, env: fx.EnvironmentHandle, user: str | None) -> AttemptContext:
        model = self._request.model
        return AttemptContext(
            self.job.task.id,
            self.job.attempt,
            scoped(_environment(env), self._request.sandbox.variables.run, user),
            self._components.model,
            model.id if model else None,
            model.params if model else {},
        )

    async def _start_harness(self, effect: fx.StartHarness) -> Any:
        return await self._harness.open_session(
            self._context(effect.env, effect.prepared.user), self._shown(effect.prepared)
        )

    def _shown(self, prepared: PreparedTask) -> PreparedTask:
        """Return what the harness may see of *prepared*: no solution, unless it is the one that applies it."""
        hidden = prepared.solution is not None and not self._harness.needs_solution
        shown = replace(prepared, solution=None) if hidden else prepared
        prompt = with_notice(prepared.prompt, self._run_network)
        return shown if prompt is prepared.prompt else replace(shown, prompt=prompt)

    @property
    def _harness(self) -> Harness:
        assert self._components.harness is not None
        return self._components.harness

    async def _run_harness(self, effect: fx.RunHarness) -> None:
        await self._harness.execute_task(effect.session, self._shown(effect.prepared), timeout=effect.timeout)

    async def _run_task(self, effect: fx.RunTask) -> HarnessResult:
        context = self._context(effect.env, effect.prepared.user)
        result = await self._components.benchmark.run_task(self.job.task, effect.prepared, context)
        return expect(HarnessResult, result, "run_task")

    async def _kill_processes(self, effect: fx.KillProcesses) -> int:
        return await _environment(effect.env).kill_all()

    async def _collect_result(self, effect: fx.CollectResult) -> HarnessResult:
        result = await self._harness.collect_result(effect.session, self._shown(effect.prepared))
        return expect(HarnessResult, result, "collect_result")

    async def _close_harness(self, effect: fx.CloseHarness) -> None:
        await self._harness.close_session(effect.session)

    async def _close_environment(self, effect: fx.CloseEnvironment) -> None:
        await self._resources.close(_environment(effect.env))

    async def _evaluate(self, effect: fx.Evaluate) -> Verdict:
        variables = self._request.sandbox.variables.evaluation
        env = None if effect.env is None else scoped(_environment(effect.env), variables)
        verdict = await self._components.benchmark.evaluate(self.job.task, effect.prepared, effect.result, env)
        verdict = expect(Verdict, verdict, "evaluate")
        if not self._facts:
            return verdict
        return replace(verdict, evidence={**verdict.evidence, "sandboxes": dict(self._facts)})

    def _combine_steps(self, effect: fx.CombineSteps) -> Verdict:
        return expect(Verdict, self._components.benchmark.combine(self.job.task, effect.verdicts), "combine")

    async def _prepare_artifacts(self, effect: fx.PrepareArtifacts) -> None:
        await artifacts.prepare(_environment(effect.env), effect.command, effect.number, effect.within)

    async def _reserve_artifacts(self, effect: fx.ReserveArtifacts) -> str:
        return await self._recorder.store.reserve_artifacts(self.job.task.id, self.job.attempt)

    async def _download_artifact(self, effect: fx.DownloadArtifact) -> SavedArtifact:
        env = _environment(effect.env)
        used = effect.bytes_before, effect.files_before
        return await artifacts.download(env, effect.folder, effect.artifact, effect.limits, used)

    async def _restore_artifact(self, effect: fx.RestoreArtifact) -> None:
        await artifacts.restore(_environment(effect.env), effect.folder, effect.entry)

    async def _save_checkpoint(self, effect: fx.SaveCheckpoint) -> None:
        job, recorder = self.job, self._recorder
        document = checkpoint_document(
            job.task, job.attempt, recorder.info.run_id, effect.plan, effect.prepared, effect.result
        )
        if document is None or recorder.redactor.document(document) != document:
            why = "something in it is no JSON" if document is None else "it holds a secret"
            log.info("%s attempt %d has no checkpoint: %s", job.task.id, job.attempt, why)
            return
        await recorder.store.save_checkpoint(job.task.id, job.attempt, document)

    async def _save_retry(self, effect: fx.SaveRetry) -> str:
        job = self.job
        document = retry_document(job.task, job.attempt, effect.result, job.plan, effect.details)
        return await self._recorder.store.save_retry(
            job.task.id, job.attempt, effect.retry, effect.stage, self._recorder.redactor.document(document)
        )

    async def _save_attempt(self, effect: fx.SaveAttempt) -> FinishedTask | None:
        job, redactor = self.job, self._recorder.redactor
        record = AttemptRecord(effect.result, effect.retries, effect.plan, effect.discarded)
        document = redactor.document(attempt_document(job.task, job.attempt, record))
        trajectory = effect.result.trajectory
        redacted = None if trajectory is None else redactor.document(trajectory)
        await self._recorder.store.save_attempt(job.task.id, job.attempt, document, redacted)
        for issue in effect.result.issues:
            level = logging.DEBUG if issue.severity is Severity.WARNING else logging.WARNING
            where = f"{job.task.id} attempt {job.attempt}"
            log.log(level, "%s: %s %s: %s", where, issue.severity.value, issue.code, issue.message)
        return None if effect.result.cancelled else self._schedule.ledger(self.key).keep(self.key, record)

    async def _save_task(self, effect: fx.SaveTask) -> None:
        attempts = self._request.execution.attempts
        document = task_document(effect.task, attempts.k, attempts.strategy.value)
        redacted = self._recorder.redactor.document(document)
        await self._recorder.store.save_task(effect.task.task.id, effect.task.failed, redacted)


_HANDLERS: dict[type[Any], Callable[[AttemptPerformer, Any], Any]] = {
    fx.Announce: AttemptPerformer._announce,
    fx.ReadStopwatch: AttemptPerformer._read_stopwatch,
    fx.ResolvePlan: AttemptPerformer._resolve_plan,
    fx.PaceOpening: AttemptPerformer._pace_opening,
    fx.OpenEnvironment: AttemptPerformer._open_environment,
    fx.PrepareTask: AttemptPerformer._prepare_task,
    fx.StartHarness: AttemptPerformer._start_harness,
    fx.RunHarness: AttemptPerformer._run_harness,
    fx.RunTask: AttemptPerformer._run_task,
    fx.KillProcesses: AttemptPerformer._kill_processes,
    fx.CollectResult: AttemptPerformer._collect_result,
    fx.NextStep: AttemptPerformer._next_step,
    fx.SwitchNetwork: AttemptPerformer._switch_network,
    fx.SwitchGradingNetwork: AttemptPerformer._switch_network,
    fx.CombineSteps: AttemptPerformer._combine_steps,
    fx.PrepareArtifacts: AttemptPerformer._prepare_artifacts,
    fx.ReserveArtifacts: AttemptPerformer._reserve_artifacts,
    fx.DownloadArtifact: AttemptPerformer._download_artifact,
    fx.RestoreArtifact: AttemptPerformer._restore_artifact,
    fx.CloseHarness: AttemptPerformer._close_harness,
    fx.CloseEnvironment: AttemptPerformer._close_environment,
    fx.Evaluate: AttemptPerformer._evaluate,
    fx.SaveCheckpoint: AttemptPerformer._save_checkpoint,
    fx.SaveRetry: AttemptPerformer._save_retry,
    fx.SaveAttempt: AttemptPerformer._save_attempt,
    fx.SaveTask: AttemptPerformer._save_task,
}


def _environment(handle: Any) -> Environment:
    environment: Environment = handle
    return environment


def expired(effect: Any) -> PhaseFailed:
    """Return the failure of an effect that was stopped at its limit: which one, how long, who set it."""
    failure = effect.failure
    assert failure is not None, "only effects with a classification have limits"
    message = f"stopped after {effect.within:g} s, the limit {effect.limit}"
    return PhaseFailed(Issue(failure.timeout_severity, failure.phase, failure.timeout_code or failure.code, message))


def classified(effect: fx.Effect[Any], exc: BaseException) -> BaseException:
    """Return *exc*, which *effect* ended with, as an issue of its phase, with the traceback beside it."""
    failure = effect.failure
    if failure is None or isinstance(exc, PhaseFailed):
        return exc
    if (storage := _storage_error(exc)) is not None:
        return storage
    severity, code = failure.severity, failure.code
    if isinstance(exc, UsageError) and (isinstance(effect, fx.OpenEnvironment) or exc.field.startswith("environment")):
        code = "environment_unsupported"
    elif isinstance(exc, SandboxError):
        code = "environment_failed"
        severity = Severity.WARNING if failure.phase is IssuePhase.CLEANUP else Severity.FATAL
    elif isinstance(exc, TimeoutError) and isinstance(effect, fx.RunHarness):
        severity, code = Severity.ERROR, "harness_timeout"
    message = _told(exc)
    trace = "".join(traceback.format_exception(exc))
    return PhaseFailed(Issue(severity, failure.phase, code, message), trace)


def _storage_error(exc: BaseException | None) -> StorageError | None:
    """Return what *exc* comes from, if results cannot be saved; sandboxes and harnesses have their own words for it."""
    while exc is not None and not isinstance(exc, StorageError):
        exc = exc.__cause__
    return exc


def _told(exc: BaseException) -> str:
    """Return what *exc* says: whole where we raised it on purpose, of others the first line."""
    if isinstance(exc, UsageError):
        return str(exc)
    lines = str(exc).splitlines() or [""]
    text = " | ".join(line.strip() for line in lines)[:LONGEST_MESSAGE] if isinstance(exc, SandboxError) else lines[0]
    return f"{type(exc).__name__}: {text}" if text else type(exc).__name__


def is_bounded(effect: fx.Effect[Any]) -> bool:
    """Tell whether *effect* has a time limit."""
    return getattr(effect, "within", None) is not None


Perform = Callable[[fx.Effect[Any]], Any]
