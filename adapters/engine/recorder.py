"""Everything that a run writes passes here: redacted, counted into the snapshot, shown to the observers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agentcompass.core.model.event import Event
from agentcompass.core.model.plan import Plan
from agentcompass.core.records.events import event_document
from agentcompass.core.records.progress import Progress
from agentcompass.core.records.run_info import RunInfo, plan_document
from agentcompass.core.redaction import Redactor
from agentcompass.ports.clock import Clock
from agentcompass.ports.reporter import Reporter
from agentcompass.ports.store import RunStore

log = logging.getLogger("agentcompass.records")
SNAPSHOT_SECONDS = 0.5  #: the snapshot is written at most so often


def iso_time(clock: Clock) -> str:
    """Return the time with its zone."""
    return datetime.fromtimestamp(clock.now(), UTC).astimezone().isoformat(timespec="seconds")


class Recorder:
    """The pen of one run."""

    def __init__(
        self,
        store: RunStore,
        clock: Clock,
        redactor: Redactor,
        info: RunInfo,
        reporters: Sequence[Reporter],
        orchestration: Mapping[str, Any] | None = None,
    ) -> None:
        self._orchestration = dict(orchestration or {})
        self.store, self.clock, self.redactor, self.info = store, clock, redactor, info
        self.progress = Progress(info.run_id)
        self._reporters = list(reporters)
        self._snapshot: asyncio.TimerHandle | None = None
        self._unwritten: list[dict[str, Any]] = []
        self._plan: tuple[Plan, dict[str, Any]] | None = None
        self._writing: set[asyncio.Task[None]] = set()
        self._warned: set[str] = set()

    def emit(self, event: Event) -> None:
        """Record *event*."""
        self.progress.apply(event)
        document = event_document(event, self.info.run_id) | self._orchestration
        if event.payload and event.event != "execution_plan_resolved":  # whose payload is redacted already
            document["payload"] = self.redactor.document(document["payload"])
        if event.category:
            document["category"] = self.redactor.text(event.category)
        if not self._unwritten:  # what happens without a pause in between is written at once
            asyncio.get_running_loop().call_soon(self.flush)
        self._unwritten.append(document)
        for reporter in self._reporters:
            try:
                reporter.on_event(event, self.progress)
            except Exception as exc:
                log.warning("a reporter failed: %s: %s", type(exc).__name__, exc)
        if self._snapshot is None:
            self._snapshot = asyncio.get_running_loop().call_later(SNAPSHOT_SECONDS, self._begin_snapshot)

    def flush(self) -> None:
        """Write the events of this moment; a stream that cannot be written warns, and never stops the run."""
        events, self._unwritten = self._unwritten, []
        try:
            if events:
                self.store.append_events(events)
        except OSError as exc:
            self._warn("progress.jsonl", exc)

    def plan_document(self, plan: Plan) -> dict[str, Any]:
        """Return *plan* as a document; most plans of a run are equal, and share one."""
        if self._plan is None or self._plan[0] != plan:
            self._plan = (plan, self.redactor.document(plan_document(plan)))
        return self._plan[1]

    def add_plan(self, task_id: str, attempt: int, document: Mapping[str, Any]) -> None:
        """Record the plan of an attempt; the run's own record follows at growing intervals."""
        try:
            self.store.append_plan(task_id, attempt, document)
        except OSError as exc:
            self._warn("plans.jsonl", exc)
        if self.info.add_plan(task_id, attempt, document):
            self._background(self.save_info())

    def _warn(self, what: str, exc: BaseException) -> None:
        """Say that *what* is incomplete: once aloud, since it may happen with every event."""
        log.log(logging.DEBUG if what in self._warned else logging.WARNING, "%s could not be written: %s", what, exc)
        self._warned.add(what)

    async def save_info(self) -> None:
        """Write the run's record as it stands."""
        await self.store.save_run_info(self.info.document(self.redactor.document))

    def _background(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._writing.add(task)
        task.add_done_callback(self._written)

    def _written(self, task: asyncio.Task[None]) -> None:
        self._writing.discard(task)
        if not task.cancelled() and (exc := task.exception()):
            self._warn("a progress file", exc)

    def _begin_snapshot(self) -> None:
        self._snapshot = None
        self._background(self.store.save_progress(self._redacted_progress()))

    def _redacted_progress(self) -> dict[str, Any]:
        document: dict[str, Any] = self.redactor.document(self.progress.document())
        return document

    async def close(self) -> None:
        """Write the last snapshot and wait for what is being written."""
        if self._snapshot is not None:
            self._snapshot.cancel()
            self._snapshot = None
        self.flush()
        while self._writing:
            await asyncio.gather(*self._writing, return_exceptions=True)
        try:
            await self.store.save_progress(self._redacted_progress())
        except OSError as exc:
            self._warn("progress.json", exc)
        await self.store.close()
