"""Tests of the local-process sandbox: the contract, with each way of killing, and what each can do beyond it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from contracts.environment import EnvironmentContract
from contracts.environment_commands import KillContract
from contracts.environment_tools import LIMIT, alive, beat, opened, run, until

from agentcompass.adapters.sandboxes.cgroup_tree import CgroupTree
from agentcompass.adapters.sandboxes.local_process import HostProcessProvider
from agentcompass.adapters.sandboxes.process_table import ProcTable, PsTable
from agentcompass.adapters.sandboxes.process_tree import scanning


class TestWithCgroups(EnvironmentContract):
    """Trees are killed by the kernel."""

    @pytest.fixture
    def provider(self, root: Path, cgroup: Path, traces: Callable[[], list[str]]) -> HostProcessProvider:
        self.traces = traces
        self.cgroup = cgroup
        return HostProcessProvider(root=str(root), make_tree=lambda name: CgroupTree(str(cgroup), name))

    def leftovers(self, provider: HostProcessProvider) -> list[str]:
        return [*self.traces(), *(str(path) for path in self.cgroup.iterdir() if path.is_dir())]

    def test_process_without_any_trace_is_killed(self, provider: HostProcessProvider) -> None:
        """Even without its environment, session and parent a process is in its cgroup."""

        async def main() -> None:
            async with opened(provider) as env:
                await env.exec(f"(env -i /usr/bin/setsid /bin/sh -c '{beat('heart')}' &)")
                await until(lambda: alive(env, "heart"))

                assert 1 <= await env.kill_all()
                assert not await alive(env, "heart")

        run(main())

    def test_cgroup_made_by_a_command_goes_too(self, provider: HostProcessProvider, cgroup: Path) -> None:
        """A process that hides in a cgroup of its own inside is counted and killed, and the cgroup removed."""

        async def main() -> None:
            async with opened(provider) as env:
                script = 'c=$(find "$0" -name 1 -type d)/inner; mkdir "$c"; echo $$ >"$c/cgroup.procs"; sleep 60 &'
                assert 0 == (await env.exec(["sh", "-c", script, str(cgroup)])).exit_code

                assert 1 == await env.kill_all()

        run(main())
        assert [] == self.leftovers(provider)

    def test_command_that_left_its_cgroup_is_killed(self, provider: HostProcessProvider, cgroup: Path) -> None:
        """The command itself is our child, wherever it has moved."""

        async def main() -> None:
            async with opened(provider) as env:
                result = await env.exec(f"echo 0 >{cgroup}/cgroup.procs; {beat('heart')}", timeout=LIMIT)

                assert result.timed_out
                assert not await alive(env, "heart")

        run(main())

    def test_cgroups_of_ended_commands_do_not_pile_up(self, provider: HostProcessProvider, cgroup: Path) -> None:
        """A command's cgroup goes with it."""

        async def main() -> None:
            async with opened(provider) as env:
                for _ in range(5):
                    await env.exec("true")

                assert [] == [path for path in cgroup.glob("*/*") if path.is_dir()]

        run(main())


class TestWithEnvironmentScan(EnvironmentContract):
    """Trees are found in /proc."""

    @pytest.fixture
    def provider(self, root: Path, traces: Callable[[], list[str]]) -> HostProcessProvider:
        self.traces = traces
        if not Path("/proc/self/environ").exists():
            pytest.skip("there is no /proc here")
        return HostProcessProvider(root=str(root), make_tree=scanning(ProcTable()))

    def leftovers(self, provider: HostProcessProvider) -> list[str]:
        return self.traces()

    def test_process_that_is_never_the_same_is_killed(self, provider: HostProcessProvider) -> None:
        """A process that goes on by forking, and is gone before it can be signalled, is run down."""

        async def main() -> None:
            async with opened(provider) as env:
                await env.write_file("hare", b"echo >>heart\nsetsid sh hare &\n")
                await env.exec("sh hare >/dev/null 2>&1 &")
                await until(lambda: alive(env, "heart"))

                assert 1 <= await env.kill_all()
                assert not await alive(env, "heart")

        run(main())

    def test_cleared_environment_is_no_escape(self, provider: HostProcessProvider) -> None:
        """A process is also known by its session, and by its parent."""

        async def main() -> None:
            async with opened(provider) as env:
                await env.exec(f"env -i /bin/sh -c '{beat('same-session')}' &")
                await env.exec(f"sh -c \"env -i /usr/bin/setsid /bin/sh -c '{beat('has-parent')}' & wait\" &")
                await until(lambda: alive(env, "same-session"))
                await until(lambda: alive(env, "has-parent"))

                assert 2 <= await env.kill_all()
                assert not await alive(env, "same-session")
                assert not await alive(env, "has-parent")

        run(main())


class TestWithPs(KillContract):
    """Trees are found by ps, as on machines without /proc."""

    @pytest.fixture
    def provider(self, root: Path) -> HostProcessProvider:
        return HostProcessProvider(root=str(root), make_tree=scanning(PsTable()))
