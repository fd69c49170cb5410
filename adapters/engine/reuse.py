"""Continues an earlier run: what stands of it is taken over before anything starts, the rest is executed again."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from agentcompass.core.errors import AgentCompassError
from agentcompass.core.metrics.contract import MetricContract
from agentcompass.core.model.artifact import ArtifactStatus
from agentcompass.core.model.issue import IssuePhase
from agentcompass.core.model.plan import Plan
from agentcompass.core.model.request import Execution, Strategy
from agentcompass.core.model.result import Usage
from agentcompass.core.model.reuse import Refusal, ReuseReport
from agentcompass.core.model.task import Task
from agentcompass.core.records.checkpoints import notes_of
from agentcompass.core.records.reading import RecordError
from agentcompass.core.records.results import spent_document, task_digest
from agentcompass.core.reuse import complaint, require_same, saved_attempt
from agentcompass.core.runtime.ledger import AttemptRecord, FinishedTask, Key, Ledger, retry_policy
from agentcompass.core.runtime.notes import Notes
from agentcompass.ports.store import RunStore

from ..stores.sources import Source
from .artifacts import fingerprint

log = logging.getLogger("agentcompass.reuse")
_LONGEST = 60  # characters of a setting in a line
_NAMED = 5


class Continuation:
    """What a run takes over from *source*; everything in it blocks.

    *plan_of* tells how a task would be attempted now; without it, nothing is graded from checkpoints.
    """

    def __init__(
        self,
        source: Source,
        ledger: Ledger,
        contract: MetricContract,
        store: RunStore,
        execution: Execution,
        plan_of: Callable[[Task], Plan] | None,
    ) -> None:
        self._source, self._ledger, self._contract, self._store = source, ledger, contract, store
        self._policy, self._k, self._plan_of = retry_policy(execution), execution.attempts.k, plan_of
        self._stops_early = execution.attempts.strategy is Strategy.PASS
        self.report = ReuseReport()
        self.converted: list[tuple[Task, int, AttemptRecord]] = []  #: attempts of a former format, to be written anew
        self.unsaved: list[FinishedTask] = []  #: finished tasks whose documents have to be written anew

    def take_over(self, tasks: Sequence[Task]) -> None:
        """Enter in the ledger, and link into the store, what stands of each of *tasks*."""
        before = self._source.digests()
        self.report.changed_tasks = [
            task.id for task in tasks if task.id in before and before[task.id] != task_digest(task)
        ]
        for index, task in enumerate(tasks):
            self._take_over(index, task)

    def _take_over(self, index: int, task: Task) -> None:
        standing: dict[int, AttemptRecord] = {}
        again: list[Callable[[], None]] = []
        ended = set()
        for number, folder, document in self._source.attempts(task.id):
            ended.add(number)
            found = self._judged(Key(self._ledger.request, index, number), task, folder, document)
            if isinstance(found, AttemptRecord):
                self._adopt_attempt(task, number, folder, found)
                standing[number] = found
            else:
                again.append(found)
        for number in sorted(self._source.begun(task.id) - ended) if len(ended) < self._k else ():
            if number <= self._k:
                again.append(partial(self._begin_unfinished, Key(self._ledger.request, index, number), task))
        if not self._spared(standing.values()):
            for begin in again:
                begin()
        if not standing:
            return
        self.report.attempts += len(standing)
        finished = self._ledger.reuse(index, standing)
        if finished is not None:
            self.report.tasks += 1
            self._adopt(task, finished, whole=ended == set(standing))

    def _spared(self, records: Iterable[AttemptRecord]) -> bool:
        """Tell whether a success has made further attempts needless."""
        primary = self._contract.primary.id
        return self._stops_early and any(record.result.metrics.get(primary) is True for record in records)

    def _judged(
        self, key: Key, task: Task, folder: str, document: Mapping[str, Any]
    ) -> AttemptRecord | Callable[[], None]:
        """Return the attempt if it stands; otherwise what sees to its being executed again."""
        number = key.attempt
        try:
            record = saved_attempt(document, self._contract, self._where(task, number, folder))
        except AgentCompassError as exc:
            return partial(self._refuse, task, number, str(exc))
        if record.result.cancelled:
            return partial(self._begin_cancelled, key, task, record)
        reason = complaint(record.result.issues, self._policy.patterns)
        if reason is None:
            return record
        if not self._policy.max_retries:  # no budget: the failure stays one
            self.report.kept_failures += 1
            return record
        return partial(self._begin_failed, key, task, record, reason)

    def _begin_unfinished(self, key: Key, task: Task) -> None:
        spent = self._source.spent(task.id, key.attempt)
        if not self._resumes(key, task, 0, spent):
            self._resume(key, task, None, 0, spent.plus(self._source.worked(task.id, key.attempt)))

    def _begin_cancelled(self, key: Key, task: Task, record: AttemptRecord) -> None:
        if not self._resumes(key, task, 0, record.discarded):
            self._refuse(task, key.attempt, "it was cancelled")
            self._resume(key, task, None, 0, record.discarded.plus(record.result.usage))

    def _begin_failed(self, key: Key, task: Task, record: AttemptRecord, reason: str) -> None:
        earlier = [issue for issue in record.result.issues if issue.phase is not IssuePhase.EVALUATE]
        if complaint(earlier, self._policy.patterns) is None and self._resumes(key, task, 1, record.discarded):
            return
        self._refuse(task, key.attempt, reason)
        self._resume(key, task, None, 1, record.discarded.plus(record.result.usage))

    def _resumes(self, key: Key, task: Task, retries: int, discarded: Usage) -> bool:
        """Let the attempt begin with its grading, if its work was saved; a checkpoint that cannot be used is told."""
        if self._plan_of is None:
            return False
        try:
            found = self._source.checkpoint(task.id, key.attempt)
            if found is None:
                return False
            folder, document = found
            where = f"{folder}/checkpoint.json"
            require_same(document, task, key.attempt, self._plan_of(task), where)
            require_whole(notes_of(document, f"{folder}/artifacts", where), where)
            notes = notes_of(document, self._store.adopt_checkpoint(task.id, key.attempt, folder), where)
        except AgentCompassError as exc:
            self._refuse(task, key.attempt, f"its checkpoint cannot be used: {exc}")
            return False
        self._resume(key, task, notes, retries, discarded)
        self.report.resumed += 1
        return True

    def _resume(self, key: Key, task: Task, notes: Notes | None, retries: int, discarded: Usage) -> None:
        """Let the attempt begin where it can; money spent stays spent, also if this run is killed before."""
        if discarded != Usage():
            self._store.save_spent(task.id, key.attempt, spent_document(discarded))
        self._ledger.resume(key, notes, retries, discarded)

    def _where(self, task: Task, number: int, folder: str) -> str:
        return f"{folder}/result.json" if folder else f"{self._source.path}: {task.id}, attempt {number}"

    def _adopt_attempt(self, task: Task, number: int, folder: str, record: AttemptRecord) -> None:
        if folder:
            self._store.adopt_attempt(task.id, number, folder)
        else:
            self.converted.append((task, number, record))

    def _refuse(self, task: Task, number: int, reason: str) -> None:
        log.info("%s attempt %d is executed again: %s", task.id, number, reason)
        self.report.refused.append(Refusal(task.id, number, reason))

    def _adopt(self, task: Task, finished: FinishedTask, whole: bool) -> None:
        """Take over the document of a finished task, if the *whole* of what it tells stands."""
        path = self._source.finished(task.id) if whole else None
        if path is None:
            self.unsaved.append(finished)
        else:
            self._store.adopt_task(task.id, path)


def told(report: ReuseReport, run_id: str) -> list[str]:
    """Return what people are told of a continuation, line by line."""
    lines = [f"continues {run_id}: {report.attempts} attempts stand, {report.tasks} tasks need nothing more"]
    lines += [
        f"its results are used although {each.field} was {_shown(each.before)} there and is {_shown(each.now)} now"
        for each in report.differences
    ]
    if report.changed_tasks:
        names = ", ".join(report.changed_tasks[:_NAMED])
        more = f" and {len(report.changed_tasks) - _NAMED} more" if len(report.changed_tasks) > _NAMED else ""
        lines.append(f"its results are used although these tasks ask or expect something else now: {names}{more}")
    if report.resumed:
        lines.append(f"{report.resumed} attempts of it are graded without running their agent")
    if report.refused:
        lines.append(f"{len(report.refused)} attempts of it are executed again; run_info.json says why")
    if report.kept_failures:
        lines.append(
            f"{report.kept_failures} attempts stay failed, since max_retries is 0; --max-retries 1 executes them again"
        )
    return lines


def _shown(value: Any) -> str:
    text = "none" if value is None else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def require_whole(notes: Notes, where: str) -> None:
    """Refuse a checkpoint whose artifacts are not what was saved.

    Raises:
        RecordError: one is missing, or another.
    """
    for entry in notes.manifest.entries if notes.manifest else ():
        if entry.status is not ArtifactStatus.COLLECTED:
            continue
        assert notes.manifest is not None
        path = f"{notes.manifest.folder}/{entry.destination}"
        if not os.path.lexists(path):
            raise RecordError(where, f"the artifact {entry.destination} is missing")
        if fingerprint(path)[2] != entry.fingerprint:
            raise RecordError(where, f"the artifact {entry.destination} has changed since it was saved")
