"""Names what blocks the event loop: a component that never gives control back stalls every attempt."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context

log = logging.getLogger("agentcompass.engine")
PATIENCE_SECONDS = 10.0


@contextmanager
def watched(patience: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Warn, with the place in the code, whenever the running loop does not answer for *patience* seconds."""
    loop, over = asyncio.get_running_loop(), threading.Event()
    blocked = threading.get_ident()

    def watch() -> None:
        while not over.is_set():
            answered = threading.Event()
            try:
                loop.call_soon_threadsafe(answered.set)
            except RuntimeError:  # the loop has been closed
                return
            if not _either(answered, over, patience):
                log.warning("nothing moves for %g s, because of:\n%s", patience, _place(blocked))
                answered.wait()
            over.wait(patience)

    context = copy_context()  # so that what is logged there is known to be of this run
    threading.Thread(target=context.run, args=(watch,), daemon=True, name="agentcompass-watchdog").start()
    try:
        yield
    finally:
        over.set()


def _either(answered: threading.Event, over: threading.Event, patience: float) -> bool:
    return answered.wait(patience) or over.is_set()


def _place(thread: int) -> str:
    frame = sys._current_frames().get(thread)
    return "".join(traceback.format_stack(frame)[-6:]) if frame else "(unknown)"
