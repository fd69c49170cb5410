"""The gate: who may start, kept in books of its own, beside the schedule that it watches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from agentcompass.core.model.issue import Issue
from agentcompass.core.model.result import Verdict
from agentcompass.core.runtime.attempt import Job
from agentcompass.core.runtime.ledger import Key
from agentcompass.core.runtime.phases import Phase

from .office import Office, Sandbox, Session
from .settings import Order, Settings

EPSILON = 1e-9


class Violation(AssertionError):  # noqa: N818
    """Something happened that must not be."""


@dataclass(slots=True)
class Account:
    """What has been seen of one logical attempt, and of its present execution."""

    ready_at: float = -inf
    executions: int = 0
    retries: int = 0
    retries_before: int = 0
    stands: bool = False
    spent: int = 0
    saved: bool = False
    kept: bool = False
    won: bool = False
    phase: Phase | None = None
    graded_only: bool = False
    inferred: bool = False
    agent_lives: bool = False
    tidied: set[str] = field(default_factory=set)
    grading_failed: bool = False
    killed: int | None = None
    answer: Any = None
    collected: int = 0
    verdict: Verdict | None = None
    retry_after: float | None = None
    sandboxes: list[Sandbox] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    kept_artifacts: list[str] = field(default_factory=list)
    discarded: tuple[Issue, ...] = ()

    def begin(self, job: Job) -> None:
        """Begin another execution."""
        self.executions += 1
        self.graded_only = job.notes is not None
        if not self.graded_only:
            self.killed, self.answer, self.inferred, self.kept_artifacts = None, None, False, []
            self.collected = 0
        self.verdict, self.retry_after, self.agent_lives, self.grading_failed = None, None, False, False
        self.sandboxes, self.sessions, self.tidied = [], [], set()


class Gate:
    """The books of one run, and what may start by them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.orders: dict[int, Order] = {}
        self.accounts: dict[Key, Account] = {}
        self.waiting: dict[str, dict[Key, float]] = {}
        self.running: dict[Key, str] = {}
        self.started_tasks: set[tuple[int, int]] = set()
        self.next_opening: dict[str, float] = {}
        self.paced: dict[Key, float] = {}
        self.stopped_at: float | None = None
        self.forced = False
        self.violation: Violation | None = None
        self.counts: Counter[str] = Counter()
        self.trace: list[tuple[float, Any, str]] = []

    def require(self, holds: bool, invariant: str, detail: Any = "") -> None:
        """Object unless *holds*."""
        if not holds:
            violation = Violation(f"{invariant}: {detail}")
            self.violation = self.violation or violation
            raise violation

    def enlist(self, office: Office, tasks: int, taken: Mapping[Key, Account] | None = None) -> None:
        """Take note of a request whose tasks are about to be executed, and of what earlier runs have *taken* on."""
        order = self.orders[office.index] = office.order
        self.accounts |= taken or {}
        ahead = order.isolated and (order.strategy == "avg" or order.speculative)
        for task in range(tasks):
            keys = [Key(office.index, task, attempt) for attempt in range(1, order.k + 1)]
            standing = [self.accounts[key] for key in keys if key in self.accounts and self.accounts[key].stands]
            if order.strategy == "pass" and any(account.won for account in standing):
                continue
            left = [key for key in keys if key not in self.accounts or not self.accounts[key].stands]
            for key in left if ahead else left[:1]:
                self._offer(key, order.provider)

    def _offer(self, key: Key, provider: str, at: float = -inf) -> None:
        self.waiting.setdefault(provider, {})[key] = at

    def _limited(self, provider: str) -> bool:
        limit = self.settings.limits.get(provider, 0)
        return bool(limit) and sum(name == provider for name in self.running.values()) >= limit

    def _too_early(self, provider: str, key: Key, now: float) -> bool:
        return not self._regrades(key) and self.next_opening.get(provider, -inf) > now

    def _regrades(self, key: Key) -> bool:
        account = self.accounts.get(key)
        return account is not None and account.graded_only

    def _head(self, provider: str, now: float) -> Key | None:
        ready = (key for key, at in self.waiting.get(provider, {}).items() if at <= now)
        return min(ready, key=lambda key: key.priority, default=None)

    def admitted(self, key: Key, job: Job, now: float) -> None:
        """Check that *key* may start now."""
        provider = self.orders[key.request].provider
        self.require(self.stopped_at is None, "nothing starts after a stop", key)
        self.require(key in self.waiting.get(provider, {}), "only what may start starts, and once", key)
        self.require(key == self._head(provider, now), "earlier offers start first", key)
        self.require(len(self.running) < self.settings.slots, "no more executions than slots", key)
        self.require(not self._limited(provider), "no more executions than the provider's limit", key)
        self.require(not self._too_early(provider, key, now + EPSILON), "openings are paced", key)
        for other in self.waiting:
            head = self._head(other, now) if other != provider else None
            if head and head.priority < key.priority:
                held = self._limited(other) or self._too_early(other, head, now)
                self.require(held, "a later offer passes only one that its provider holds back", (key, head))
        self._start(key, job, provider, now)

    def _start(self, key: Key, job: Job, provider: str, now: float) -> None:
        del self.waiting[provider][key]
        self.running[key] = provider
        opens = not self._regrades(key)
        rate = self.settings.rates.get(provider, 0.0)
        if opens and rate:
            self.next_opening[provider] = now + 1 / rate
        account = self.accounts.setdefault(key, Account())
        self.require(account.retries == job.retries, "retries are counted", (key, job.retries))
        self.require(key.attempt == job.attempt, "an execution is of the attempt that was admitted", key)
        first = (key.request, key.task) not in self.started_tasks
        self.require(first == job.opens_task, "the first execution of a task opens it", key)
        self.started_tasks.add((key.request, key.task))
        if not account.executions:
            self.require(account.graded_only == (job.notes is not None), "what was worked is graded alone", key)
        account.begin(job)

    def rested(self, now: float) -> None:
        """Check, when nothing more starts at *now*, that nothing could."""
        if self.stopped_at is not None or len(self.running) >= self.settings.slots:
            return
        for provider in self.waiting:
            head = self._head(provider, now)
            if head and not self._limited(provider):
                self.require(self._too_early(provider, head, now), "what may start starts at once", head)

    def stopped(self, now: float) -> None:
        """Take note that the run is being stopped."""
        self.stopped_at = now

    def paces(self, key: Key, provider: str, now: float) -> None:
        """Take note that *key* asks when it may open a verifier."""
        rate = self.settings.rates.get(provider, 0.0)
        self.paced[key] = at = max(now, self.next_opening.get(provider, -inf))
        self.next_opening[provider] = at + (1 / rate if rate else 0.0)
