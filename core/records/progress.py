"""The progress snapshot: a fold of the events, and nothing but."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..model.event import Event


@dataclass(slots=True)
class ActiveTask:
    """A task that has started and not finished."""

    category: str | None
    phase: str
    attempt: int | None
    updated_at: float
    details: Any


class Progress:
    """Counts of one run, kept up to date by `apply`."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.components: dict[str, Any] = {}
        self.status = "created"
        self.total_tasks = self.reused_tasks = self.pending_tasks = 0
        self.finished_tasks = 0
        self.completed_tasks = self.failed_tasks = self.error_tasks = self.warning_tasks = self.skipped_tasks = 0
        self.attempts_started = self.attempts_finished = self.retries = self.partials_saved = 0
        self.phase_counts: Counter[str] = Counter()
        self.active: dict[str, ActiveTask] = {}
        self.began_at: float | None = None
        self.updated_at = 0.0

    @property
    def running_tasks(self) -> int:
        """Tasks that have started and not finished."""
        return len(self.active)

    @property
    def elapsed_seconds(self) -> float:
        """Seconds from the first to the latest event."""
        return round(self.updated_at - self.began_at, 3) if self.began_at is not None else 0.0

    def apply(self, event: Event) -> None:
        """Take *event* into account; events without a counter only move the time."""
        if self.began_at is None:
            self.began_at = event.timestamp
        self.updated_at = max(self.updated_at, event.timestamp)
        handler = _HANDLERS.get(event.event)
        if handler:
            handler(self, event)

    def _run_started(self, event: Event) -> None:
        self.status, self.components = "running", dict(event.payload)

    def _tasks_loaded(self, event: Event) -> None:
        self.total_tasks = self.pending_tasks = event.payload["total_tasks"]

    def _reuse_loaded(self, event: Event) -> None:
        reused = event.payload["reused_tasks"]
        self.reused_tasks = reused
        self.finished_tasks += reused
        self.completed_tasks += reused
        self.pending_tasks -= reused

    def _task_started(self, event: Event) -> None:
        assert event.task_id is not None
        self.pending_tasks -= 1
        self.active[event.task_id] = ActiveTask(event.category, "running", None, event.timestamp, {})
        self.phase_counts["running"] += 1

    def _attempt_started(self, event: Event) -> None:
        self.attempts_started += 1
        self._touch(event)

    def _attempt_finished(self, event: Event) -> None:
        self.attempts_finished += 1
        self._touch(event)

    def _phase_changed(self, event: Event) -> None:
        active = self._touch(event)
        if active and event.phase:
            self._leave(active.phase)
            active.phase, active.details = event.phase, event.payload
            self.phase_counts[event.phase] += 1

    def _artifact_progress(self, event: Event) -> None:
        active = self._touch(event)
        if active:
            active.details = event.payload

    def _touch(self, event: Event) -> ActiveTask | None:
        active = self.active.get(event.task_id or "")
        if active:
            active.attempt, active.updated_at = event.attempt or active.attempt, event.timestamp
        return active

    def _leave(self, phase: str) -> None:
        self.phase_counts[phase] -= 1
        if not self.phase_counts[phase]:
            del self.phase_counts[phase]

    def _attempt_retry(self, event: Event) -> None:
        self.retries += 1

    def _partial_saved(self, event: Event) -> None:
        self.partials_saved += 1

    def _task_finished(self, event: Event) -> None:
        active = self.active.pop(event.task_id or "", None)
        if active:
            self._leave(active.phase)
        self.finished_tasks += 1
        self.completed_tasks += event.status == "completed"
        self.failed_tasks += event.status == "failed"
        self.skipped_tasks += event.status == "skipped"
        self.error_tasks += event.payload.get("severity") == "error"
        self.warning_tasks += event.payload.get("severity") == "warning"

    def _summary_started(self, event: Event) -> None:
        self.status = "summarizing"

    def _run_finished(self, event: Event) -> None:
        self.status = event.status or "failed"
        self.pending_tasks = self.total_tasks - self.finished_tasks
        self.active.clear()
        self.phase_counts.clear()

    def document(self) -> dict[str, Any]:
        """Return the snapshot as a document."""
        return {
            "run_id": self.run_id,
            **{name: self.components.get(name) for name in ("model", "benchmark", "harness", "environment")},
            "status": self.status,
            "total_tasks": self.total_tasks,
            "reused_tasks": self.reused_tasks,
            "pending_tasks": self.pending_tasks,
            "running_tasks": self.running_tasks,
            "finished_tasks": self.finished_tasks,
            "completed_tasks": self.completed_tasks,
            "failed_tasks": self.failed_tasks,
            "error_tasks": self.error_tasks,
            "warning_tasks": self.warning_tasks,
            "skipped_tasks": self.skipped_tasks,
            "attempts_started": self.attempts_started,
            "attempts_finished": self.attempts_finished,
            "retries": self.retries,
            "partials_saved": self.partials_saved,
            "current_phase_counts": dict(self.phase_counts),
            "active_tasks": {
                task: {
                    "category": active.category,
                    "phase": active.phase,
                    "attempt": active.attempt,
                    "updated_at": active.updated_at,
                    "details": dict(active.details),
                }
                for task, active in self.active.items()
            },
            "elapsed_seconds": self.elapsed_seconds,
            "updated_at": self.updated_at,
        }


_HANDLERS: dict[str, Callable[[Progress, Event], None]] = {
    "run_started": Progress._run_started,
    "tasks_loaded": Progress._tasks_loaded,
    "reuse_loaded": Progress._reuse_loaded,
    "task_started": Progress._task_started,
    "attempt_started": Progress._attempt_started,
    "attempt_finished": Progress._attempt_finished,
    "phase_changed": Progress._phase_changed,
    "artifact_progress": Progress._artifact_progress,
    "attempt_retry": Progress._attempt_retry,
    "partial_saved": Progress._partial_saved,
    "task_finished": Progress._task_finished,
    "summary_started": Progress._summary_started,
    "run_finished": Progress._run_finished,
}


def fold(events: Iterable[Event], run_id: str) -> Progress:
    """Return the snapshot after *events*."""
    progress = Progress(run_id)
    for event in events:
        progress.apply(event)
    return progress
