"""Performs the effects of a whole run: the meeting place of a request, its components, a store and a clock."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

from agentcompass.core.config.sections import DEFAULT_PROVIDER_LIMIT, DEFAULT_REMOTE_OPEN_QPS
from agentcompass.core.errors import UsageError
from agentcompass.core.metrics.summary import summary_markdown
from agentcompass.core.model.event import Event
from agentcompass.core.model.plan import Plan
from agentcompass.core.model.request import RunRequest, Runtime
from agentcompass.core.model.task import Task
from agentcompass.core.records.progress import Progress
from agentcompass.core.records.results import attempt_document, planned_document, task_document
from agentcompass.core.records.run_info import RunInfo, params_document, request_document
from agentcompass.core.redaction import Redactor
from agentcompass.core.reuse import differences
from agentcompass.core.runtime import run_effects as rx
from agentcompass.core.runtime.attempt import Job
from agentcompass.core.runtime.effects import Announce, Effect, Stop
from agentcompass.core.runtime.evaluation import RunOutcome, run_evaluation
from agentcompass.core.runtime.ledger import Key, Ledger
from agentcompass.core.scheduling.schedule import Schedule
from agentcompass.ports.benchmark import LoadedTasks
from agentcompass.ports.clock import Clock
from agentcompass.ports.store import RunStore

from ..stores.sources import Source
from .hall import Hall
from .parts import Components, expect
from .perform import AttemptPerformer
from .player import Player, StopSignal
from .recorder import Recorder, iso_time
from .resources import Resources
from .reuse import Continuation, told
from .watchdog import watched

log = logging.getLogger("agentcompass.run")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Seat:
    """The place of a run in an orchestration: number *index* in *hall*; *orchestration* is what its events carry."""

    hall: Hall
    index: int
    stop: StopSignal
    orchestration: Mapping[str, Any]


class Run:
    """One evaluation, ready to go: `await execute()` once."""

    def __init__(
        self,
        request: RunRequest,
        runtime: Runtime,
        components: Components,
        store: RunStore,
        clock: Clock,
        redactor: Redactor,
        versions: Mapping[str, str],
        source: Source | None = None,
        continuation: type[Continuation] = Continuation,
        seat: Seat | None = None,
    ) -> None:
        assert request.output.run_id is not None, "a run id is reserved before the run"
        self.request, self.runtime, self.components, self.store = request, runtime, components, store
        self.stop = seat.stop if seat else StopSignal()
        self._seat = seat
        self._parts = components.declared(request)
        document = redactor.document(request_document(request))
        contract = components.benchmark.metrics
        info = RunInfo(request.output.run_id, iso_time(clock), document, versions, contract)
        orchestration = seat.orchestration if seat else None
        self._recorder = Recorder(store, clock, redactor, info, components.reporters, orchestration)
        self._clock = clock
        self._source, self._continuation = source, continuation
        if source is not None:
            info.reuse(source.run_id, str(source.path))

    @property
    def progress(self) -> Progress:
        """The state of the run, kept up to date while it goes on."""
        return self._recorder.progress

    async def execute(self) -> RunOutcome:
        """Run the evaluation to its end, whatever comes, and close what it opened."""
        loop = asyncio.get_running_loop()
        timer = None
        if self.runtime.timeout_seconds and self._seat is None:
            timer = loop.call_later(self.runtime.timeout_seconds, self._expire)
        script = run_evaluation(self.request, self.components.benchmark.metrics)
        log.info("%s begins: %s", self._recorder.info.run_id, self.store.paths.get("run_dir", ""))
        try:
            with watched():
                outcome = await self._played(asyncio.ensure_future(Player(script, self._perform, self.stop).play()))
        finally:
            if timer is not None:
                timer.cancel()
            if self._seat is not None:
                self._seat.hall.leave(self._seat.index)
            await self._recorder.close()
            await self.components.close()
        log.info(
            "%s ended: %s%s", self._recorder.info.run_id, outcome.state, f" ({outcome.error})" if outcome.error else ""
        )
        return outcome

    async def _played(self, playing: asyncio.Future[RunOutcome]) -> RunOutcome:
        """Wait for the script; a caller's cancellation stops the run, and comes out when it has tidied up."""
        try:
            return await asyncio.shield(playing)
        except asyncio.CancelledError:
            self.stop.set(Stop.INTERRUPTED, "cancelled by the caller")
            await playing
            raise

    def _expire(self) -> None:
        seconds = self.runtime.timeout_seconds
        self.stop.set(Stop.EXPIRED, f"the whole run was stopped after {seconds:g} s, the limit runtime.timeout_seconds")

    def _perform(self, effect: Effect[Any]) -> Any:
        return _HANDLERS[type(effect)](self, effect)

    def _announce(self, effect: Announce) -> None:
        event = Event(effect.event, self._clock.now(), None, None, None, None, effect.status, effect.payload)
        self._recorder.emit(event)

    async def _load_tasks(self, effect: rx.LoadTasks) -> rx.Loaded:
        try:
            loaded = expect(LoadedTasks, await in_daemon_thread(self.components.benchmark.load_tasks), "load_tasks")
        except (UsageError, OSError):
            raise  # the message says it all
        except Exception:
            log.debug("the tasks of %s could not be loaded", self.request.benchmark.id, exc_info=True)
            raise
        for item in loaded.rejected:
            log.warning("no task: %s: %s", item.where, item.reason)
        self._recorder.info.reject(loaded.rejected)
        return rx.Loaded(loaded.tasks, tuple(loaded.rejected), loaded.tolerated)

    async def _execute_tasks(self, effect: rx.ExecuteTasks) -> rx.Executed:
        await self.store.save_tasks([self._recorder.redactor.document(planned_document(task)) for task in effect.tasks])
        await self.store.save_params(self._recorder.redactor.document(params_document(self.request)))
        execution = self.request.execution
        ledger = Ledger(
            self._seat.index if self._seat else 0,
            self._recorder.info.run_id,
            effect.tasks,
            execution,
            self.request.environment.id,
            self.components.overlap,
            self.components.benchmark.metrics.primary.id,
        )
        await self._continue(ledger, effect.tasks)
        resources = Resources(self.request.environment.id, self.components.provider, self.store)

        def performer(schedule: Schedule, key: Key, job: Job) -> AttemptPerformer:
            return AttemptPerformer(
                self.request, self.components, self._parts, self._recorder, resources, schedule, key, job
            )

        if self._seat is not None:
            await self._seat.hall.execute(self._seat.index, ledger, performer, self._limits())
        else:
            grace = self.runtime.cleanup_grace_seconds
            hall = Hall(1, execution.task_concurrency, *self._limits(), self.stop, grace)
            await hall.execute(0, ledger, performer, ({}, {}))
        return rx.Executed(ledger.observations, self.stop.reason, self.stop.error)

    async def _continue(self, ledger: Ledger, tasks: Sequence[Task]) -> None:
        """Take over what stands of the run that this one continues."""
        source = self._source
        if source is None:
            return
        execution, metrics = self.request.execution, self.components.benchmark.metrics
        plan_of = self._plan_of if self.request.reuse.checkpoint_resume else None
        taking = self._continuation(source, ledger, metrics, self.store, execution, plan_of)
        await in_daemon_thread(lambda: taking.take_over(tasks))
        attempts = self.request.execution.attempts
        for task, number, record in taking.converted:
            converted = self._recorder.redactor.document(attempt_document(task, number, record))
            await self.store.save_attempt(task.id, number, converted, None)
        for finished in taking.unsaved:
            document = task_document(finished, attempts.k, attempts.strategy.value)
            await self.store.save_task(finished.task.id, finished.failed, self._recorder.redactor.document(document))
        report = taking.report
        report.differences = differences(source.info.get("request", {}), self._recorder.info.request)
        self._recorder.info.reuse(source.run_id, str(source.path), report)
        payload = {"reused_tasks": report.tasks, "tasks_to_run": len(tasks) - report.tasks}
        self._recorder.emit(Event("reuse_loaded", self._clock.now(), payload=payload))
        for line in told(report, source.run_id):
            log.info(line)
        await self._recorder.save_info()

    def _plan_of(self, task: Task) -> Plan:
        return self.components.plan(self.request, self._parts, task)

    def _limits(self) -> tuple[dict[str, int], dict[str, float]]:
        provider = self.request.environment.id
        remote = self.components.provider.capabilities.remote
        return (
            {provider: DEFAULT_PROVIDER_LIMIT, **self.runtime.provider_limits},
            {provider: DEFAULT_REMOTE_OPEN_QPS if remote else 0.0, **self.runtime.env_open_qps},
        )

    async def _save_report(self, effect: rx.SaveReport) -> None:
        facts = {
            "Model": self.request.model.id if self.request.model else "none",
            "Harness": self.request.harness.id,
            "Environment": self.request.environment.id,
            "Run": self._recorder.info.run_id,
            "Status": effect.status,
        }
        if effect.error:
            facts["Reason"] = effect.error
        redactor = self._recorder.redactor
        summary = redactor.text(summary_markdown(effect.report, {"Benchmark": self.request.benchmark.id, **facts}))
        await self.store.save_report(redactor.document(effect.report.document()), summary)

    async def _save_run_info(self, effect: rx.SaveRunInfo) -> None:
        if effect.status is not None:
            attempts = self.request.execution.attempts
            made_by = {
                "k": attempts.k,
                "strategy": attempts.strategy.value,
                "aggregation": self.request.selection.aggregation_mode,
            }
            self._recorder.info.finish(
                effect.status, iso_time(self._clock), effect.error, made_by if effect.report else None
            )
        await self._recorder.save_info()


_HANDLERS: dict[type[Any], Callable[[Run, Any], Any]] = {
    Announce: Run._announce,
    rx.LoadTasks: Run._load_tasks,
    rx.ExecuteTasks: Run._execute_tasks,
    rx.SaveReport: Run._save_report,
    rx.SaveRunInfo: Run._save_run_info,
}


async def in_daemon_thread(function: Callable[[], T]) -> T:
    """Return what *function* returns, called in a thread that cannot keep the process from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def deliver(result: T | None, error: BaseException | None) -> None:
        if not future.done():
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]

    def call() -> None:
        result, error = None, None
        try:
            result = function()
        except BaseException as exc:
            error = exc
        try:
            loop.call_soon_threadsafe(deliver, result, error)
        except RuntimeError:  # the loop has been closed meanwhile: nobody waits any more
            log.debug("a result came too late")

    context = copy_context()  # so that what is logged there is known to be of this run
    threading.Thread(target=context.run, args=(call,), daemon=True, name="agentcompass-load").start()
    return await future
