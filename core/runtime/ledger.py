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

    offered: int = 0
    started: int = 0
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
        self._policy = retry_policy(execution)

    @property
    def finished(self) -> bool:
        """Tell whether no task is left."""
        return not self._open

    def first(self) -> Iterator[Key]:
        """Yield the attempts that may start without waiting for another of their task."""
        for index in range(len(self.tasks)):
            yield from self._offer(index, self._execution.attempts.k if self._ahead else 1)

    def _offer(self, index: int, count: int) -> Iterator[Key]:
        task = self._open[index]
        for _ in range(count):
            task.offered += 1
            yield Key(self.request, index, task.offered)

    def job(self, key: Key) -> Job:
        """Return the first execution of *key*."""
        task, state = self.tasks[key.task], self._open[key.task]
        state.started += 1
        identity = f"{self.run_id}/{task.id}/{key.attempt}"
        return Job(task, key.attempt, key.task, len(self.tasks), self._policy, identity, state.started == 1)

    def keep(self, key: Key, record: AttemptRecord) -> FinishedTask | None:
        """Enter a final attempt; return its task if that is finished now."""
        task, state, result = self.tasks[key.task], self._open[key.task], record.result
        state.attempts[key.attempt] = record
        fatal = result.severity is Severity.FATAL
        state.succeeded |= result.metrics.get(self._primary) is True and not fatal
        self.observations.append(
            Observation(
                task.id,
                key.attempt,
                result.metrics,
                result.severity,
                record.retries,
                result.usage,
                round(sum(result.seconds.values()), 6) if result.seconds else None,
                record.discarded,
            )
        )
        if self._stops_early and state.succeeded:
            spared = range(state.started + 1, state.offered + 1)
            self._unneeded += [Key(self.request, key.task, number) for number in spared]
            state.offered = state.started
        if len(state.attempts) < self._needed(state):
            return None
        del self._open[key.task]
        return FinishedTask(task, key.task, len(self.tasks), dict(sorted(state.attempts.items())))

    def _needed(self, state: _Open) -> int:
        """Return how many attempts the task must have: with early stop, those that had been started."""
        return state.started if self._stops_early and state.succeeded else self._execution.attempts.k

    def following(self, key: Key) -> list[Key]:
        """Return the attempts that may start now that *key* is final."""
        state = self._open.get(key.task)
        if state is None or (state.succeeded and self._stops_early) or state.offered >= self._execution.attempts.k:
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
