"""Progress of one of several runs, as lines that begin with its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from agentcompass.core.model.event import Event
from agentcompass.core.records.progress import Progress
from agentcompass.ports.reporter import Reporter

from .plain import PlainReporter, line


class NamedReporter(PlainReporter):
    """Prints what a plain reporter prints, after the name of the request."""

    def __init__(self, stream: TextIO, name: str) -> None:
        super().__init__(stream)
        self._name = name

    def on_event(self, event: Event, progress: Progress) -> None:
        """Print a line if the state changed or enough time has passed."""
        if self._is_due(event, progress):
            print(f"{self._name:<16} {line(progress)}", file=self._stream, flush=True)


def request_reporters(mode: str, name: str, stream: TextIO) -> Sequence[Reporter]:
    """Return the observers of the request called *name*: lines for ``plain``, and for ``auto`` on a terminal."""
    shown = mode == "plain" or (mode == "auto" and stream.isatty())
    return (NamedReporter(stream, name),) if shown else ()
