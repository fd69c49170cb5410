"""Plays the same settings with the engine's own player and pool, on virtual time, and compares with the world."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from typing import Any

from agentcompass.adapters.engine import hall
from agentcompass.adapters.engine.player import Player, StopSignal
from agentcompass.adapters.engine.pool import Pool
from agentcompass.core.runtime import effects as fx
from agentcompass.core.runtime import run_effects as rx
from agentcompass.core.runtime.attempt import Job, Step
from agentcompass.core.runtime.effects import Stop
from agentcompass.core.runtime.evaluation import RunOutcome, run_evaluation
from agentcompass.core.runtime.ledger import Key
from agentcompass.core.scheduling.schedule import Schedule

from .accounts import check_run
from .fate import Fate
from .office import CancelledItself, Office
from .play import failed, play
from .settings import Settings
from .vloop import VirtualLoop
from .watch import Watch
from .world import INSTANT, OBEDIENCE_SECONDS, RELEASED, World, quick_reports

TOLERANCE = 0.01  #: seconds
FOR_EVER = 1e9


class WatchedSchedule(Schedule):
    """A schedule that tells *watch* what it does."""

    watch: Watch

    def admit(self, now: float) -> tuple[list[tuple[Key, Job]], float]:
        """Admit, and have it checked."""
        starts, wake = super().admit(now)
        for key, job in starts:
            self.watch.admitted(key, job, now)
        self.watch.rested(now)
        return starts, wake

    def ended(self, key: Key, step: Step, now: float) -> None:
        """End, and have it checked."""
        self.watch.trace.append((now, key, type(step).__name__))
        super().ended(key, step, now)
        self.watch.ended(key, step, now)


class Stage:
    """One run of the engine: what its performers share."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.watch, self.stop = settings, Watch(settings), StopSignal()
        self.loop = VirtualLoop()
        self.offices = [Office(settings, index, self.loop.time) for index in range(len(settings.orders))]
        self.outcomes: dict[int, RunOutcome] = {}
        self.schedule: WatchedSchedule | None = None
        self._opened = 0
        self.hall = hall.Hall(
            len(self.offices), settings.slots, settings.limits, settings.rates, self.stop, settings.grace
        )

    def run(self) -> Stage:
        """Play to the end."""
        self.loop.set_exception_handler(lambda loop, context: None)
        try:
            with quick_reports(), quiet(), self._seen():
                self.loop.run_until_complete(self._main())
        finally:
            self._sweep()
            if self.watch.violation is not None:
                raise self.watch.violation
        return self

    def _sweep(self) -> None:
        """End what the engine has abandoned; what tidies up at its end may begin something more."""
        asyncio.set_event_loop(self.loop)  # where it is begun
        swept: set[asyncio.Task[Any]] = set()
        while left := asyncio.all_tasks(self.loop) - swept:
            swept |= left
            for task in left:
                with quiet(), suppress(RuntimeError):
                    task.get_coro().close()
        asyncio.set_event_loop(None)
        self.loop.close()

    async def _main(self) -> None:
        self.stop.listen(lambda: self.watch.stopped(self.loop.time()))
        if self.settings.deadline is not None:
            self.loop.call_at(self.settings.deadline, self.stop.set, Stop.EXPIRED, "expired")
        if self.settings.interrupt is not None:
            self.loop.call_at(self.settings.interrupt, self.stop.set, Stop.INTERRUPTED, "interrupted")
        await asyncio.gather(*(self._run(office) for office in self.offices))

    async def _run(self, office: Office) -> None:
        office.observer = self.watch.announced
        script = run_evaluation(office.request, office.contract)
        try:
            self.outcomes[office.index] = await Player(script, Performer(self, office).perform, self.stop).play()
        finally:
            self.hall.leave(office.index)

    async def execute(self, office: Office, tasks: list[Any]) -> rx.Executed:
        """Execute the tasks of *office*, where all requests meet."""
        self.watch.enlist(office, len(tasks))
        ledger = office.open_ledger(tasks)
        await self.hall.execute(office.index, ledger, self._performer, ({}, {}))
        return rx.Executed(ledger.observations, self.stop.reason, self.stop.error)

    @contextmanager
    def _seen(self) -> Iterator[None]:
        """Have the hall use a schedule and a pool that are watched."""

        def schedule(*given: Any) -> WatchedSchedule:
            self.schedule = WatchedSchedule(*given)
            self.schedule.watch = self.watch
            return self.schedule

        def pool(*given: Any) -> Pool:
            made = Pool(*given)
            self._spy_on_force(made)
            return made

        before = hall.Schedule, hall.Pool
        hall.Schedule, hall.Pool = schedule, pool
        try:
            yield
        finally:
            hall.Schedule, hall.Pool = before

    def _spy_on_force(self, pool: Any) -> None:
        force = pool._force

        def forced() -> None:
            self.watch.forced = bool(self.schedule and self.schedule.running)
            force()

        pool._force = forced

    def _performer(self, schedule: Schedule, key: Key, job: Job) -> Any:
        return Performer(self, self.offices[key.request], key, job)

    def opened(self) -> None:
        """Count an opening, which may come together with the stop."""
        self._opened += 1
        if self._opened == self.settings.stop_with_opening:
            self.loop.call_soon(self.stop.set, Stop.INTERRUPTED, "with an opening")


class Performer:
    """Performs effects by their fates."""

    def __init__(self, stage: Stage, office: Office, key: Key | None = None, job: Job | None = None) -> None:
        self.stage, self.office, self.key, self.job = stage, office, key, job

    def perform(self, effect: Any) -> Any:
        """Return the result of *effect*, or a coroutine of it."""
        if isinstance(effect, INSTANT):
            value, error = self.office.instant(self.key, self.job, effect)
            if error is not None:
                raise error
            return value
        if isinstance(effect, fx.PaceOpening):
            return self._pace(effect)
        now = self.stage.loop.time()
        self.stage.watch.trace.append((now, self.key or self.office.index, type(effect).__name__))
        if self.key is not None and self.job is not None:
            self.stage.watch.begins(self.key, self.job, effect, now)
        return self._work(effect, self.office.fate(self.key, self.job, effect))

    async def _pace(self, effect: fx.PaceOpening) -> None:
        assert self.stage.schedule is not None
        assert self.key is not None
        now = self.stage.loop.time()
        at = self.stage.schedule.reserve_opening(effect.provider, now)
        self.stage.watch.paces(self.key, effect.provider, now)
        if at > now:
            await asyncio.sleep(at - now)

    async def _work(self, effect: Any, fate: Fate) -> Any:
        try:
            await asyncio.sleep(min(fate.latency, FOR_EVER))
        except asyncio.CancelledError as cancelled:
            comes_late = _comes_late(effect, fate)
            if self.key is not None and not comes_late:
                self.stage.watch.ends(self.key, effect, None, cancelled, self.stage.loop.time())
            await self._resist(fate.stubborn)
            if not comes_late:
                raise
        return await self._result(effect, fate)

    async def _resist(self, seconds: float) -> None:
        if seconds < inf:
            return await asyncio.sleep(seconds)
        while True:
            try:
                await asyncio.sleep(FOR_EVER)
            except asyncio.CancelledError:
                continue

    async def _result(self, effect: Any, fate: Fate) -> Any:
        value, error = self.office.answer(self.key, self.job, effect, fate)
        if self.key is not None:
            self.stage.watch.ends(self.key, effect, value, error, self.stage.loop.time())
        if isinstance(error, CancelledItself):
            raise asyncio.CancelledError
        if error is not None:
            raise error
        if isinstance(effect, fx.OpenEnvironment) and effect.within is not None:
            self.stage.opened()
        if isinstance(effect, rx.ExecuteTasks):
            return await self.stage.execute(self.office, list(effect.tasks))
        return value


def _comes_late(effect: Any, fate: Fate) -> bool:
    """Tell whether cancelled work gives its result all the same; what nobody waits for any more cleans up itself."""
    waited_for = getattr(effect, "within", None) is None or fate.stubborn < OBEDIENCE_SECONDS
    return isinstance(effect, RELEASED) and fate.stubborn > 0 and waited_for


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the engine from logging what it abandons."""
    logger = logging.getLogger("agentcompass.engine")
    disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = disabled


def check_agreement(world: World, stage: Stage) -> None:
    """Check *stage*'s run by itself, and that it is the same as the *world*'s."""
    for office in stage.offices:
        check_run(stage.watch, office, stage.outcomes.get(office.index), stage.stop.reason)
    require = stage.watch.require
    require(world.reason == stage.stop.reason, "both stop for the same reason", (world.reason, stage.stop.reason))
    for ours, theirs in zip(world.offices, stage.offices, strict=True):
        name = ours.index
        require(_outcome(world.outcomes[name]) == _outcome(stage.outcomes[name]), "the outcomes agree", name)
        _same(require, "events", _timed_events(ours), _timed_events(theirs))
        for what in ("attempts", "details", "retries"):
            _same_documents(require, what, getattr(ours.store, what), getattr(theirs.store, what))
    a, b = _by_actor(world.watch.trace), _by_actor(stage.watch.trace)
    require(a.keys() == b.keys(), "the same scripts are played", set(a) ^ set(b))
    for actor in a:
        _same(require, f"steps of {actor}", a[actor], b[actor])


def _same(require: Any, what: str, ours: list[tuple[float, Any]], theirs: list[tuple[float, Any]]) -> None:
    for one, other in zip(ours, theirs, strict=False):
        if one[1] != other[1] or abs(one[0] - other[0]) >= TOLERANCE:
            require(False, f"{what} agree", f"world {one}, engine {other}")
    require(len(ours) == len(theirs), f"{what} agree", f"world {len(ours)}, engine {len(theirs)}")


def _same_documents(require: Any, what: str, ours: dict[Any, Any], theirs: dict[Any, Any]) -> None:
    require(ours.keys() == theirs.keys(), f"{what} agree", set(ours) ^ set(theirs))
    for name in ours if ours != theirs else ():
        one, other = _plain(ours[name]), _plain(theirs[name])
        differing = {key: (one[key], other.get(key)) for key in one if one[key] != other.get(key)}
        require(one == other, f"{what} agree", (name, differing))


def _outcome(outcome: RunOutcome) -> Any:
    return outcome.state, outcome.error, repr(outcome.report)


def _timed_events(office: Office) -> list[tuple[float, Any]]:
    """Return the events in their order; those of one instant in the order of their tasks."""
    told = []
    for place, document in enumerate(office.store.events):
        who = (document["task_id"] or "", document["attempt"] or 0)
        told.append((document["timestamp"], who, place, {k: v for k, v in document.items() if k != "timestamp"}))
    return [(time, what) for time, _, _, what in sorted(told, key=lambda entry: (round(entry[0], 6), *entry[1:3]))]


def _by_actor(trace: list[tuple[float, Any, str]]) -> dict[Any, list[tuple[float, Any]]]:
    actors: dict[Any, list[tuple[float, Any]]] = defaultdict(list)
    for now, who, what in trace:
        actors[who].append((now, what))
    return actors


def _plain(document: Any) -> Any:
    """Return *document* without tracebacks, which tell of their driver, and with seconds to the hundredth."""
    if isinstance(document, dict):
        kept = {key: value for key, value in document.items() if key != "execution_diagnostics"}
        return {key: _plain(value) for key, value in kept.items()}
    return round(document, 3) if isinstance(document, float) else document


def agree(settings: Settings) -> Stage:
    """Play *settings* both ways and compare.

    Raises:
        SeedFailedError: they differ, or one of them is wrong.
    """
    world = play(settings)
    stage = Stage(settings)
    try:
        stage.run()
        check_agreement(world, stage)
    except (Exception, fx.Cancelled, asyncio.CancelledError) as exc:
        raise failed(settings, stage.watch, exc) from exc
    return stage
