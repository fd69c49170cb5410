"""Continues an earlier run: what stands of it is taken over before anything starts, the rest is executed again."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from agentcompass.core.errors import AgentCompassError
from agentcompass.core.metrics.contract import MetricContract
from agentcompass.core.model.plan import RetryPolicy
from agentcompass.core.model.reuse import Refusal, ReuseReport
from agentcompass.core.model.task import Task
from agentcompass.core.reuse import complaint, saved_attempt
from agentcompass.core.runtime.ledger import AttemptRecord, FinishedTask, Key, Ledger
from agentcompass.ports.store import RunStore

from ..stores.sources import Source

log = logging.getLogger("agentcompass.reuse")


class Continuation:
    """What a run takes over from *source*; everything in it blocks."""

    def __init__(
        self, source: Source, ledger: Ledger, contract: MetricContract, store: RunStore, policy: RetryPolicy
    ) -> None:
        self._source, self._ledger, self._contract, self._store = source, ledger, contract, store
        self._policy = policy
        self.report = ReuseReport()
        self.unsaved: list[FinishedTask] = []  #: finished tasks whose documents have to be written anew

    def take_over(self, tasks: Sequence[Task]) -> None:
        """Enter in the ledger, and link into the store, what stands of each of *tasks*."""
        for index, task in enumerate(tasks):
            self._take_over(index, task)

    def _take_over(self, index: int, task: Task) -> None:
        standing: dict[int, tuple[str, AttemptRecord]] = {}
        for number, folder, document in self._source.attempts(task.id):
            try:
                record = saved_attempt(document, self._contract, f"{folder}/result.json")
            except AgentCompassError as exc:
                self._refuse(task, number, str(exc))
                continue
            if self._stands(index, task, number, record):
                standing[number] = folder, record
        if not standing:
            return
        for number, (folder, _) in standing.items():
            self._store.adopt_attempt(task.id, number, folder)
        finished = self._ledger.reuse(index, {number: record for number, (_, record) in standing.items()})
        self.report.attempts += len(standing)
        if finished is not None:
            self.report.tasks += 1
            self._adopt(task, finished)

    def _stands(self, index: int, task: Task, number: int, record: AttemptRecord) -> bool:
        if record.result.cancelled:
            self._refuse(task, number, "it was cancelled")
            return False
        reason = complaint(record, self._policy.patterns)
        if reason is None:
            return True
        if not self._policy.max_retries:  # no budget: the failure stays one
            self.report.kept_failures += 1
            return True
        self._refuse(task, number, reason)
        spent = record.discarded.plus(record.result.usage)  # money spent stays spent
        self._ledger.resume(Key(self._ledger.request, index, number), None, 1, spent)
        return False

    def _refuse(self, task: Task, number: int, reason: str) -> None:
        log.info("%s attempt %d is executed again: %s", task.id, number, reason)
        self.report.refused.append(Refusal(task.id, number, reason))

    def _adopt(self, task: Task, finished: FinishedTask) -> None:
        path = self._source.finished(task.id)
        if path is None:
            self.unsaved.append(finished)
        else:
            self._store.adopt_task(task.id, path)


def told(report: ReuseReport, run_id: str) -> list[str]:
    """Return what people are told of a continuation, line by line."""
    lines = [f"continues {run_id}: {report.attempts} attempts stand, {report.tasks} tasks need nothing more"]
    if report.refused:
        lines.append(f"{len(report.refused)} attempts of it are executed again; run_info.json says why")
    if report.kept_failures:
        lines.append(
            f"{report.kept_failures} attempts stay failed, since max_retries is 0; --max-retries 1 executes them again"
        )
    return lines
