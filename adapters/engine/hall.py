"""Where the requests of an orchestration meet: one pool for all, worked off in the order of their declaration."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from agentcompass.core.runtime.attempt import Job
from agentcompass.core.runtime.ledger import Key, Ledger
from agentcompass.core.scheduling.schedule import Schedule

from .perform import AttemptPerformer
from .player import StopSignal
from .pool import Pool

MakePerformer = Callable[[Schedule, Key, Job], AttemptPerformer]


class Hall:
    """Waits for *count* requests: each enters with its ledger, or leaves without one. Then the pool begins.

    That no request begins before all have their tasks is what makes the order of admission certain.
    """

    def __init__(
        self,
        count: int,
        slots: int,
        provider_limits: Mapping[str, int],
        openings_per_second: Mapping[str, float],
        stop: StopSignal,
        grace: float,
    ) -> None:
        self._missing, self._slots, self._stop, self._grace = set(range(count)), slots, stop, grace
        self._limits, self._rates = dict(provider_limits), dict(openings_per_second)
        self._entered: dict[int, tuple[Ledger, MakePerformer, asyncio.Future[None]]] = {}
        self._working: asyncio.Task[None] | None = None

    async def execute(
        self,
        index: int,
        ledger: Ledger,
        performer: MakePerformer,
        limits: tuple[Mapping[str, int], Mapping[str, float]],
    ) -> None:
        """Have all of *ledger* executed, with the *limits* of its provider where none were given for all."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for provider, limit in limits[0].items():
            self._limits.setdefault(provider, limit)
        for provider, rate in limits[1].items():
            self._rates.setdefault(provider, rate)
        self._entered[index] = ledger, performer, done
        self.leave(index)
        await done

    def leave(self, index: int) -> None:
        """Wait no longer for request *index*; it has entered, or never will."""
        self._missing.discard(index)
        if not self._missing and self._working is None and self._entered:
            self._working = asyncio.get_running_loop().create_task(self._work(), name="agentcompass-pool")

    async def _work(self) -> None:
        ledgers = [self._entered[index][0] for index in sorted(self._entered)]
        schedule = Schedule(ledgers, self._slots, self._limits, self._rates)
        error: BaseException | None = None
        for ledger in ledgers:  # one whose work earlier runs have done waits for nobody
            self._tell(ledger, schedule)
        try:
            ended = partial(self._ended, schedule)
            await Pool(schedule, self._performer(schedule), self._stop, self._grace, ended).work()
        except BaseException as exc:
            error = exc
        for _, _, done in self._entered.values():
            if done.done():
                continue
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

    def _performer(self, schedule: Schedule) -> Callable[[Key, Job], AttemptPerformer]:
        return lambda key, job: self._entered[key.request][1](schedule, key, job)

    def _ended(self, schedule: Schedule, key: Key) -> None:
        self._tell(self._entered[key.request][0], schedule)

    def _tell(self, ledger: Ledger, schedule: Schedule) -> None:
        """Let the request of *ledger* go on, if all of its work is done, and all of it is saved."""
        done = self._entered[ledger.request][2]
        if ledger.finished and not done.done() and not any(key.request == ledger.request for key in schedule.running):
            done.set_result(None)
