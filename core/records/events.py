"""One event as a line of the progress stream: every field always there."""

from __future__ import annotations

from typing import Any

from ..model.event import Event

#: Events of a whole task: they carry no attempt.
TASK_EVENTS = frozenset({"task_started", "partial_saved", "task_finished"})


def event_document(event: Event, run_id: str) -> dict[str, Any]:
    """Return *event* of *run_id*; the fields of an orchestration are null outside one."""
    return {
        "run_id": run_id,
        "event": event.event,
        "timestamp": event.timestamp,
        "task_id": event.task_id,
        "category": event.category,
        "attempt": event.attempt,
        "phase": event.phase,
        "status": event.status,
        "payload": dict(event.payload),
        "orchestration_id": None,
        "request_key": None,
        "request_name": None,
        "request_index": None,
    }


def event_of(document: dict[str, Any]) -> Event:
    """Return the event that a line of the stream tells."""
    return Event(
        document["event"],
        document["timestamp"],
        document["task_id"],
        document["category"],
        document["attempt"],
        document["phase"],
        document["status"],
        document["payload"],
    )
