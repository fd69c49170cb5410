"""Executes what a schedule admits, each execution in an asyncio task of its own; the only place that waits for time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from math import inf

from agentcompass.core.runtime.attempt import GivenUp, Job, Step, run_attempt
from agentcompass.core.runtime.effects import Stop
from agentcompass.core.runtime.ledger import Key
from agentcompass.core.scheduling.schedule import Schedule

from .perform import AttemptPerformer
from .player import OBEDIENCE_SECONDS, Player, StopSignal

log = logging.getLogger("agentcompass.engine")


class Pool:
    """Works *schedule* off; *performer* makes what performs one execution, *ended* is told of its end."""

    def __init__(
        self,
        schedule: Schedule,
        performer: Callable[[Key, Job], AttemptPerformer],
        stop: StopSignal,
        grace: float,
        ended: Callable[[Key], None] = lambda key: None,
    ) -> None:
        self._schedule, self._performer, self._stop, self._grace = schedule, performer, stop, grace
        self._ended = ended
        self._changed = asyncio.Event()
        self._working: dict[Key, tuple[Player, asyncio.Task[None]]] = {}

    async def work(self) -> None:
        """Execute until the schedule is complete, or everything has been tidied up after a stop."""
        loop = asyncio.get_running_loop()
        forget = self._stop.listen(self._stopped)
        if self._stop.reason is not None:
            self._stopped()
        try:
            while not self._schedule.complete:
                self._changed.clear()
                starts, wake = self._schedule.admit(loop.time())
                for key, job in starts:
                    self._start(key, job)
                if wake == inf and not self._working and not self._schedule.complete:
                    raise AssertionError("nothing runs, nothing is awaited, and the work is not done")
                timer = loop.call_at(wake, self._changed.set) if wake < inf else None
                await self._changed.wait()
                if timer is not None:
                    timer.cancel()
        finally:
            forget()
            if self._working:
                await asyncio.wait([task for _, task in self._working.values()])

    def _start(self, key: Key, job: Job) -> None:
        player = Player(run_attempt(job), self._performer(key, job).perform, self._stop)
        executing = self._execute(key, job, player)
        task = asyncio.get_running_loop().create_task(executing, name=f"{job.task.id} {job.attempt}")
        self._working[key] = player, task

    async def _execute(self, key: Key, job: Job, player: Player) -> None:
        step: Step = GivenUp()
        try:
            step = await player.play()
        except asyncio.CancelledError:
            log.error("gave up tidying after %s attempt %d", job.task.id, job.attempt)
        except OSError as exc:
            self._stop.set(Stop.BROKEN, f"results could not be written: {exc}")
        except Exception as exc:
            log.exception("a defect of AgentCompass stopped the run")
            self._stop.set(Stop.BROKEN, f"unexpected {type(exc).__name__}: {exc}")
        finally:
            self._left(key, step)

    def _left(self, key: Key, step: Step) -> None:
        if self._working.pop(key, None) is not None:
            self._schedule.ended(key, step, asyncio.get_running_loop().time())
            self._ended(key)
            self._changed.set()

    def _stopped(self) -> None:
        self._schedule.give_up()
        self._changed.set()
        if self._working:
            asyncio.get_running_loop().call_later(self._grace, self._force)

    def _force(self) -> None:
        for player, _ in self._working.values():
            player.force()
        if self._working:
            asyncio.get_running_loop().call_later(2 * OBEDIENCE_SECONDS, self._abandon)

    def _abandon(self) -> None:
        for key in list(self._working):
            log.error("abandoned attempt %d of task %d: it does not let itself be cancelled", key.attempt, key.task)
            self._left(key, GivenUp())
