"""Plays a script: performs one effect after the other, and delivers limits and cancellations.

The player decides nothing. A limit cancels the work and waits a moment for it; work that does not let itself be
cancelled is abandoned, so that no component can hold up a run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from types import CoroutineType
from typing import Any

from agentcompass.core.errors import PhaseFailed
from agentcompass.core.runtime.effects import Cancelled, Effect, Stop

from .perform import Perform, classified, expired, is_bounded

log = logging.getLogger("agentcompass.engine")
OBEDIENCE_SECONDS = 5.0  #: how long cancelled work may take to end


class StopSignal:
    """Whether, and why, the run is being stopped; whoever listens is told once."""

    def __init__(self) -> None:
        self.reason: Stop | None = None
        self.error: str | None = None
        self._listeners: dict[int, Callable[[], None]] = {}

    def set(self, reason: Stop, error: str | None = None) -> None:
        """Stop the run; the first reason stays."""
        if self.reason is None:
            self.reason, self.error = reason, error
            for listener in list(self._listeners.values()):
                listener()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have *listener* called when the signal comes; return what ends that."""
        token = id(listener)
        self._listeners[token] = listener
        return lambda: self._listeners.pop(token, None) and None

    def cancelled(self) -> Cancelled:
        """Return what is thrown into scripts."""
        return Cancelled(self.reason or Stop.INTERRUPTED, self.error)


class Player:
    """Plays one script in the asyncio task that calls `play`."""

    def __init__(self, script: Coroutine[Any, Any, Any], perform: Perform, stop: StopSignal) -> None:
        self._script, self._perform, self._stop = script, perform, stop
        self._task: asyncio.Task[Any] | None = None
        self._interruptible = self._interrupted = self._forced = False

    async def play(self) -> Any:
        """Return what the script returns; exceptions that it does not handle come out."""
        self._task = asyncio.current_task()
        forget = self._stop.listen(self._interrupt)
        value: Any = None
        error: BaseException | None = None
        try:
            while True:
                try:
                    effect = self._script.throw(error) if error is not None else self._script.send(value)
                except StopIteration as end:
                    return end.value
                value, error = await self._step(effect)
        finally:
            forget()
            self._close()

    def force(self) -> None:
        """End the script where it is: the grace is over, and nothing more is tidied up."""
        self._forced = True
        if self._task is not None:
            self._task.cancel()

    def _close(self) -> None:
        while True:
            try:
                return self._script.close()
            except RuntimeError:  # it asks for one more effect: one level of its tidying is over
                continue

    def _interrupt(self) -> None:
        if self._interruptible and self._task is not None:
            self._interrupted = True
            self._task.cancel()

    async def _step(self, effect: Effect[Any]) -> tuple[Any, BaseException | None]:
        if self._forced:
            raise asyncio.CancelledError
        if self._stop.reason is not None and not effect.shielded:
            return None, self._stop.cancelled()
        try:
            outcome = self._perform(effect)
            if type(outcome) is CoroutineType:
                outcome = await self._interruptibly(outcome, effect)
        except asyncio.CancelledError:
            if self._interrupted and not self._forced:
                return None, self._stop.cancelled()
            if self._forced or (self._task is not None and self._task.cancelling()):
                raise
            return None, classified(effect, RuntimeError("the work cancelled itself"))
        except (Exception, SystemExit) as exc:  # a component may not end the process
            return None, classified(effect, exc)
        return outcome, None

    async def _interruptibly(self, work: Awaitable[Any], effect: Effect[Any]) -> Any:
        self._interrupted, self._interruptible = False, not effect.shielded
        try:
            return await (self._within(work, effect) if is_bounded(effect) else work)
        finally:
            self._interruptible = False
            if self._interrupted and self._task is not None:
                self._task.uncancel()

    async def _within(self, work: Awaitable[Any], effect: Any) -> Any:
        task = asyncio.ensure_future(_staying(work))
        try:
            return await self._until(task, effect)
        except (asyncio.CancelledError, PhaseFailed):
            if task.done() and not task.cancelled() and task.exception() is None and effect.acquires:
                return task.result()
            raise

    async def _until(self, task: asyncio.Future[Any], effect: Any) -> Any:
        try:
            await asyncio.wait({task}, timeout=effect.within)
            if not task.done():
                raise expired(effect)
        finally:
            if not task.done():
                await self._end(task)
        return task.result()

    async def _end(self, task: asyncio.Future[Any]) -> None:
        task.cancel()
        waiting = asyncio.ensure_future(asyncio.wait({task}, timeout=OBEDIENCE_SECONDS))
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError:
            await waiting
            raise
        finally:
            if not task.done():
                log.error("abandoned work that does not let itself be cancelled: %r", task)
                task.add_done_callback(_forget_result)


async def _staying(work: Awaitable[Any]) -> Any:
    """Return what *work* returns; an asyncio task of its own would take the loop along when it leaves the process."""
    try:
        return await work
    except SystemExit as exc:
        raise RuntimeError(f"the work left the process: SystemExit: {exc}") from exc


def _forget_result(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()  # asking for it keeps asyncio from complaining that nobody did
