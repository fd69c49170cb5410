"""The store in memory, by the contract of stores."""

from __future__ import annotations

import asyncio

import pytest
from contracts.store import StoreContract
from support.memory_store import MemoryStore


class _Memory:
    def __init__(self) -> None:
        self.kept = MemoryStore()

    def store(self):
        return self.kept

    def events(self):
        return self.kept.events

    def plans(self):
        return self.kept.plans

    def tasks(self):
        return self.kept.tasks

    def document(self, name):
        return getattr(self.kept, name)

    def summary(self):
        return self.kept.summary

    def attempt(self, task_id, attempt):
        return self.kept.attempts.get((task_id, attempt))

    def trajectory(self, task_id, attempt):
        return self.kept.trajectories.get((task_id, attempt))

    def retry(self, path):
        return self.kept.retries[path]

    def task(self, task_id, failed):
        return self.kept.details.get((task_id, failed))


class TestMemoryStore(StoreContract):
    """The contract."""

    @pytest.fixture
    def place(self):
        return _Memory()


def test_a_broken_method_raises_and_changes_nothing():
    """A failure that a test asks for comes where it was asked for, and leaves the old document."""
    store = MemoryStore()
    asyncio.run(store.save_run_info({"n": 1}))
    store.broken["save_run_info"] = OSError(28, "no space")

    with pytest.raises(OSError, match="no space"):
        asyncio.run(store.save_run_info({"n": 2}))
    asyncio.run(store.save_params({"n": 2}))
    assert ({"n": 1}, {"n": 2}) == (store.run_info, store.params)
