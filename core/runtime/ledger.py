"""The ledger of one evaluation: which attempts each task still needs, what is known of it, when it is finished."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..metrics.observation import Observation
from ..model.issue import Severity, worst
from ..model.plan import Plan, RetryPolicy
from ..model.request import Execution, Strategy
from ..model.result import RunResult, Usage
from ..model.task import Task
from .attempt import Job
from .notes import Notes


@dataclass(frozen=True, slots=True)
class Key:
    """A logical attempt: of which request, of which task (by index), which number (from 1)."""

    request: int
    task: int
    attempt: int

    @property
    def priority(self) -> tuple[int, int, int]:
        """Declaration order: earlier requests first, then earlier tasks."""
        return (self.request, self.task, self.attempt)


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """A final attempt: its result, the retries that it took, the plan that it followed (None if planning failed).

    *discarded* is what the executions that retries replaced have consumed.
    """

    result: RunResult
    retries: int
    plan: Plan | None
    discarded: Usage = Usage()
    saved: Mapping[str, Any] | None = field(default=None, repr=False)  #: the document of a reused one, to be kept as is


@dataclass(frozen=True, slots=True)
class FinishedTask:
    """A task whose attempts are all final (or not needed any more)."""

    task: Task
    index: int
    total: int
    attempts: Mapping[int, AttemptRecord]

    @property
    def severity(self) -> Severity | None:
        """The gravest severity in any attempt."""
        return worst(issue for record in self.attempts.values() for issue in record.result.issues)

    @property
    def failed(self) -> bool:
        """Tell whether a final FATAL or ERROR stands in any attempt."""
        return self.severity in (Severity.FATAL, Severity.ERROR)

    @property
    def status(self) -> str:
        """The word for the progress stream."""
        return "failed" if self.failed else "completed"

    @property
    def payload(self) -> Mapping[str, Any]:
        """What the event `task_finished` carries."""
        return {"index": self.index, "total": self.total, "severity": self.severity.value if self.severity else ""}


@dataclass(slots=True)
class _Open:
    """A task under way."""

    offered: int = 0  #: the highest number that was handed out, or passed over because it was reused
    started: int = 0
    reused: int = 0
    waiting: list[int] = field(default_factory=list)  #: numbers that were handed out and have not started
    succeeded: bool = False
    attempts: dict[int, AttemptRecord] = field(default_factory=dict)


class Ledger:
    """Hands out the attempts of *tasks* in order, and keeps what became of them.

    *overlap* says that attempts of one task may run at the same time. A task's results are held until it is finished;
    of a finished task only one observation per attempt stays.
    """

    def __init__(
        self,
        request: int,
        run_id: str,
        tasks: Sequence[Task],
        execution: Execution,
        provider: str,
        overlap: bool,
        primary: str,
    ) -> None:
        self.request, self.run_id, self.tasks, self.provider = request, run_id, tasks, provider
        self.observations: list[Observation] = []
        self._execution, self._primary = execution, primary
        self._stops_early = execution.attempts.strategy is Strategy.PASS
        self._ahead = overlap if not self._stops_early else overlap and execution.speculative
        self._open: dict[int, _Open] = {index: _Open() for index in range(len(tasks))}
        self._unneeded: list[Key] = []
        self._resumed: dict[Key, tuple[Notes | None, int, Usage]] = {}
        self._policy = retry_policy(execution)

    @property
    def finished(self) -> bool:
        """Tell whether no task is left."""
        return not self._open

    def reuse(self, index: int, attempts: Mapping[int, AttemptRecord]) -> FinishedTask | None:
        """Enter attempts of an earlier run, before the first is handed out; return the task if it needs no more."""
        task, state = self.tasks[index], self._open[index]
        for number, record in sorted(attempts.items()):
            state.reused += 1
            self._enter(task, state, number, record)
        return self._finished(index)

    def resume(self, key: Key, notes: Notes | None, retries: int = 0, discarded: Usage = Usage()) -> None:  # noqa: B008
        """Let *key* begin as the source left it: with its grading, if *notes* hold all that came before, and as a
        retry, if an execution has failed there.
        """
        self._resumed[key] = notes, retries, discarded

    def opens(self, key: Key) -> bool:
        """Tell whether *key* opens a sandbox before anything else; one that is only graded has its own way to one."""
        notes = self._resumed[key][0] if key in self._resumed else None
        return notes is None or notes.prepared is None

    def first(self) -> Iterator[Key]:
        """Yield the attempts that may start without waiting for another of their task."""
        for index in list(self._open):
            yield from self._offer(index, self._execution.attempts.k if self._ahead else 1)

    def _offer(self, index: int, count: int) -> Iterator[Key]:
        state = self._open[index]
        while count and state.offered < self._execution.attempts.k:
            state.offered += 1
            if state.offered not in state.attempts:
                count -= 1
                state.waiting.append(state.offered)
                yield Key(self.request, index, state.offered)

    def job(self, key: Key) -> Job:
        """Return the first execution of *key*."""
        task, state = self.tasks[key.task], self._open[key.task]
        state.started += 1
        state.waiting.remove(key.attempt)
        identity = f"{self.run_id}/{task.id}/{key.attempt}"
        notes, retries, discarded = self._resumed.pop(key, (None, 0, Usage()))
        total, opens = len(self.tasks), state.started == 1
        return Job(
            task,
            key.attempt,
            key.task,
            total,
            self._policy,
            identity,
            opens,
            retries=retries,
            notes=notes,
            discarded=discarded,
        )

    def keep(self, key: Key, record: AttemptRecord) -> FinishedTask | None:
        """Enter a final attempt; return its task if that is finished now."""
        state = self._open[key.task]
        self._enter(self.tasks[key.task], state, key.attempt, record)
        if self._stops_early and state.succeeded:
            self._unneeded += [Key(self.request, key.task, number) for number in state.waiting]
            state.waiting.clear()
        return self._finished(key.task)

    def _enter(self, task: Task, state: _Open, number: int, record: AttemptRecord) -> None:
        result = record.result
        state.attempts[number] = record
        fatal = result.severity is Severity.FATAL
        state.succeeded |= result.metrics.get(self._primary) is True and not fatal
        self.observations.append(
            Observation(
                task.id,
                number,
                result.metrics,
                result.severity,
                record.retries,
                result.usage,
                round(sum(result.seconds.values()), 6) if result.seconds else None,
                record.discarded,
            )
        )

    def _finished(self, index: int) -> FinishedTask | None:
        """Return the task if it needs no further attempt, and forget it."""
        state = self._open[index]
        if len(state.attempts) < self._needed(state):
            return None
        del self._open[index]
        return FinishedTask(self.tasks[index], index, len(self.tasks), dict(sorted(state.attempts.items())))

    def _needed(self, state: _Open) -> int:
        """Return how many attempts the task must have: with early stop, those that had been started."""
        return state.reused + state.started if self._stops_early and state.succeeded else self._execution.attempts.k

    def following(self, key: Key) -> list[Key]:
        """Return the attempts that may start now that *key* is final."""
        state = self._open.get(key.task)
        if state is None or (state.succeeded and self._stops_early):
            return []
        return list(self._offer(key.task, 1))

    def unneeded(self) -> list[Key]:
        """Return the attempts that are offered, not started, and made unnecessary by a success; each only once."""
        unneeded, self._unneeded = self._unneeded, []
        return unneeded


def retry_policy(execution: Execution) -> RetryPolicy:
    """Return the retry policy that *execution* asks for."""
    return RetryPolicy(
        execution.max_retries,
        execution.retry_pattern_list or (),
        execution.retry_min_delay_seconds,
        execution.retry_max_delay_seconds,
    )
