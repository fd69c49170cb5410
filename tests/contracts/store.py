"""The contract of stores, for every store: a subclass of `StoreContract` gives the `place` fixture."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import pytest

from agentcompass.ports.store import RunStore


class Place(Protocol):
    """Where a store under test keeps things, and how they are read back; a missing one is None, or an empty list."""

    def store(self) -> RunStore:
        """Return the store, inside a running event loop."""
        ...

    def events(self) -> list[Any]:
        """Return the stream of events."""
        ...

    def plans(self) -> list[Any]:
        """Return the stream of plans: mappings of task_id, attempt and plan."""
        ...

    def tasks(self) -> list[Any]:
        """Return the planned tasks."""
        ...

    def document(self, name: str) -> Any:
        """Return progress, run_info, params or metrics."""
        ...

    def summary(self) -> str | None:
        """Return the readable report."""
        ...

    def attempt(self, task_id: str, attempt: int) -> Any:
        """Return a final attempt."""
        ...

    def trajectory(self, task_id: str, attempt: int) -> Any:
        """Return its trajectory."""
        ...

    def retry(self, path: str) -> Any:
        """Return the replaced execution at the path that `save_retry` gave."""
        ...

    def task(self, task_id: str, failed: bool) -> Any:
        """Return a finished task."""
        ...


def within(place: Place, work: Callable[[RunStore], Awaitable[None]]) -> None:
    """Do *work* with the store of *place*, and close it."""

    async def main() -> None:
        store = place.store()
        try:
            await work(store)
        finally:
            await store.close()

    asyncio.run(main())


class _Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no words for it")


def _deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


def _cycle() -> Any:
    """Return a list that holds itself twice: a walk that only counts its depth would never end."""
    value: list[Any] = []
    value += [value, value]
    return value


#: Answers that are no JSON, or hardly, and how they are read back; None where only being readable matters.
ODD = {
    "nan": (float("nan"), "nan"),
    "infinity": ([1.5, float("-inf")], [1.5, "-inf"]),
    "bytes": (b"\xff\x00a", "\ufffd\x00a"),
    "set": ({7}, [7]),
    "tuple": ((1, (2,)), [1, [2]]),
    "number keys": ({1: {2.5: None}}, {"1": {"2.5": None}}),
    "tuple keys": ({(1, 2): 3}, {"(1, 2)": 3}),
    "lone surrogate": ("a\ud800b", "a\ud800b"),
    "lone surrogate in a key": ({"\udfff": 1}, {"\udfff": 1}),
    "controls": ("\x00\x1b[31m\r\n\u2028\u0085", "\x00\x1b[31m\r\n\u2028\u0085"),
    "a megabyte on one line": ("é" * 500_000, "é" * 500_000),
    "huge integer": (10**5000, hex(10**5000)),
    "nested": (_deep(50), _deep(50)),
    "nested too deeply": (_deep(50_000), None),
    "cycle": (_cycle(), ["...", "..."]),
    "object": (object, "<class 'object'>"),
    "unprintable": ({_Unprintable(): _Unprintable()}, {"<_Unprintable>": "<_Unprintable>"}),
}


class StoreContract:
    """What every store does."""

    def test_streams_keep_their_order(self, place: Place) -> None:
        """Events and plans are read back in the order in which they came."""

        async def work(store: RunStore) -> None:
            for number in range(20):
                store.append_events([{"event": "e", "number": number, "payload": {}}])
                store.append_plan(f"task {number}", 1, {"n": number})

        within(place, work)
        assert list(range(20)) == [event["number"] for event in place.events()]
        assert [(f"task {n}", 1, {"n": n}) for n in range(20)] == [
            (line["task_id"], line["attempt"], line["plan"]) for line in place.plans()
        ]

    def test_streams_are_readable_while_they_grow(self, place: Place) -> None:
        """A line is there as soon as it has been added."""
        seen: list[int] = []

        async def work(store: RunStore) -> None:
            for number in range(3):
                store.append_events([{"n": number}])
                seen.append(len(place.events()))

        within(place, work)
        assert [1, 2, 3] == seen

    @pytest.mark.parametrize("name", ["progress", "run_info", "params"])
    def test_documents_are_replaced(self, place: Place, name: str) -> None:
        """The last document that was saved is the one that is read, also when it is the shorter one."""
        states: list[Any] = []

        async def work(store: RunStore) -> None:
            for document in ({"a": "long" * 1000, "b": 1}, {"a": ""}, {"c": None}):
                await getattr(store, f"save_{name}")(document)
                states.append(place.document(name))

        within(place, work)
        assert [{"a": "long" * 1000, "b": 1}, {"a": ""}, {"c": None}] == states

    def test_plans_in_the_record_of_the_run(self, place: Place) -> None:
        """The plans may be many, odd, or the only thing that the record holds."""
        plans = {f"task {n}": {"attempts": {"1": {"quote": '"\n'}}} for n in range(100)}
        for document in ({"x": 1, "resolved_execution_plans": plans, "end": {}}, {"resolved_execution_plans": plans}):

            async def work(store: RunStore, document: Any = document) -> None:
                await store.save_run_info(document)

            within(place, work)
            assert document == place.document("run_info")

    def test_tasks_keep_their_order(self, place: Place) -> None:
        """The list of planned tasks is read back as it was; no task is no line."""
        wanted = [{"task_id": name, "category": None} for name in ("b", "a", "任务\n2")]

        async def work(store: RunStore) -> None:
            await store.save_tasks(wanted)

        within(place, work)
        assert wanted == place.tasks()

    def test_attempts_have_places_of_their_own(self, place: Place) -> None:
        """Attempts of one task, and tasks with names that a disk may confuse, do not meet."""
        names = ["a", "A", "a/b", "a%2Fb", "..", "CON", "é", "e\u0301", "x" * 300, "x" * 299 + "y"]

        async def work(store: RunStore) -> None:
            for name in names:
                for attempt in (1, 2):
                    trajectory = {"of": name} if attempt == 1 else None
                    await store.save_attempt(name, attempt, {"task": name, "n": attempt}, trajectory)

        within(place, work)
        assert [{"task": name, "n": n} for name in names for n in (1, 2)] == [
            place.attempt(name, n) for name in names for n in (1, 2)
        ]
        assert [{"of": name} for name in names] == [place.trajectory(name, 1) for name in names]
        assert [None] * len(names) == [place.trajectory(name, 2) for name in names]

    def test_every_retry_is_kept(self, place: Place) -> None:
        """Each replaced execution is found under the path that saving it gave, and none replaces another."""
        paths: list[str] = []

        async def work(store: RunStore) -> None:
            for retry in (1, 2):
                for stage in ("run_harness", "evaluate"):
                    paths.append(await store.save_retry("t/1", 1, retry, stage, {"retry": retry, "stage": stage}))

        within(place, work)
        assert [(1, "run_harness"), (1, "evaluate"), (2, "run_harness"), (2, "evaluate")] == [
            (found["retry"], found["stage"]) for found in map(place.retry, paths)
        ]

    def test_failed_tasks_are_told_apart(self, place: Place) -> None:
        """A finished task is found by its name and by whether it failed, one called _error_x too."""

        async def work(store: RunStore) -> None:
            await store.save_task("x", True, {"of": "x"})
            await store.save_task("_error_x", False, {"of": "_error_x"})

        within(place, work)
        assert {"of": "x"} == place.task("x", True)
        assert {"of": "_error_x"} == place.task("_error_x", False)
        assert place.task("x", False) is None

    def test_the_report_is_kept(self, place: Place) -> None:
        """The numbers and their readable form are read back; a text that is no Unicode costs a character at most."""

        async def work(store: RunStore) -> None:
            await store.save_report({"k": 1}, "# Σ\n")

        within(place, work)
        assert ({"k": 1}, "# Σ\n") == (place.document("metrics"), place.summary())

    @pytest.mark.parametrize("name", ODD)
    def test_no_answer_breaks_a_record(self, place: Place, name: str) -> None:
        """What JSON cannot hold becomes text, and what is beside it stays as it is."""
        odd, expected = ODD[name]

        async def work(store: RunStore) -> None:
            document = {"before": [1], "answer": odd, "after": "é"}
            store.append_events([{"payload": document}])
            await store.save_attempt("t", 1, document, {"steps": [odd]})
            await store.save_run_info({"resolved_execution_plans": {"t": odd}, "x": odd, "after": "é"})

        within(place, work)
        found = [place.attempt("t", 1), place.events()[0]["payload"]]
        assert [([1], "é")] * 2 == [(document["before"], document["after"]) for document in found]
        assert {"resolved_execution_plans", "x", "after"} == set(place.document("run_info"))
        if expected is not None:
            assert [expected] * 2 == [document["answer"] for document in found]
            assert {"steps": [expected]} == place.trajectory("t", 1)
            assert expected == place.document("run_info")["resolved_execution_plans"]["t"]

    @pytest.mark.parametrize("name", ["progress", "run_info"])
    def test_saving_never_goes_backwards(self, place: Place, name: str) -> None:
        """Of saves that overlap, the one that was called last is the one that stays."""

        async def work(store: RunStore) -> None:
            save = getattr(store, f"save_{name}")
            async with asyncio.TaskGroup() as group:
                for number in range(30):
                    group.create_task(save({"n": number, "filling": "x" * (1000 * (30 - number))}))

        within(place, work)
        assert 29 == place.document(name)["n"]

    def test_a_saved_document_is_the_stores_own(self, place: Place) -> None:
        """What the caller does to a document after saving it changes nothing."""

        async def work(store: RunStore) -> None:
            document = {"list": [1]}
            saving = asyncio.ensure_future(store.save_run_info(document))
            await saving
            document["list"].append(2)

        within(place, work)
        assert {"list": [1]} == place.document("run_info")

    def test_places_have_names(self, place: Place) -> None:
        """A store says where the run is, as text."""
        found: dict[str, str] = {}

        async def work(store: RunStore) -> None:
            found.update(store.paths)

        within(place, work)
        assert found["run_dir"]
        assert {str} == {type(value) for value in found.values()}
