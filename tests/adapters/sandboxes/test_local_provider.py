"""Tests of what the local-process sandbox gives to every sandbox: folders, environment and limits."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from contracts.environment_tools import LIMIT, alive, beat, beats, opened, run

from agentcompass.adapters.sandboxes.local_process import HostProcessProvider
from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.environment import EnvironmentSpec


def test_private_folders(root: Path) -> None:
    """HOME and TMPDIR exist and are the sandbox's own, which only its user can enter."""

    async def main() -> None:
        async with opened(HostProcessProvider(root=str(root))) as env:
            assert [] == list(root.iterdir())  # thousands of attempts never use theirs
            result = await env.exec('cd && pwd && cd "$TMPDIR" && pwd && touch x && echo ~')
            (private,) = root.iterdir()

            assert f"{private}/home\n{private}/tmp\n{private}/home\n".encode() == result.stdout
            assert f"{private}/work" == env.workdir
            assert 0o700 == private.stat().st_mode & 0o777

    run(main())
    assert [] == list(root.iterdir())


def test_environment_is_an_allow_list(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a handful of this process's variables get in, and those that the user names."""
    for name in ("LANG", "LC_ALL", "TZ", "USER", "LD_LIBRARY_PATH", "PROXY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, f"the {name}")
    provider = HostProcessProvider(root=str(root), inherit=["PROXY", "NOT_THERE"])

    async def main() -> set[str]:
        async with opened(provider, env={"OWN": "b"}) as env:
            assert b"b" == (await env.exec("printf %s $OWN")).stdout
            return {line.partition("=")[0] for line in (await env.exec(["env"])).stdout.decode().splitlines()}

    ours = {"PATH", "LANG", "LC_ALL", "TZ", "HOME", "TMPDIR", "PROXY", "OWN", "AGENTCOMPASS_SANDBOX"}
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
    """A root in which nothing can be made is a clear error, at the first use and in the check."""
    blocked = tmp_path / "file" / "root"
    blocked.parent.write_bytes(b"")
    provider = HostProcessProvider(root=str(blocked))

    async def main() -> None:
        async with opened(provider) as env:
            for use in (env.exec("true"), env.write_file("x", b""), env.exec("true")):
                with pytest.raises(SandboxError, match=f"cannot make folders in {blocked}"):
                    await use

    run(main())
    with pytest.raises(UsageError, match=f"root: .*{blocked}.*name a folder"):
        run(provider.check())


def test_the_way_of_killing_is_chosen_at_the_first_command(root: Path, traces: Callable[[], list[str]]) -> None:
    """Without orders the provider takes the best that the machine has, and only when a command needs it."""
    provider = HostProcessProvider(root=str(root))

    async def main() -> None:
        async with opened(provider) as env:
            assert provider._make_tree is None
            assert (await env.exec(beat("heart") + " & wait", timeout=LIMIT)).timed_out
            assert provider._make_tree is not None
            assert await beats(env, "heart")
            assert not await alive(env, "heart")

    run(main())
    assert [] == traces()
