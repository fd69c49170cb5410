"""Time: the only source of it."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """The wall and a stopwatch."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some moment; never goes back. The same scale as the event loop's own time."""
        ...
