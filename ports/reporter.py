"""Observers of a run: they see everything and change nothing."""

from __future__ import annotations

from typing import Protocol

from agentcompass.core.model.event import Event
from agentcompass.core.records.progress import Progress


class Reporter(Protocol):
    """An observer; subclass it and override what is shown. An exception in it is logged and ignored."""

    def on_event(self, event: Event, progress: Progress) -> None:
        """See *event*, and the state of the run after it; called for every event, so it must be quick."""
        return

    def close(self) -> None:
        """Leave the terminal as it was."""
        return
