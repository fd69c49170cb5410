"""Chains of runs: each continues the one before, which has crashed or was stopped, and the last comes to its end.

The engine's own `Continuation` decides what is taken over, from a shelf that stands for the disk; what should have been
is worked out here a second time, and every execution is counted from its records.
"""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from agentcompass.adapters.engine import reuse
from agentcompass.core.model.event import Event
from agentcompass.core.model.issue import IssuePhase
from agentcompass.core.model.result import Usage
from agentcompass.core.planning import resolve_plan
from agentcompass.core.records.events import event_document
from agentcompass.core.records.reading import RecordError
from agentcompass.core.records.results import issue_of, task_document
from agentcompass.core.reuse import spent_on, usage_of
from agentcompass.core.runtime.ledger import Key, Ledger

from .accounts import check_crash, check_run
from .gate import Account
from .office import Office, Store, asked_of, readable
from .play import failed
from .rules import calls
from .settings import Order, Settings, draw
from .world import World


@dataclass(frozen=True, slots=True)
class Chain:
    """The settings of the links of a chain, and how often saved artifacts have changed when they are looked at."""

    links: tuple[Settings, ...]
    changed: float


def draw_chain(seed: int) -> Chain:
    """Draw the chain of *seed*: all links but the last crash, or are stopped."""
    rng = random.Random(f"chain {seed}")
    base = draw(seed)
    orders = tuple(replace(order, load="ok") for order in base.orders)
    troubles = {} if rng.random() < 0.3 else {name: rate for name, rate in base.troubles.items() if name != "save"}
    base = replace(base, orders=orders, troubles=troubles, deadline=None, interrupt=None, crash_at=None)
    links = [replace(base, stop_with_opening=None, **_end(rng)) for _ in range(rng.randint(1, 3))]
    last = replace(base, stop_with_opening=None)
    return Chain((*links, last), rng.choice((0.0, 0.0, 0.3)))


def _end(rng: random.Random) -> dict[str, Any]:
    kind = rng.choice(("crash", "crash", "interrupt", "deadline"))
    if kind == "crash":
        return {"crash_at": rng.choice((rng.randint(1, 40), rng.randint(1, 400)))}
    return {kind: round(rng.expovariate(1 / 150), 3)}


class Shelf:
    """What a run has left on disk, as the engine's source shows it, with the run behind it where that still counts."""

    def __init__(self, run_id: str, store: Store, behind: Shelf | None) -> None:
        self.run_id, self.path, self.store, self.behind = run_id, run_id, store, behind

    def attempts(self, task_id: str) -> Iterator[tuple[int, str, Any]]:
        """Yield what has a result."""
        mine = sorted(number for task, number in self.store.attempts if task == task_id)
        for number in mine:
            yield number, f"{self.run_id}/{task_id}/{number}", readable(self.store.attempts[task_id, number])
        for number, folder, document in self.behind.attempts(task_id) if self.behind else ():
            if number not in mine:
                yield number, folder, document

    def begun(self, task_id: str) -> set[int]:
        """Return the attempts of which there is anything."""
        names = (*self.store.attempts, *self.store.checkpoints, *self.store.spent, *self.store.retries)
        found = {name[1] for name in names if name[0] == task_id}
        return found | self.behind.begun(task_id) if self.behind else found

    def digests(self) -> Mapping[str, str]:
        """Return nothing: here tasks stay as they are."""
        return {}

    def checkpoint(self, task_id: str, attempt: int) -> tuple[str, Any] | None:
        """Return what is to be graded."""
        document = self.store.checkpoints.get((task_id, attempt))
        if document is None:
            return self.behind.checkpoint(task_id, attempt) if self.behind else None
        return f"{self.run_id}/{task_id}/{attempt}", readable(document)

    def spent(self, task_id: str, attempt: int) -> Usage:
        """Return what was spent in vain."""
        retries = [found for name, found in self.store.retries.items() if name[:2] == (task_id, attempt)]
        spent = spent_on(self.store.spent.get((task_id, attempt)), retries)
        return self.behind.spent(task_id, attempt) if self.behind and spent == Usage() else spent

    def worked(self, task_id: str, attempt: int) -> Usage:
        """Return what the work has consumed that is to be graded."""
        found = self.checkpoint(task_id, attempt)
        return usage_of(found[1]["run_result"]) if found else Usage()

    def finished(self, task_id: str) -> str | None:
        """Return where the document of a finished task is."""
        return f"{self.run_id}/{task_id}" if task_id in self.store.details else None


class Desk:
    """The store of a run as a continuation sees it; before each thing that it does, the machine may crash."""

    def __init__(self, world: World, store: Store, library: Mapping[str, Store]) -> None:
        self._world, self._store, self._library = world, store, library

    def adopt_attempt(self, task_id: str, attempt: int, folder: str) -> None:
        """Take over a result, and what lies beside it."""
        self._world.step()
        source, name = self._library[folder.split("/")[0]], (task_id, attempt)
        if name in source.checkpoints:
            self._store.checkpoints[name] = source.checkpoints[name]
        self._store.save(self._store.attempts, name, source.attempts[name])

    def adopt_checkpoint(self, task_id: str, attempt: int, folder: str) -> str:
        """Take over what is to be graded."""
        self._world.step()
        self._store.checkpoints[task_id, attempt] = self._library[folder.split("/")[0]].checkpoints[task_id, attempt]
        return folder

    def adopt_task(self, task_id: str, path: str) -> None:
        """Take over a finished task."""
        self._world.step()
        self._store.save(self._store.details, task_id, self._library[path.split("/")[0]].details[task_id])

    def save_spent(self, task_id: str, attempt: int, document: Any) -> None:
        """Keep what was spent in vain."""
        self._world.step()
        self._store.spent[task_id, attempt] = document


@dataclass(slots=True)
class Player:
    """Plays the links of a chain, one after the other."""

    chain: Chain
    library: dict[str, Store] = field(default_factory=dict)
    shelves: dict[int, Shelf] = field(default_factory=dict)  #: what the next link of each request continues
    taken: dict[str, bool] = field(default_factory=dict)  #: the runs that have taken everything over
    worlds: list[World] = field(default_factory=list)

    def play(self) -> World:
        """Play all links, and check each; return the last."""
        with _artifacts(self._is_whole):
            for number, settings in enumerate(self.chain.links):
                world = World(settings, number)
                world.take_over = self._take_over
                self.worlds.append(world)
                self.library |= {office.run_id: office.store for office in world.offices}
                world.run()
                _check(world)
                for office in world.offices:
                    self._shelve(office)
        self._count()
        return world

    def _shelve(self, office: Office) -> None:
        """Put what *office* has left in the place of what it continued, if it has begun at all."""
        if office.store.run_infos:
            behind = None if self.taken.get(office.run_id) else self.shelves.get(office.index)
            self.shelves[office.index] = Shelf(office.run_id, office.store, behind)

    def _take_over(self, world: World, office: Office, ledger: Ledger) -> dict[Key, Account]:
        shelf = self.shelves.get(office.index)
        if shelf is None:
            return {}
        expected = _expected(self, shelf, office)

        def plan_of(task: Any) -> Any:
            return resolve_plan(office.request, office.parts, task, asked_of(office.order))

        desk = Desk(world, office.store, self.library)
        execution = office.request.execution
        taking = reuse.Continuation(shelf, ledger, office.contract, desk, execution, plan_of)
        taking.take_over(office.tasks)
        for finished in taking.unsaved:
            world.step()
            document = task_document(finished, office.order.k, office.order.strategy)
            office.store.save(office.store.details, finished.task.id, document)
        payload = {"reused_tasks": taking.report.tasks, "tasks_to_run": len(office.tasks) - taking.report.tasks}
        event = Event("reuse_loaded", world.now, payload=payload)
        office.progress.apply(event)
        office.store.events.append(event_document(event, office.run_id))
        world.step()
        self.taken[office.run_id] = True
        standing = sum(account.stands for account in expected.values())
        world.watch.require(taking.report.attempts == standing, "what stands is taken over", (standing, taking.report))
        return expected

    def _is_whole(self, folder: str) -> bool:
        return int(hashlib.sha256(folder.encode()).hexdigest()[:6], 16) / 0x1000000 >= self.chain.changed

    def _count(self) -> None:
        """What each attempt says it has cost, is what all recorded executions of it have cost."""
        cost: dict[tuple[int, str, int], dict[str, int]] = defaultdict(dict)
        for world in self.worlds:
            for office in world.offices:
                for name, result in _recorded(office.store):
                    usage = result["usage"].get("model_calls", 0)
                    cost[office.index, *name][str(result["final_answer"])] = usage
        for office in self.worlds[-1].offices:
            for name, document in office.store.attempts.items():
                told = sum(document[part].get("model_calls", 0) for part in ("usage", "discarded_usage"))
                whole = sum(cost[office.index, *name].values())
                self.worlds[-1].watch.require(told == whole, "money spent stays spent in chains", (name, told, whole))


def _recorded(store: Store) -> Iterator[tuple[tuple[str, int], Any]]:
    yield from store.attempts.items()
    for (task, number, _), document in store.retries.items():
        yield (task, number), document["discarded_result"]
    for name, document in store.checkpoints.items():
        yield name, document["run_result"]


def _check(world: World) -> None:
    for office in world.offices:
        if world.crashed:
            check_crash(world.watch, office)
        else:
            check_run(world.watch, office, world.outcomes.get(office.index), world.reason)


def _expected(player: Player, shelf: Shelf, office: Office) -> dict[Key, Account]:
    """Work out what of *shelf* stands, what is graded alone and what was spent, by rules of our own."""
    accounts = {}
    for index, task in enumerate(office.tasks):
        results = {number: document for number, _, document in shelf.attempts(task.id)}
        mine = {
            number: _account(player, shelf, office.order, task.id, number, results.get(number))
            for number in range(1, office.order.k + 1)
        }
        spared = office.order.strategy == "pass" and any(a.stands and a.won for a in mine.values())
        for number, account in mine.items():
            if account.stands or not spared:
                accounts[Key(office.index, index, number)] = account
    return accounts


def _account(player: Player, shelf: Shelf, order: Order, task: str, number: int, result: Any) -> Account:
    found = shelf.checkpoint(task, number)
    usable = found is not None and order.mode != "reuse" and order.steps == 1 and player._is_whole(found[0])
    if result is None:
        spent = _before(shelf, task, number)
        if found is not None and not usable:
            spent += found[1]["run_result"]["usage"].get("model_calls", 0)
        return _begun(0, spent, found[1] if found is not None and usable else None)
    issues = [issue_of(issue) for issue in result["issues"]]
    discarded = result["discarded_usage"].get("model_calls", 0)
    whole = discarded + result["usage"].get("model_calls", 0)
    if result["status"] == "cancelled":
        return _begun(0, discarded, found[1]) if found and usable else _begun(0, whole, None)
    if not calls(issues, order) or order.max_retries == 0:
        fatal = any(issue.severity == "fatal" for issue in issues)
        return Account(stands=True, saved=True, kept=True, won=result["metrics"].get("correct") is True and not fatal)
    earlier = [issue for issue in issues if issue.phase is not IssuePhase.EVALUATE]
    if not calls(earlier, order) and found and usable:
        return _begun(1, discarded, found[1])
    return _begun(1, whole, None)


def _before(shelf: Shelf, task: str, number: int) -> int:
    """Return the model calls that were made in vain for an attempt without a result."""
    spent = int(shelf.store.spent.get((task, number), {"usage": {}})["usage"].get("model_calls", 0))
    for name, document in shelf.store.retries.items():
        if name[:2] == (task, number) and document["scope"] == "attempt":
            spent += document["discarded_result"]["usage"].get("model_calls", 0)
    return _before(shelf.behind, task, number) if shelf.behind and not spent else spent


def _begun(retries: int, spent: int, checkpoint: Any) -> Account:
    account = Account(retries=retries, retries_before=retries, spent=spent)
    if checkpoint is not None:
        saved, manifest = checkpoint["run_result"], checkpoint["artifact_manifest"] or {"entries": []}
        account.graded_only = account.inferred = True
        account.answer, account.killed = saved["final_answer"], saved["killed_processes"]
        account.collected = saved["usage"].get("model_calls", 0)
        account.kept_artifacts = [e["fingerprint"] for e in manifest["entries"] if e["fingerprint"] is not None]
    return account


@contextmanager
def _artifacts(is_whole: Any) -> Iterator[None]:
    """Have artifacts, which are no files here, looked at by *is_whole*."""

    def require(notes: Any, where: str) -> None:
        if not is_whole(where.removesuffix("/checkpoint.json")):
            raise RecordError(where, "an artifact has changed since it was saved")

    before, reuse.require_whole = reuse.require_whole, require
    try:
        yield
    finally:
        reuse.require_whole = before


def play_chain(seed: int) -> Player:
    """Play the chain of *seed*, and check it all.

    Raises:
        SeedFailedError: something is wrong.
    """
    chain = draw_chain(seed)
    player = Player(chain)
    try:
        player.play()
    except Exception as exc:
        raise failed(chain.links[0], player.worlds[-1].watch, exc) from exc
    return player
