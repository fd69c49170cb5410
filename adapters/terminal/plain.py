"""Progress as lines of text, for logs and pipes."""

from __future__ import annotations

from typing import TextIO

from agentcompass.core.model.event import Event
from agentcompass.core.records.progress import Progress
from agentcompass.ports.reporter import Reporter

EVERY_SECONDS = 10.0  #: a line at least so far apart, but for changes of the run's state


class PlainReporter(Reporter):
    """Prints one line per state of the run, and one now and then while it works."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._status, self._printed_at = "", 0.0

    def on_event(self, event: Event, progress: Progress) -> None:
        """Print a line if the state changed or enough time has passed."""
        if self._is_due(event, progress):
            print(line(progress), file=self._stream, flush=True)

    def _is_due(self, event: Event, progress: Progress) -> bool:
        if progress.status == self._status and event.timestamp - self._printed_at < EVERY_SECONDS:
            return False
        self._status, self._printed_at = progress.status, event.timestamp
        return True


def line(progress: Progress) -> str:
    """Return the state of the run in one line; the counts add up to the total."""
    waiting = max(progress.total_tasks - progress.finished_tasks - progress.running_tasks, 0)
    parts = [
        f"[{progress.elapsed_seconds:8.1f} s] {progress.status:<11}",
        f"tasks {progress.finished_tasks}/{progress.total_tasks}",
        f"running {progress.running_tasks}",
        f"waiting {waiting}",
        f"failed {progress.failed_tasks}",
        f"retries {progress.retries}",
    ]
    phases = ", ".join(f"{phase} {count}" for phase, count in sorted(progress.phase_counts.items()))
    return "  ".join(parts) + (f"  ({phases})" if phases else "")
