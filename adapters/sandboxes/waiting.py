"""Waiting that a cancellation cannot cut short, and threads that no other work can delay."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


async def to_the_end(work: Awaitable[T], on_cancel: Callable[[], object] | None = None) -> T:
    """Await *work* to its end; a cancellation that comes meanwhile calls *on_cancel* and goes on afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
            if on_cancel is not None:
                on_cancel()
    if cancelled is not None:
        raise cancelled from (None if task.cancelled() else task.exception())
    return task.result()


async def in_own_thread(work: Callable[[], T]) -> T:
    """Call *work* in a thread of its own: the loop's pool may be full of long copies, and a kill cannot wait."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001, RUF100  (it is handed over, not swallowed)
            future.set_exception(error)

    Thread(target=run, name="agentcompass-kill", daemon=True).start()
    return await asyncio.wrap_future(future)
