"""Tests of the local-process sandbox: the contract, with each way of killing, and its own promises."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from contracts.environment import BEAT, LIMIT, EnvironmentContract, alive, beats, opened, run, until

from agentcompass.adapters.sandboxes import child, commands
from agentcompass.adapters.sandboxes.cgroup_tree import CgroupTree, own_cgroup
from agentcompass.adapters.sandboxes.local_process import HostProcessProvider
from agentcompass.adapters.sandboxes.scan_tree import ScanTree, proc_table, ps_table
from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.environment import EnvironmentSpec


def processes_of(root: Path) -> list[str]:
    """Name the live processes whose environment mentions *root*."""
    found = []
    for entry in Path("/proc").iterdir() if Path("/proc/self").exists() else ():
        try:
            if entry.name.isdecimal() and os.fsencode(root) in (entry / "environ").read_bytes():
                found.append(f"process {entry.name}: {(entry / 'cmdline').read_bytes()!r}")
        except OSError:
            continue
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder in which sandboxes lie; it is not in the way of a test's own files."""
    folder = tmp_path.parent / f"{tmp_path.name}-sandboxes"
    folder.mkdir()
    return folder


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A cgroup for the cgroups of one test."""
    parent = own_cgroup()
    if parent is None:
        pytest.skip("no cgroups can be made here")
    folder = Path(parent, f"test-{secrets.token_hex(8)}")
    folder.mkdir()
    yield folder
    folder.rmdir()


class LocalContract(EnvironmentContract):
    """The contract, and what must not be left on this machine."""

    def leftovers(self, provider: HostProcessProvider) -> list[str]:
        root = Path(provider._root or "")
        return [*processes_of(root), *map(str, root.iterdir())]


class TestWithCgroups(LocalContract):
    """Trees are killed by the kernel."""

    @pytest.fixture
    def provider(self, root: Path, cgroup: Path) -> HostProcessProvider:
        self.cgroup = cgroup
        return HostProcessProvider(root=str(root), make_tree=lambda name: CgroupTree(str(cgroup), name))

    def leftovers(self, provider: HostProcessProvider) -> list[str]:
        return [*super().leftovers(provider), *(str(path) for path in self.cgroup.iterdir() if path.is_dir())]

    def test_process_without_any_trace_is_killed(self, provider: HostProcessProvider) -> None:
        """Even without its environment, session and parent a process is in its cgroup."""

        async def main() -> None:
            async with opened(provider) as env:
                await env.exec(f"(env -i /usr/bin/setsid /bin/sh -c '{BEAT.format('heart')}' &)")
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

    def test_cgroups_of_ended_commands_do_not_pile_up(self, provider: HostProcessProvider, cgroup: Path) -> None:
        """A command's cgroup goes with it."""

        async def main() -> None:
            async with opened(provider) as env:
                for _ in range(5):
                    await env.exec("true")

                assert [] == [path for path in cgroup.glob("*/*") if path.is_dir()]

        run(main())


class TestWithEnvironmentScan(LocalContract):
    """Trees are found in /proc."""

    @pytest.fixture
    def provider(self, root: Path) -> HostProcessProvider:
        if not Path("/proc/self/environ").exists():
            pytest.skip("there is no /proc here")
        return HostProcessProvider(root=str(root), make_tree=lambda name: ScanTree(name, proc_table))

    def test_cleared_environment_is_no_escape(self, provider: HostProcessProvider) -> None:
        """A process is also known by its session, and by its parent."""

        async def main() -> None:
            async with opened(provider) as env:
                beat = f"env -i /bin/sh -c '{BEAT}'"
                await env.exec(f"{beat.format('same-session')} &")
                await env.exec(f"sh -c \"env -i /usr/bin/setsid {beat.format('has-parent')} & wait\" &")
                await until(lambda: alive(env, "same-session"))
                await until(lambda: alive(env, "has-parent"))

                assert 2 <= await env.kill_all()
                assert not await alive(env, "same-session")
                assert not await alive(env, "has-parent")

        run(main())


class TestWithPs(LocalContract):
    """Trees are found by ps, as on machines without /proc."""

    @pytest.fixture
    def provider(self, root: Path) -> HostProcessProvider:
        return HostProcessProvider(root=str(root), make_tree=lambda name: ScanTree(name, ps_table))


# its own promises


def test_private_folders(root: Path) -> None:
    """HOME and TMPDIR exist and are the sandbox's own, which only its user can enter."""

    async def main() -> None:
        async with opened(HostProcessProvider(root=str(root))) as env:
            (private,) = root.iterdir()
            result = await env.exec('cd && pwd && cd "$TMPDIR" && pwd && touch x && echo ~')

            assert f"{private}/home\n{private}/tmp\n{private}/home\n".encode() == result.stdout
            assert f"{private}/work" == env.workdir
            assert 0o700 == private.stat().st_mode & 0o777

    run(main())
    assert [] == list(root.iterdir())


def test_environment_is_an_allow_list(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a handful of this process's variables get in, and those that the user names."""
    for name in ("LANG", "LC_ALL", "TZ", "USER", "LD_LIBRARY_PATH", "PROXY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, f"the {name}")
    provider = HostProcessProvider(root=str(root), env={"OWN": "a", "BOTH": "a"}, inherit=["PROXY", "NOT_THERE"])

    async def main() -> set[str]:
        async with opened(provider, env={"BOTH": "b"}) as env:
            assert b"ab" == (await env.exec("printf %s $OWN$BOTH")).stdout
            return {line.partition("=")[0] for line in (await env.exec(["env"])).stdout.decode().splitlines()}

    ours = {"PATH", "LANG", "LC_ALL", "TZ", "HOME", "TMPDIR", "PROXY", "OWN", "BOTH", "AGENTCOMPASS_SANDBOX"}
    assert ours == run(main()) - {"PWD", "OLDPWD", "SHLVL", "_"}  # the shell's


def test_unusable_variable_names_are_refused(root: Path) -> None:
    """A name that a shell would drop is refused everywhere rather than ignored."""

    async def main() -> None:
        provider = HostProcessProvider(root=str(root))
        with pytest.raises(UsageError, match="a-b"):
            await provider.open(EnvironmentSpec(env={"a-b": "1"}))
        async with opened(provider) as env:
            with pytest.raises(UsageError, match="1x"):
                await env.exec("true", env={"1x": "1"})

    with pytest.raises(UsageError, match="a=b"):
        HostProcessProvider(env={"a=b": "1"})
    run(main())


def test_limits_hold(root: Path) -> None:
    """The limits of the provider bind every command, and core dumps are off."""
    provider = HostProcessProvider(root=str(root), memory_mb=200, file_mb=1, open_files=32)

    async def main() -> None:
        async with opened(provider) as env:
            shown = await env.exec("ulimit -v; ulimit -n; ulimit -c")
            written = await env.exec(["dd", "if=/dev/zero", "of=big", "bs=1000000", "count=2"])
            memory = await env.exec(["dd", "if=/dev/zero", "of=/dev/null", "bs=300M", "count=1"])
            enough = await env.exec(["dd", "if=/dev/zero", "of=/dev/null", "bs=50M", "count=1"])

            assert b"204800\n32\n0\n" == shown.stdout
            assert 0 != written.exit_code
            assert 1024 * 1024 == len(await env.read_file("big") or b"")
            assert (1, 0) == (memory.exit_code, enough.exit_code)

    run(main())


def test_without_limits_only_core_dumps_are_off(root: Path) -> None:
    """A limit that was not asked for is not set."""

    async def main() -> bytes:
        async with opened(HostProcessProvider(root=str(root))) as env:
            return (await env.exec("ulimit -v; ulimit -f; ulimit -c")).stdout

    assert b"unlimited\nunlimited\n0\n" == run(main())


def test_workdir_may_be_chosen(root: Path, tmp_path: Path) -> None:
    """A relative workdir lies in the private folder; an absolute one is the machine's, and stays."""

    async def main() -> None:
        provider = HostProcessProvider(root=str(root))
        async with opened(provider, workdir="repo/sub") as env:
            assert env.workdir.endswith("/work/repo/sub")
            assert env.workdir.encode() == (await env.exec("printf %s $(pwd)")).stdout
        async with opened(provider, workdir=str(tmp_path)) as env:
            await env.write_file("kept", b"")
        with pytest.raises(UsageError, match="no-such-folder"):
            await provider.open(EnvironmentSpec(workdir="/no-such-folder"))

    run(main())
    assert ["kept"] == os.listdir(tmp_path)
    assert [] == list(root.iterdir())


def test_unusable_root_is_named(tmp_path: Path) -> None:
    """A root in which nothing can be made is a clear error, at opening and in the check."""
    blocked = tmp_path / "file" / "root"
    blocked.parent.write_bytes(b"")
    provider = HostProcessProvider(root=str(blocked))

    with pytest.raises(SandboxError, match=f"cannot make folders in {blocked}"):
        run(provider.open(EnvironmentSpec()))
    with pytest.raises(UsageError, match=f"root: .*{blocked}.*name a folder"):
        run(provider.check())


def test_the_way_of_killing_is_chosen_at_the_first_command(root: Path) -> None:
    """Without orders the provider takes the best that the machine has, and only when a command needs it."""
    provider = HostProcessProvider(root=str(root))

    async def main() -> None:
        async with opened(provider) as env:
            assert provider._make_tree is None
            assert (await env.exec(BEAT.format("heart") + " & wait", timeout=LIMIT)).timed_out
            assert provider._make_tree is not None
            assert await beats(env, "heart")
            assert not await alive(env, "heart")

    run(main())
    assert [] == [*processes_of(root), *root.iterdir()]


def test_removal_spares_the_sandbox_itself(root: Path) -> None:
    """A path that holds the sandbox is refused, by whatever way it is named; the workdir may go."""

    async def main() -> None:
        async with opened(HostProcessProvider(root=str(root))) as env:
            await env.exec(f"mkdir sub; ln -s {root} sub/link")
            for path in ("/", "..", "../..", str(root), "sub/../../..", "sub/link/../" + root.name):
                with pytest.raises(UsageError, match="the sandbox itself"):
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
            deep = "i=0; while [ $i -lt 1500 ]; do mkdir d && cd d || exit 1; i=$((i+1)); done"
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


def test_output_written_before_the_end_is_whole(root: Path) -> None:
    """A background holder of the pipe and a busy loop do not cost what the command itself had written."""

    async def main() -> None:
        async with opened(HostProcessProvider(root=str(root))) as env:
            running = asyncio.ensure_future(env.exec("sleep 60 & head -c 60000 /dev/zero"))
            await asyncio.sleep(0.01)
            threading.Event().wait(0.5)  # the loop reads nothing while both the command and the grace end

            assert 60000 == (await running).stdout_size

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


def test_unkillable_process_is_reported_when_closing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What survives is an error that names it, and closing again tries again."""
    monkeypatch.setattr(commands, "_KILL_ALL_WITHIN", 0.05)

    class Stubborn(ScanTree):
        struck = True

        async def strike(self, branch: str | None) -> set[int] | None:
            return {4711} if self.struck else await super().strike(branch)

    async def main() -> None:
        env = await HostProcessProvider(root=str(root), make_tree=lambda name: Stubborn(name, proc_table)).open(
            EnvironmentSpec()
        )
        await env.exec("sleep 60 &")
        with pytest.raises(SandboxError, match="4711"):
            await env.close()
        Stubborn.struck = False
        await env.close()

    run(main())
    assert [] == [*processes_of(root), *root.iterdir()]


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
