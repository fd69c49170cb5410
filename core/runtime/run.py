"""The states of a run and the events that move it: one table, from which the documents' diagram is made too."""

from __future__ import annotations

from enum import StrEnum


class RunState(StrEnum):
    """Where a run is; the last four are final."""

    CREATED = "created"
    RUNNING = "running"
    SUMMARIZING = "summarizing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"


class RunEvent(StrEnum):
    """What moves a run from one state to another."""

    STARTED = "started"
    WORK_ENDED = "work_ended"
    SUCCEEDED = "succeeded"
    BROKEN = "broken"
    INTERRUPTED = "interrupted"
    EXPIRED = "expired"


TRANSITIONS: dict[tuple[RunState, RunEvent], RunState] = {
    (RunState.CREATED, RunEvent.STARTED): RunState.RUNNING,
    (RunState.CREATED, RunEvent.BROKEN): RunState.FAILED,
    (RunState.RUNNING, RunEvent.WORK_ENDED): RunState.SUMMARIZING,
    (RunState.RUNNING, RunEvent.BROKEN): RunState.FAILED,
    (RunState.RUNNING, RunEvent.INTERRUPTED): RunState.CANCELLED,
    (RunState.RUNNING, RunEvent.EXPIRED): RunState.TIMED_OUT,
    (RunState.SUMMARIZING, RunEvent.SUCCEEDED): RunState.COMPLETED,
    (RunState.SUMMARIZING, RunEvent.BROKEN): RunState.FAILED,
    (RunState.SUMMARIZING, RunEvent.INTERRUPTED): RunState.CANCELLED,
    (RunState.SUMMARIZING, RunEvent.EXPIRED): RunState.TIMED_OUT,
}


class ImpossibleTransitionError(AssertionError):
    """An event came in a state that has no transition for it: a defect of the caller."""


def move(state: RunState, event: RunEvent) -> RunState:
    """Return the state after *event*.

    Raises:
        ImpossibleTransitionError: the table has no such transition.
    """
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise ImpossibleTransitionError(f"{event} in state {state}") from None
