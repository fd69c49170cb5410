"""Grades saved work again: every attempt of another run that has a checkpoint, none of them with its agent."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentcompass.core.errors import AgentCompassError
from agentcompass.core.model.issue import Issue, IssuePhase, Severity
from agentcompass.core.model.result import RunResult, Usage
from agentcompass.core.model.task import Task
from agentcompass.core.reuse import complaint, saved_attempt
from agentcompass.core.runtime.ledger import AttemptRecord, Key

from .reuse import Continuation

_LOST = Issue(
    Severity.FATAL,
    IssuePhase.EVALUATE,
    "evaluation_input_missing",
    "the source has no saved work of this attempt, so that it cannot be graded again",
)


@dataclass(frozen=True, slots=True)
class Regrade:
    """What is graded again: of *tasks* (None for all), all attempts or *only_failed* ones."""

    tasks: frozenset[str] | None = None
    only_failed: bool = False

    def wants(self, task: Task, record: AttemptRecord | None, primary: str) -> bool:
        """Tell whether an attempt of *task*, which ended as *record*, is graded again."""
        if self.tasks is not None and task.id not in self.tasks:
            return False
        if record is None or not self.only_failed:
            return True
        value = record.result.metrics.get(primary)
        return value is None or value < 1 or complaint(record.result.issues, ()) is not None


class Rescoring(Continuation):
    """What a rescoring takes over: graded again where there is a checkpoint, else as it was; never executed."""

    regrade = Regrade()

    def _take_over(self, index: int, task: Task) -> None:
        ended: dict[int, tuple[str, AttemptRecord]] = {}
        for number, folder, document in self._source.attempts(task.id):
            try:
                ended[number] = folder, saved_attempt(document, self._contract, self._where(task, number, folder))
            except AgentCompassError as exc:
                self._refuse(task, number, str(exc))
        standing = {}
        for number in range(1, self._k + 1):
            folder, record = ended.get(number, ("", None))
            key = Key(self._ledger.request, index, number)
            wanted = self.regrade.wants(task, record, self._contract.primary.id)
            retries, spent = (record.retries, record.discarded) if record else (0, Usage())
            if wanted and self._resumes(key, task, retries, spent):
                continue
            if record is not None and not record.result.cancelled:
                self._adopt_attempt(task, number, folder, record)
                standing[number] = record
            elif not self._spared(record for _, record in ended.values()):
                standing[number] = AttemptRecord(RunResult(issues=(_LOST,)), 0, None)
        self.report.attempts += len(standing)
        finished = self._ledger.reuse(index, standing) if standing else None
        if finished is not None:
            self.report.tasks += 1
            self.unsaved.append(finished)


def rescoring(regrade: Regrade) -> type[Rescoring]:
    """Return the continuation that grades what *regrade* says."""
    return type("Rescoring", (Rescoring,), {"regrade": replace(regrade)})
