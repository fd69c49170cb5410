"""Drawn sequences of what can happen, against a model so simple that it is plainly right."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from math import inf

import pytest

from agentcompass.core.scheduling.admission import Admission

pytestmark = pytest.mark.seed("CO-01", "CO-02", "CO-03")
PROVIDERS = ("a", "b", "c")


@dataclass
class _Model:
    """All offers in one list, looked through from the beginning for each start."""

    slots: int
    limits: dict[str, int]
    rates: dict[str, float]
    offers: list[tuple] = field(default_factory=list)
    running: dict[int, str] = field(default_factory=dict)
    opened: dict[str, float] = field(default_factory=dict)
    made: int = 0

    def offer(self, key, provider, priority, at, opens):
        self.withdraw(key)
        self.made += 1
        self.offers.append((priority, self.made, key, provider, at, opens))

    def withdraw(self, key):
        self.offers = [offer for offer in self.offers if offer[2] != key]

    def _full(self, provider):
        limit = self.limits.get(provider, 0)
        return bool(limit) and list(self.running.values()).count(provider) >= limit

    def reserve(self, provider, now):
        at = max(now, self.opened.get(provider, -inf))
        rate = self.rates.get(provider, 0)
        self.opened[provider] = at + (1 / rate if rate else 0.0)
        return at

    def _heads(self, now):
        """Return the first ready offer of each provider: within one, nobody overtakes."""
        ready = sorted(offer for offer in self.offers if offer[4] <= now)
        return [next(o for o in ready if o[3] == name) for name in dict.fromkeys(o[3] for o in ready)]

    def admit(self, now):
        started = []
        while len(self.running) < self.slots:
            free = [
                offer for offer in self._heads(now)
                if not self._full(offer[3]) and not (offer[5] and self.opened.get(offer[3], -inf) > now)
            ]  # fmt: skip
            if not free:
                break
            best = min(free)
            self.offers.remove(best)
            if best[5]:
                rate = self.rates.get(best[3], 0)
                if rate:
                    self.opened[best[3]] = now + 1 / rate
            self.running[best[2]] = best[3]
            started.append(best[2])
        return started, self._wake(now)

    def _wake(self, now):
        times = [offer[4] for offer in self.offers if offer[4] > now]
        if len(self.running) < self.slots:
            times += [self.opened[o[3]] for o in self._heads(now) if not self._full(o[3])]
        return min(times, default=inf)


def _drawn(draw):
    limits = {name: draw.choice((0, 1, 2, 3)) for name in PROVIDERS if draw.random() < 0.7}
    rates = {name: draw.choice((0, 0.5, 1, 4)) for name in PROVIDERS if draw.random() < 0.5}
    return draw.randint(1, 5), limits, rates


@pytest.mark.parametrize("seed", range(60))
def test_the_machine_does_what_the_model_does(seed):
    """Offers, delays, withdrawals, ends, reservations and time in any order: same starts, same wake, bounds kept."""
    draw = random.Random(f"admission {seed}")
    slots, limits, rates = _drawn(draw)
    machine, model = Admission(slots, limits, rates), _Model(slots, limits, rates)
    now, key = 0.0, 0
    for _ in range(150):
        action = draw.random()
        if action < 0.45:
            new = draw.random() < 0.9 or not model.offers
            key += new
            name = key if new else draw.choice(model.offers)[2]
            offer = (draw.choice(PROVIDERS), (draw.randint(0, 4), draw.randint(0, 9)))
            at, opens = (now + draw.choice((0.5, 1, 3)) if draw.random() < 0.3 else -inf), draw.random() < 0.8
            machine.offer(name, *offer, at, opens)
            model.offer(name, *offer, at, opens)
        elif action < 0.65 and model.running:
            ended = draw.choice(sorted(model.running))
            machine.done(ended)
            del model.running[ended]
        elif action < 0.72 and model.offers:
            taken = draw.choice(model.offers)[2]
            machine.withdraw(taken)
            model.withdraw(taken)
        elif action < 0.77:
            provider = draw.choice(PROVIDERS)
            assert model.reserve(provider, now) == machine.reserve_opening(provider, now)
        else:
            now += draw.choice((0.0, 0.25, 0.5, 2.0))
        expected = model.admit(now)
        assert expected == machine.admit(now)
        assert model.running == machine.running
        assert len(machine.running) <= slots
        for name, limit in limits.items():
            assert not limit or list(machine.running.values()).count(name) <= limit


@pytest.mark.parametrize("seed", range(20))
def test_nobody_waits_for_ever(seed):
    """Asked at the times that it names, and told of every end, the machine starts every offer exactly once."""
    draw = random.Random(f"progress {seed}")
    machine = Admission(*_drawn(draw))
    for key in range(200):
        at = draw.choice((-inf, draw.uniform(0, 50)))
        machine.offer(key, draw.choice(PROVIDERS), (draw.randint(0, 9),), at, draw.random() < 0.8)
    started, now, ends = [], 0.0, []
    while True:
        new, wake = machine.admit(now)
        started += new
        ends += [(now + draw.uniform(0, 3), key) for key in new]
        next_end = min(ends, default=(inf, None))
        now = max(now, min(wake, next_end[0]))
        if now == inf:
            break
        if next_end[0] <= now:
            ends.remove(next_end)
            machine.done(next_end[1])

    assert list(range(200)) == sorted(started)
