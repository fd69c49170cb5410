"""Progress as a live view on a terminal."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from agentcompass.core.model.event import Event
from agentcompass.core.records.progress import ActiveTask, Progress
from agentcompass.ports.reporter import Reporter

SHOWN_TASKS = 8
FRAMES_PER_SECOND = 4


class LiveReporter(Reporter):
    """Redraws the state of the run a few times a second, below whatever is logged."""

    def __init__(self, stream: TextIO) -> None:
        self._progress: Progress | None = None
        console = Console(file=stream)
        self._live = Live(
            get_renderable=self._render,
            console=console,
            refresh_per_second=FRAMES_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=True,
        )

    def on_event(self, event: Event, progress: Progress) -> None:
        """Begin with the first event; the view reads the state when it draws."""
        if self._progress is None:
            self._progress = progress
            self._live.start()
        if event.event == "run_finished":
            self.close()

    def close(self) -> None:
        """Remove the view."""
        self._live.stop()

    def _render(self) -> RenderableType:
        progress = self._progress
        return Text("") if progress is None else view(progress)


def view(progress: Progress) -> RenderableType:
    """Return the state of the run as something to draw."""
    head = Table.grid(padding=(0, 2))
    names = [str(progress.components.get(name) or "-") for name in ("benchmark", "harness", "model")]
    bar = ProgressBar(total=max(progress.total_tasks, 1), completed=progress.finished_tasks, width=30)
    head.add_row(
        Text(" / ".join(names), style="bold"),
        bar,
        f"{progress.finished_tasks}/{progress.total_tasks}",
        Text(f"{progress.running_tasks} running"),
        Text(f"{progress.failed_tasks} failed", style="red" if progress.failed_tasks else ""),
        Text(f"{progress.retries} retries"),
        Text(f"{progress.elapsed_seconds:.0f} s"),
    )
    tasks = Table.grid(padding=(0, 2))
    active = list(progress.active.items())
    for task_id, state in active[:SHOWN_TASKS]:
        tasks.add_row(Text(task_id, overflow="ellipsis", no_wrap=True), _phase(state))
    if len(active) > SHOWN_TASKS:
        tasks.add_row(Text(f"... and {len(active) - SHOWN_TASKS} more", style="dim"), "")
    return Group(head, tasks)


def _phase(state: ActiveTask) -> Text:
    attempt = f" (attempt {state.attempt})" if state.attempt else ""
    return Text(f"{state.phase}{attempt}", style="cyan")
