"""Tests of what the local-process sandbox does by itself: what it spares, stops and reports."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from contracts.environment_tools import opened, run

from agentcompass.adapters.sandboxes import child, commands
from agentcompass.adapters.sandboxes.local_process import HostProcessProvider
from agentcompass.adapters.sandboxes.process_table import Census, ProcTable
from agentcompass.adapters.sandboxes.scan_tree import ScanTree
from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.environment import EnvironmentSpec


def test_removal_spares_the_sandbox_itself(root: Path) -> None:
    """A path outside the private folder is refused, by whatever way it is named; the workdir may go."""

    async def main() -> None:
        async with opened(HostProcessProvider(root=str(root))) as env:
            await env.exec(f"mkdir sub; ln -s {root} sub/link")
            for path in ("..", "../..", str(root), "sub/../../..", "sub/link/../" + root.name):
                with pytest.raises(UsageError, match="is not in the sandbox"):
                    await env.remove(path)
            await env.remove("sub/link")
            await env.remove(".")

            assert root.exists()
            assert 127 == (await env.exec("true")).exit_code

    run(main())


def test_closing_removes_what_resists(root: Path) -> None:
    """Trees deeper than a recursion can go are removed as well."""

    async def main() -> None:
        async with opened(HostProcessProvider(root=str(root))) as env:
            deep = "p=$(printf 'd/%.0s' $(seq 500)); for i in 1 2 3; do mkdir -p $p && cd $p || exit 1; done"
            assert 0 == (await env.exec(deep)).exit_code

    run(main())
    assert [] == list(root.iterdir())


def test_loop_without_pidfd_and_outside_the_main_thread(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel has no pidfd a thread waits; and no loop needs the main thread."""
    failures: list[BaseException] = []

    def refuse(pid: int) -> int:
        raise OSError("no pidfd")

    async def main() -> None:
        async with opened(HostProcessProvider(root=str(root))) as env:
            assert [5] * 4 == [r.exit_code for r in await asyncio.gather(*(env.exec("exit 5") for _ in range(4)))]
            assert (await env.exec("sleep 60", timeout=0.05)).timed_out

    def elsewhere() -> None:
        try:
            run(main())
            monkeypatch.setattr(child.os, "pidfd_open", refuse, raising=False)
            run(main())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert [] == failures


def test_memory_does_not_follow_output(root: Path) -> None:
    """Of 300 MB only the ends are ever held."""

    async def main() -> int:
        async with opened(HostProcessProvider(root=str(root))) as env:
            tracemalloc.start()
            try:
                result = await env.exec("head -c 300000000 /dev/zero")
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert (300_000_000, 1024 * 1024) == (result.stdout_size, len(result.stdout))
            return peak

    assert 20_000_000 > run(main())


def test_output_just_after_the_end_is_kept(root: Path) -> None:
    """A helper that is a little later than its command still has its say."""

    async def main() -> None:
        async with opened(HostProcessProvider(root=str(root))) as env:
            result = await env.exec("(sleep 0.05; echo late) & echo early")

            assert b"early\nlate\n" == result.stdout

    run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="the size of a pipe can be set on Linux only")
def test_output_written_before_the_end_is_whole(root: Path) -> None:
    """A background holder of the pipe and a slow loop do not cost what the command itself had written."""
    fill = "import fcntl, os; fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1 << 20); os.write(1, bytes(900_000))"

    async def main() -> None:
        loop = asyncio.get_running_loop()
        done = threading.Event()

        def dawdle() -> None:
            if not done.wait(0.08):
                loop.call_soon(dawdle)

        async with opened(HostProcessProvider(root=str(root))) as env:
            loop.call_later(0.01, dawdle)
            result = await env.exec(["sh", "-c", 'sleep 60 & "$0" -c "$1"', sys.executable, fill])
            done.set()

            assert 900_000 == result.stdout_size

    run(main())


@pytest.mark.parametrize(("path", "said"), [("/no/such/folder/file", "No such file"), ("/dev/full", "No space")])
def test_unwritable_stdout_file_is_an_error(root: Path, path: str, said: str) -> None:
    """Whoever asked for a file learns that it is not there or not whole."""

    async def main() -> None:
        async with opened(HostProcessProvider(root=str(root))) as env:
            with pytest.raises(SandboxError, match=f"cannot write {path}.*{said}"):
                await env.exec("seq 1 100000", stdout_file=path)

    run(main())


def test_full_machine_is_no_fault_of_the_command(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When no process can be made the sandbox has failed, not what would have run in it."""

    def full(*args: object, **kwargs: object) -> object:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    async def main() -> None:
        async with opened(HostProcessProvider(root=str(root))) as env:
            with monkeypatch.context() as patch, pytest.raises(SandboxError, match="temporarily unavailable"):
                patch.setattr(child.subprocess, "Popen", full)
                await env.exec("true")
            assert 0 == (await env.exec("true")).exit_code

    run(main())
    assert [] == list(root.iterdir())


def test_what_cannot_be_passed_on_cannot_be_started(root: Path) -> None:
    """An empty command, null bytes and arguments beyond the system's limit are results that say why."""

    async def main() -> None:
        async with opened(HostProcessProvider(root=str(root))) as env:
            for command in ([], ["echo", "a\0b"], "x" * 3_000_000):
                result = await env.exec(command)
                assert 126 == result.exit_code
                assert result.stderr.startswith(b"cannot start the command: ")

    run(main())


def test_unkillable_process_is_reported_when_closing(
    root: Path, traces: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What survives is an error that names it, and closing again tries again."""

    class Stubborn(ScanTree):
        struck = True

        async def strike(self, branch: str | None) -> set[int] | None:
            return {4711} if self.struck else await super().strike(branch)

    async def main() -> None:
        env = await HostProcessProvider(
            root=str(root), make_tree=lambda name: Stubborn(name, Census(ProcTable()))
        ).open(EnvironmentSpec())
        await env.exec("sleep 60 &")
        with monkeypatch.context() as patch, pytest.raises(SandboxError, match="4711"):
            patch.setattr(commands, "_KILL_ALL_WITHIN", 0.05)
            await env.close()
        Stubborn.struck = False
        await env.close()

    run(main())
    assert [] == traces()


def test_closing_stops_a_copy(root: Path, tmp_path: Path) -> None:
    """A copy under way is stopped, its caller told, and nothing of it left."""
    with open(tmp_path / "large", "wb") as file:
        file.truncate(20_000_000_000)

    async def main() -> None:
        env = await HostProcessProvider(root=str(root)).open(EnvironmentSpec())
        copying = asyncio.ensure_future(env.upload(str(tmp_path / "large"), "large"))
        await asyncio.sleep(0.05)
        await env.close()
        with pytest.raises(SandboxError, match="stopped"):
            await copying

    run(main())
    assert [] == list(root.iterdir())


def test_cancelling_stops_a_copy(root: Path, tmp_path: Path) -> None:
    """When a cancelled copy has ended, no thread goes on with it."""
    with open(tmp_path / "large", "wb") as file:
        file.truncate(20_000_000_000)

    async def main() -> None:
        async with opened(HostProcessProvider(root=str(root))) as env:
            copying = asyncio.ensure_future(env.upload(str(tmp_path / "large"), "large"))
            await asyncio.sleep(0.05)
            copying.cancel()
            with pytest.raises(asyncio.CancelledError):
                await copying
            size = os.stat(f"{env.workdir}/large").st_size
            await asyncio.sleep(0.05)

            assert size == os.stat(f"{env.workdir}/large").st_size
            assert size < 20_000_000_000

    run(main())


def test_what_a_killed_owner_leaves_is_released(root: Path, traces: Callable[[], list[str]]) -> None:
    """Its folder and its processes are there, listed as abandoned, and go; an unused sandbox has left nothing."""
    script = (
        "import asyncio, sys\n"
        "from agentcompass.adapters.sandboxes.local_process import HostProcessProvider\n"
        "from agentcompass.core.model.environment import EnvironmentSpec\n"
        "async def main():\n"
        "    provider = HostProcessProvider(root=sys.argv[1])\n"
        "    unused = await provider.open(EnvironmentSpec())\n"
        "    env = await provider.open(EnvironmentSpec(labels={'run': 'r', 'kept': 'true'}))\n"
        "    await env.exec('setsid sleep 60 & touch file')\n"
        "    print('ready', flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", script, str(root)], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    owner.stdout.readline()
    owner.kill()
    owner.wait()
    owner.stdout.close()

    async def main() -> None:
        provider = HostProcessProvider(root=str(root))
        (left,) = await provider.leftovers()
        assert (True, True, "r") == (left.abandoned, left.kept, left.labels["run"])
        assert 2 == len(traces())
        await provider.release({"id": left.id})
        assert [] == list(await provider.leftovers())

    run(main())
    assert [] == traces()


def test_release_touches_nothing_but_sandboxes(root: Path, tmp_path: Path) -> None:
    """A record that names another folder is refused, and folders with other names are not listed."""
    (tmp_path / "precious").mkdir()
    (root / "agentcompass-other").mkdir()
    provider = HostProcessProvider(root=str(root))
    for facts in ({"id": "x", "folder": str(tmp_path / "precious")}, {"id": "../x"}, {"id": "other"}, {}):
        with pytest.raises(SandboxError, match="no folder of a sandbox"):
            run(provider.release(facts))

    assert [] == list(run(provider.leftovers()))
    assert (tmp_path / "precious").exists()
