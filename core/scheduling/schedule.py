"""The schedule of one or more evaluations: admission over their ledgers, retries and the early stop included.

A machine: told what ended, it says what starts and when to ask again. Both drivers, the real and the simulated one,
do only what it says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..runtime.attempt import Again, Job, Kept, Step
from ..runtime.ledger import Key, Ledger
from .admission import Admission


class Schedule:
    """What of *ledgers* runs when; times are seconds of one stopwatch."""

    def __init__(
        self,
        ledgers: Sequence[Ledger],
        slots: int,
        provider_limits: Mapping[str, int],
        openings_per_second: Mapping[str, float],
    ) -> None:
        self._ledgers = {ledger.request: ledger for ledger in ledgers}
        self._admission: Admission[Key] = Admission(slots, provider_limits, openings_per_second)
        self._again: dict[Key, Job] = {}
        self._given_up = False
        for ledger in ledgers:
            for key in ledger.first():
                self._admission.offer(key, ledger.provider, key.priority, opens=ledger.opens(key))

    @property
    def running(self) -> Mapping[Key, str]:
        """What executes now, with its provider."""
        return self._admission.running

    @property
    def complete(self) -> bool:
        """Tell whether nothing runs and nothing is to come."""
        return not self.running and (self._given_up or all(ledger.finished for ledger in self._ledgers.values()))

    def ledger(self, key: Key) -> Ledger:
        """Return the ledger that *key* belongs to."""
        return self._ledgers[key.request]

    def admit(self, now: float) -> tuple[list[tuple[Key, Job]], float]:
        """Return what starts at *now*, and when to ask again (inf: only after something ended)."""
        if self._given_up:
            return [], float("inf")
        for ledger in self._ledgers.values():  # before a slot is given to what a success has just spared
            for unneeded in ledger.unneeded():
                self._admission.withdraw(unneeded)
        keys, wake = self._admission.admit(now)
        return [(key, self._job(key)) for key in keys], wake

    def _job(self, key: Key) -> Job:
        return self._again.pop(key) if key in self._again else self.ledger(key).job(key)

    def reserve_opening(self, provider: str, now: float) -> float:
        """Return when something that runs already may open another sandbox."""
        return self._admission.reserve_opening(provider, now)

    def ended(self, key: Key, step: Step, now: float) -> None:
        """Take note that an execution of *key* ended with *step*."""
        provider = self.running[key]
        self._admission.done(key)
        if isinstance(step, Again):
            self._again[key] = step.job
            opens = step.job.notes is None or step.job.notes.prepared is None
            self._admission.offer(key, provider, key.priority, now + step.delay, opens)
        elif isinstance(step, Kept):
            ledger = self.ledger(key)
            for following in ledger.following(key):
                self._admission.offer(following, provider, following.priority, opens=ledger.opens(following))

    def give_up(self) -> None:
        """Start nothing more."""
        self._given_up = True
