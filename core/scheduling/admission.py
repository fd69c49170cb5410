"""Who may start now: an explicit machine that never looks at a clock.

Something waits as an offer: in its provider's queue, or, until its time comes, among the delayed. Neither holds a
slot. `admit` starts the offers of highest priority (lowest tuple) that a free slot, their provider's limit and its
pacing let through; an offer that is held back by its provider is overtaken by those of other providers.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
Priority = tuple[int, ...]


@dataclass(slots=True)
class _Lane(Generic[K]):
    """One provider: what waits for it, how much runs on it, when it may next open a sandbox."""

    limit: int
    spacing: float
    ready: list[tuple[Priority, int, K, bool]] = field(default_factory=list)
    running: int = 0
    next_opening: float = -inf

    def blocked_until(self, now: float) -> float:
        """Return when the head may start as far as this provider goes: -inf at once, inf after a change only."""
        if self.limit and self.running >= self.limit:
            return inf
        opens = self.ready[0][3]
        return self.next_opening if opens and self.next_opening > now else -inf


class Admission(Generic[K]):
    """Ordered admission under a number of slots, provider limits and start pacing (openings per second)."""

    def __init__(self, slots: int, limits: Mapping[str, int], openings_per_second: Mapping[str, float]) -> None:
        self._slots, self._limits, self._rates = slots, dict(limits), dict(openings_per_second)
        self._lanes: dict[str, _Lane[K]] = {}
        self._delayed: list[tuple[float, Priority, int, K, str, bool]] = []
        self._running: dict[K, str] = {}
        self._tickets: dict[K, int] = {}  # of the offers that stand; an offer with another number is void
        self._issued = 0

    @property
    def running(self) -> Mapping[K, str]:
        """What holds a slot, with its provider."""
        return self._running

    def _lane(self, provider: str) -> _Lane[K]:
        lane = self._lanes.get(provider)
        if lane is None:
            rate = self._rates.get(provider, 0.0)
            lane = self._lanes[provider] = _Lane(self._limits.get(provider, 0), 1 / rate if rate else 0.0)
        return lane

    def offer(self, key: K, provider: str, priority: Priority, at: float = -inf, opens: bool = True) -> None:
        """Let *key* wait for a start on *provider*, not before *at*; *opens* says that it opens a sandbox first.

        An earlier offer of *key* is void. Of equal priorities the earlier offer goes first.
        """
        self._tickets[key] = self._issued = self._issued + 1
        if at > -inf:
            heapq.heappush(self._delayed, (at, priority, self._issued, key, provider, opens))
        else:
            heapq.heappush(self._lane(provider).ready, (priority, self._issued, key, opens))

    def withdraw(self, key: K) -> None:
        """Take back the offer of *key*, if there is one."""
        self._tickets.pop(key, None)

    def done(self, key: K) -> None:
        """Free what *key* held."""
        self._lanes[self._running.pop(key)].running -= 1

    def reserve_opening(self, provider: str, now: float) -> float:
        """Reserve the next opening of a sandbox on *provider* for something that runs already; return its time."""
        lane = self._lane(provider)
        at = max(now, lane.next_opening)
        lane.next_opening = at + lane.spacing
        return at

    def admit(self, now: float) -> tuple[list[K], float]:
        """Return what starts at *now*, and when to ask again (inf: only after an offer or a `done`)."""
        self._release_delayed(now)
        started: list[K] = []
        while len(self._running) < self._slots:
            lane, provider = self._best(now)
            if lane is None:
                break
            _, _, key, opens = heapq.heappop(lane.ready)
            del self._tickets[key]
            if opens and lane.spacing:
                lane.next_opening = now + lane.spacing
            lane.running += 1
            self._running[key] = provider
            started.append(key)
        return started, self._wake(now)

    def _release_delayed(self, now: float) -> None:
        while self._delayed and (self._delayed[0][0] <= now or self._is_void(*self._delayed[0][2:4])):
            _, priority, ticket, key, provider, opens = heapq.heappop(self._delayed)
            if not self._is_void(ticket, key):
                heapq.heappush(self._lane(provider).ready, (priority, ticket, key, opens))

    def _is_void(self, ticket: int, key: K) -> bool:
        return self._tickets.get(key) != ticket

    def _best(self, now: float) -> tuple[_Lane[K] | None, str]:
        best, where = None, ""
        for provider, lane in self._lanes.items():
            self._drop_void(lane)
            free = lane.ready and lane.blocked_until(now) == -inf
            if free and (best is None or lane.ready[0][:2] < best.ready[0][:2]):
                best, where = lane, provider
        return best, where

    def _drop_void(self, lane: _Lane[K]) -> None:
        while lane.ready and self._is_void(*lane.ready[0][1:3]):
            heapq.heappop(lane.ready)

    def _wake(self, now: float) -> float:
        wake = self._delayed[0][0] if self._delayed else inf
        if len(self._running) < self._slots:
            for lane in self._lanes.values():
                if lane.ready:
                    wake = min(wake, lane.blocked_until(now))
        return wake
