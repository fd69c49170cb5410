"""Tests of the `bubblewrap` sandbox: the contract, with each way of killing and of making one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from contracts.environment import EnvironmentContract

from agentcompass.adapters.sandboxes.bubblewrap import BubblewrapProvider
from agentcompass.adapters.sandboxes.cgroup_tree import CgroupTree
from agentcompass.adapters.sandboxes.process_table import ProcTable
from agentcompass.adapters.sandboxes.process_tree import scanning


class TestWithCgroups(EnvironmentContract):
    """Trees are killed by the kernel."""

    @pytest.fixture
    def provider(
        self, bubblewrap: object, root: Path, cgroup: Path, marked: Callable[[], list[str]]
    ) -> BubblewrapProvider:
        self.traces = marked
        self.cgroup = cgroup
        return BubblewrapProvider(root=str(root), make_tree=lambda name: CgroupTree(str(cgroup), name))

    def leftovers(self, provider: BubblewrapProvider) -> list[str]:
        return [*self.traces(), *(str(path) for path in self.cgroup.iterdir() if path.is_dir())]


class TestWithEnvironmentScan(EnvironmentContract):
    """Trees are found in /proc."""

    @pytest.fixture
    def provider(self, bubblewrap: object, root: Path, marked: Callable[[], list[str]]) -> BubblewrapProvider:
        self.traces = marked
        return BubblewrapProvider(root=str(root), make_tree=scanning(ProcTable()))

    def leftovers(self, provider: BubblewrapProvider) -> list[str]:
        return self.traces()


class TestMadeByUnshare(EnvironmentContract):
    """Where bwrap is missing, util-linux does what it does."""

    @pytest.fixture
    def maker(self) -> str:
        return "unshare"

    @pytest.fixture
    def provider(self, bubblewrap: BubblewrapProvider, marked: Callable[[], list[str]]) -> BubblewrapProvider:
        self.traces = marked
        return bubblewrap

    def leftovers(self, provider: BubblewrapProvider) -> list[str]:
        return self.traces()
