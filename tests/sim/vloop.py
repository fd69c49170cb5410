"""An asyncio loop on virtual time: where the selector would sleep, the clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import selectors

HORIZON = 1e8  #: seconds; what happens later than that does not happen


class _Jump(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.loop: VirtualLoop | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert self.loop is not None
        if timeout is None:
            raise RuntimeError("nothing will ever happen")
        if timeout > 0:
            self.loop.jump()
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time passes only when everything waits."""

    def __init__(self) -> None:
        self._now = 0.0
        selector = _Jump()
        super().__init__(selector)
        selector.loop = self

    def time(self) -> float:
        """Return the virtual time."""
        return self._now

    def jump(self) -> None:
        """Let it be the moment of the next timer, exactly."""
        moment = self._scheduled[0].when()
        if moment > HORIZON:
            raise RuntimeError("nothing will ever happen")
        self._now = max(self._now, moment)
