"""The real clock."""

from __future__ import annotations

import time


class SystemClock:
    """The machine's own time; its stopwatch is the one that asyncio's loops use."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds since some moment."""
        return time.monotonic()
