"""The world: plays whole runs without any event loop, on a virtual clock and a heap, from nothing but settings.

It is the reference for how scripts are to be played: what a limit, a stop and the end of the grace do to work that is
under way. The engine's player has to agree with it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Coroutine
from contextlib import contextmanager
from math import inf
from typing import Any

from agentcompass.adapters.engine.perform import classified, expired
from agentcompass.core.metrics import resources
from agentcompass.core.runtime import effects as fx
from agentcompass.core.runtime import run_effects as rx
from agentcompass.core.runtime.attempt import GivenUp, Job, Step, run_attempt
from agentcompass.core.runtime.evaluation import RunOutcome, run_evaluation
from agentcompass.core.runtime.ledger import Key, Ledger
from agentcompass.core.scheduling.schedule import Schedule

from .fate import Fate
from .gate import Account
from .office import CancelledItself, Office
from .settings import Settings
from .watch import Violation, Watch

OBEDIENCE_SECONDS = 5.0
INSTANT = (fx.Announce, fx.ReadStopwatch, fx.ResolvePlan)
MOST_STEPS = 100_000
RELEASED = (fx.OpenEnvironment, fx.StartHarness)  #: what these give is delivered even if it comes too late


class Crashed(BaseException):
    """The machine lost its power."""


class Timer:
    """Something that happens at a time, unless it is called off."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action


class Script:
    """A script under way: of a run (no *key*) or of one execution of an attempt."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], office: Office, key: Key | None, job: Job | None) -> None:
        self.coroutine, self.office, self.key, self.job = coroutine, office, key, job
        self.doing: Doing | None = None

    def close(self) -> None:
        """End the coroutine wherever it is."""
        while True:
            try:
                return self.coroutine.close()
            except RuntimeError:  # it wants to tidy up
                continue


class Doing:
    """Work under way for a script: *cause* says what will end it.

    *interrupted_late* says that the stop came while it was being ended for its limit: nothing more is waited for then
    when the grace is over.
    """

    def __init__(self, effect: Any, fate: Fate) -> None:
        self.effect, self.fate = effect, fate
        self.bounded = getattr(effect, "within", None) is not None
        self.cause = "done"
        self.interrupted_late = False
        self.timer: Timer | None = None


class World:
    """One simulated run; `run` plays it to its end."""

    def __init__(self, settings: Settings, link: int = 0) -> None:
        self.settings, self.now, self.watch = settings, 0.0, Watch(settings)
        self.offices = [Office(settings, index, lambda: self.now, link) for index in range(len(settings.orders))]
        self.take_over: Callable[[World, Office, Ledger], dict[Key, Account]] = lambda world, office, ledger: {}
        self.outcomes: dict[int, RunOutcome] = {}
        self.schedule: Schedule | None = None
        self.reason: fx.Stop | None = None
        self.error: str | None = None
        self.crashed = False
        self._heap: list[tuple[float, int, Timer]] = []
        self._sequence = self._steps = self._opened = 0
        self._runs: list[Script] = []
        self._attempts: list[Script] = []
        self._ready: list[tuple[Script, Ledger]] = []
        self._undecided = set(range(len(self.offices)))
        self._changed = self._forced = False
        self._wake: Timer | None = None

    def run(self) -> World:
        """Play the run to its end, or to the crash."""
        try:
            with quick_reports():
                self._play_out()
        except Crashed:
            self.crashed = True
        finally:
            for script in [*self._runs, *self._attempts]:
                script.close()
        return self

    def _play_out(self) -> None:
        for moment, reason in (
            (self.settings.deadline, fx.Stop.EXPIRED),
            (self.settings.interrupt, fx.Stop.INTERRUPTED),
        ):
            if moment is not None:
                self._at(moment, lambda reason=reason: self._stop(reason, reason.value))
        for office in self.offices:
            office.observer = self.watch.announced
            self._runs.append(Script(run_evaluation(office.request, office.contract), office, None, None))
        for script in list(self._runs):
            self._play(script)
        while self._runs:
            if not self._heap:
                self.watch.require(False, "a run always ends", "nothing will ever happen")
            self.now, _, timer = heapq.heappop(self._heap)
            if timer.action is not None:
                timer.action()
                self._admit()

    def _at(self, moment: float, action: Callable[[], None]) -> Timer:
        self._sequence += 1
        timer = Timer(action)
        heapq.heappush(self._heap, (moment, self._sequence, timer))
        return timer

    def step(self) -> None:
        """Take note that something is about to happen: a crash may come before it."""
        self._steps += 1
        if self._steps == self.settings.crash_at:
            raise Crashed
        self.watch.require(self._steps < MOST_STEPS, "a run always ends", "it goes on and on")

    # the player

    def _play(self, script: Script, value: Any = None, error: BaseException | None = None) -> None:
        script.doing = None
        while True:
            self.step()
            try:
                effect = script.coroutine.throw(error) if error is not None else script.coroutine.send(value)
            except StopIteration as end:
                return self._ended(script, end.value)
            except Violation:
                raise
            except Exception as exc:
                return self._broken(script, exc)
            if self.reason is not None and not effect.shielded:
                value, error = None, self._cancelled()
            elif isinstance(effect, INSTANT):
                value, raised = script.office.instant(script.key, script.job, effect)
                error = raised and classified(effect, raised)
            elif isinstance(effect, fx.PaceOpening):
                if not self._pace(script, effect):
                    return None
                value = error = None
            else:
                return self._begin(script, effect)

    def _cancelled(self) -> fx.Cancelled:
        return fx.Cancelled(self.reason or fx.Stop.INTERRUPTED, self.error)

    def _pace(self, script: Script, effect: Any) -> bool:
        assert self.schedule is not None
        assert script.key is not None
        at = self.schedule.reserve_opening(effect.provider, self.now)
        self.watch.paces(script.key, effect.provider, self.now)
        if at <= self.now:
            return True
        script.doing = Doing(effect, Fate(at - self.now, None, 0.0, None, ()))
        script.doing.timer = self._at(at, lambda: self._play(script))
        return False

    def _begin(self, script: Script, effect: Any) -> None:
        self.note(script, type(effect).__name__)
        if script.key is not None and script.job is not None:
            self.watch.begins(script.key, script.job, effect, self.now)
        fate = script.office.fate(script.key, script.job, effect)
        script.doing = doing = Doing(effect, fate)
        if doing.bounded and fate.latency > effect.within:
            doing.timer = self._at(self.now + effect.within, lambda: self._expire(script, doing))
        elif fate.latency < inf:
            doing.timer = self._at(self.now + fate.latency, lambda: self._finish(script, doing))

    def _expire(self, script: Script, doing: Doing) -> None:
        doing.cause = "expired"
        self._finish_after(script, doing, min(doing.fate.stubborn, OBEDIENCE_SECONDS))

    def _finish_after(self, script: Script, doing: Doing, seconds: float) -> None:
        if doing.timer is not None:
            doing.timer.action = None
        doing.timer = None
        if seconds == 0:
            self._finish(script, doing)
        elif seconds < inf:
            doing.timer = self._at(self.now + seconds, lambda: self._finish(script, doing))

    def _finish(self, script: Script, doing: Doing) -> None:
        if doing.cause == "killed":
            return self._kill(script)
        if doing.cause != "done" and not self._comes_late(doing):
            error = self._cancelled() if doing.cause == "cancelled" else expired(doing.effect)
            self._tell(script, doing.effect, None, error)
            return self._play(script, error=error)
        if isinstance(doing.effect, rx.ExecuteTasks):
            return self._execute(script, doing.effect, doing.fate)
        return self._deliver(script, doing)

    def _comes_late(self, doing: Doing) -> bool:
        if not isinstance(doing.effect, RELEASED) or not doing.fate.stubborn or doing.fate.trouble == "cancels":
            return False
        return not doing.bounded or (doing.fate.stubborn < OBEDIENCE_SECONDS and doing.fate.trouble is None)

    def _deliver(self, script: Script, doing: Doing) -> None:
        value, error = script.office.answer(script.key, script.job, doing.effect, doing.fate)
        if error is not None:
            error = classified(doing.effect, _as_told(error, doing.bounded))
        self._tell(script, doing.effect, value, error)
        if isinstance(doing.effect, fx.OpenEnvironment) and doing.bounded and error is None:
            self._opened += 1
            if self._opened == self.settings.stop_with_opening:
                script.doing = None
                self._stop(fx.Stop.INTERRUPTED, "with an opening")
        self._play(script, value, error)

    def _tell(self, script: Script, effect: Any, value: Any, error: Any) -> None:
        if script.key is not None:
            self.watch.ends(script.key, effect, value, error, self.now)

    def _ended(self, script: Script, result: Any) -> None:
        if script.key is None:
            self._runs.remove(script)
            self.outcomes[script.office.index] = result
            return self._decided(script)
        return self._leave(script, result)

    def _leave(self, script: Script, step: Step) -> None:
        assert self.schedule is not None
        assert script.key is not None
        self._attempts.remove(script)
        self.note(script, type(step).__name__)
        self.schedule.ended(script.key, step, self.now)
        self.watch.ended(script.key, step, self.now)
        self._changed = True
        self._complete(self.schedule.ledger(script.key))

    def _broken(self, script: Script, exc: Exception) -> None:
        if script.key is None or not isinstance(exc, OSError):
            self.watch.require(False, "scripts handle what happens", f"{type(exc).__name__}: {exc}")
        script.doing = None
        self._attempts.remove(script)
        self._stop(fx.Stop.BROKEN, f"results could not be written: {exc}")
        self._attempts.append(script)
        self._leave(script, GivenUp())

    # the stop

    def _stop(self, reason: fx.Stop, error: str) -> None:
        if self.reason is not None:
            return
        self.reason, self.error, self._changed = reason, error, True
        self.watch.stopped(self.now)
        if self.schedule is not None:
            self.schedule.give_up()
            if self._attempts:
                self._at(self.now + self.settings.grace, self._force)
        for script in [*self._runs, *self._attempts]:
            if script.doing is not None and not script.doing.effect.shielded:
                self._interrupt(script, script.doing)

    def _interrupt(self, script: Script, doing: Doing) -> None:
        if doing.cause == "expired":
            doing.cause, doing.interrupted_late = "cancelled", True
            return
        doing.cause = "cancelled"
        stubborn = doing.fate.stubborn
        self._finish_after(script, doing, min(stubborn, OBEDIENCE_SECONDS) if doing.bounded else stubborn)

    def _force(self) -> None:
        self._forced = self.watch.forced = bool(self._attempts)
        for script in list(self._attempts):
            doing = script.doing
            assert doing is not None
            before, doing.cause = doing.cause, "killed"
            obeys_again = not doing.bounded and doing.fate.stubborn < inf
            if before == "done":
                self._finish_after(script, doing, min(doing.fate.stubborn, OBEDIENCE_SECONDS))
            elif obeys_again or doing.interrupted_late:
                self._finish_after(script, doing, 0.0)
        if self._attempts:
            self._at(self.now + 2 * OBEDIENCE_SECONDS, self._abandon)

    def _abandon(self) -> None:
        for script in list(self._attempts):
            self._kill(script)

    def _kill(self, script: Script) -> None:
        if script.doing is not None and script.doing.timer is not None:
            script.doing.timer.action = None
        script.close()
        self._leave(script, GivenUp())

    # the pool

    def _execute(self, script: Script, effect: rx.ExecuteTasks, fate: Fate) -> None:
        _, error = script.office.answer(None, None, effect, fate)
        if error is not None:  # the others wait until this run has ended
            return self._play(script, error=error)
        ledger = script.office.open_ledger(list(effect.tasks))
        self.watch.enlist(script.office, len(effect.tasks), self.take_over(self, script.office, ledger))
        self._ready.append((script, ledger))
        return self._decided(script)

    def _decided(self, script: Script) -> None:
        """Begin the work as soon as every request has got so far, or has ended."""
        last = self._undecided == {script.office.index}
        self._undecided.discard(script.office.index)
        if last and self._ready:
            settings = self.settings
            ledgers = sorted((ledger for _, ledger in self._ready), key=lambda ledger: ledger.request)
            self.schedule = Schedule(ledgers, settings.slots, settings.limits, settings.rates)
            if self.reason is not None:
                self.schedule.give_up()
            self._changed = True
            self._complete(*ledgers)
            self._admit()

    def _admit(self) -> None:
        while self._changed and self.schedule is not None:
            self._changed = False
            if self.schedule.complete:
                self._complete_all()
                break
            starts, wake = self.schedule.admit(self.now)
            for key, job in starts:
                self.watch.admitted(key, job, self.now)
            self.watch.rested(self.now)
            self._set_wake(wake)
            scripts = [Script(run_attempt(job), self.offices[key.request], key, job) for key, job in starts]
            self._attempts += scripts
            for script in scripts:
                self._play(script)

    def _set_wake(self, wake: float) -> None:
        if self._wake is not None:
            self._wake.action = None
        self._wake = self._at(wake, self._woken) if wake < inf else None

    def _woken(self) -> None:
        self._changed = True

    def _complete(self, *ledgers: Ledger) -> None:
        """Let the runs of those of *ledgers* go on whose work is done, whatever others still do."""
        for entry in list(self._ready):
            script, ledger = entry
            busy = {key.request for key in self.schedule.running} if self.schedule else set()
            if ledger in ledgers and ledger.finished and ledger.request not in busy:
                self._ready.remove(entry)
                self._play(script, rx.Executed(ledger.observations, self.reason, self.error))

    def _complete_all(self) -> None:
        ready, self._ready, self.schedule = self._ready, [], None
        for script, ledger in ready:
            self._play(script, rx.Executed(ledger.observations, self.reason, self.error))

    def note(self, script: Script, text: str) -> None:
        """Add a line to the trace."""
        self.watch.trace.append((self.now, script.key or script.office.index, text))


def _as_told(error: BaseException, bounded: bool) -> BaseException:
    if isinstance(error, CancelledItself):
        return RuntimeError("the work cancelled itself")
    if bounded and isinstance(error, SystemExit):
        return RuntimeError(f"the work left the process: SystemExit: {error}")
    return error


@contextmanager
def quick_reports():
    """Leave the bootstrap out of reports: it takes more time than the whole rest of a simulated run."""
    limit, resources.BOOTSTRAP_LIMIT = resources.BOOTSTRAP_LIMIT, 0
    try:
        yield
    finally:
        resources.BOOTSTRAP_LIMIT = limit
