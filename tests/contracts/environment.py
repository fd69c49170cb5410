"""The contract of sandboxes, for every provider: a subclass of `EnvironmentContract` gives the `provider` fixture."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.environment import OUTPUT_FILE_LIMIT, EnvironmentSpec
from agentcompass.core.model.network import NetworkMode, NetworkPolicy
from agentcompass.ports.environment import Environment, EnvironmentProvider

LIMIT = 0.3  #: seconds of the time-outs that are meant to fire
BEAT = "while :; do echo >>{0}; sleep 0.02; done"  #: a process that is seen to live by the growth of a file
TREES = {
    "child": f"{{ {BEAT}; }} & wait",
    "foreground": BEAT,
    "own-session": f"setsid sh -c '{BEAT}' & wait",
    "double-fork": f"(setsid sh -c '({BEAT}) & exit' &) ; sleep 60",
    "ignores-term": f"trap '' TERM HUP INT; sh -c \"trap '' TERM HUP INT; {BEAT}\" & wait; {BEAT}",
    "parent-gone": f"({BEAT}) & ({BEAT}) & kill -9 $$ & sleep 60",
}


@asynccontextmanager
async def opened(provider: EnvironmentProvider, **spec: Any) -> AsyncIterator[Environment]:
    """Open a sandbox and close it at the end."""
    env = await provider.open(EnvironmentSpec(**spec))
    try:
        yield env
    finally:
        await env.close()


def run(main: Awaitable[Any], within: float = 30.0) -> Any:
    """Run *main* on a loop of its own; a test that hangs fails."""

    async def bounded() -> Any:
        async with asyncio.timeout(within):
            return await main

    return asyncio.run(bounded())


def in_sandbox(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Turn an async test that takes `env` into one that takes `provider`, opens a sandbox and closes it."""

    @functools.wraps(test)
    def wrapper(self: Any, provider: EnvironmentProvider, **fixtures: Any) -> None:
        async def main() -> None:
            async with opened(provider) as env:
                await test(self, env=env, **fixtures)

        run(main())

    signature = inspect.signature(test)
    renamed = [p.replace(name="provider") if p.name == "env" else p for p in signature.parameters.values()]
    wrapper.__signature__ = signature.replace(parameters=renamed)  # type: ignore[attr-defined]
    return wrapper


async def until(condition: Callable[[], Awaitable[bool]], within: float = 5.0) -> None:
    """Poll *condition* until it holds."""
    deadline = time.monotonic() + within
    while not await condition():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.01)


async def beats(env: Environment, path: str) -> int:
    """Return how often the heart at *path* has beaten."""
    return len(await env.read_file(path) or b"")


async def alive(env: Environment, path: str) -> bool:
    """Tell whether the heart at *path* beats."""
    before = await beats(env, path)
    for _ in range(15):
        await asyncio.sleep(0.01)
        if await beats(env, path) > before:
            return True
    return False


def tree_of(root: Path) -> dict[str, tuple[str, int, bytes | str | None]]:
    """Describe every file, folder and link below *root*: kind, mode, content."""
    found: dict[str, tuple[str, int, bytes | str | None]] = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        name = str(path.relative_to(root))
        if stat.S_ISLNK(mode):
            found[name] = ("link", 0, os.readlink(path))
        elif stat.S_ISDIR(mode):
            found[name] = ("folder", stat.S_IMODE(mode), None)
        else:
            found[name] = ("file", stat.S_IMODE(mode), path.read_bytes())
    return found


def plant_tree(root: Path) -> Path:
    """Make a tree that has everything a copy must keep."""
    (root / "empty").mkdir(parents=True)
    (root / "closed").mkdir()
    (root / "closed" / "inner.txt").write_bytes(b"inside\n")
    (root / "run.sh").write_bytes(b"#!/bin/sh\necho ran\n")
    (root / "raw.bin").write_bytes(bytes(range(256)) * 300)
    (root / "none").write_bytes(b"")
    (root / "name with blank\nand line").write_bytes(b"x")
    (root / "to-file").symlink_to("raw.bin")
    (root / "to-nowhere").symlink_to("/no/such/place")
    (root / "to-folder").symlink_to("closed")
    for name, mode in {"run.sh": 0o755, "raw.bin": 0o640, "none": 0o600, "empty": 0o750, "closed": 0o555}.items():
        (root / name).chmod(mode)
    return root


class EnvironmentContract:
    """What every sandbox does. A subclass may say what is left of a provider's sandboxes, by `leftovers`."""

    def leftovers(self, provider: EnvironmentProvider) -> list[str]:
        """Name the processes and other things that closed sandboxes of *provider* have left."""
        return []

    # commands

    @in_sandbox
    async def test_script_gives_both_streams_and_its_code(self, env: Environment) -> None:
        """A string is a script for the shell."""
        result = await env.exec("echo out; echo err >&2; exit 3")

        assert (3, b"out\n", b"err\n", False) == (result.exit_code, result.stdout, result.stderr, result.timed_out)

    @in_sandbox
    async def test_argument_list_meets_no_shell(self, env: Environment) -> None:
        """A list is run as it is."""
        result = await env.exec(["printf", "%s|", "$HOME; *", "a  b", ""])

        assert (0, b"$HOME; *|a  b||") == (result.exit_code, result.stdout)

    @in_sandbox
    async def test_folder_is_the_workdir_unless_given(self, env: Environment) -> None:
        """Commands run in the workdir, or in a folder below it."""
        here = await env.exec("pwd; mkdir -p a/b")
        below = await env.exec("pwd", cwd="a/b")
        absolute = await env.exec("pwd", cwd=f"{env.workdir}/a")

        assert f"{env.workdir}\n".encode() == here.stdout
        assert f"{env.workdir}/a/b\n".encode() == below.stdout
        assert f"{env.workdir}/a\n".encode() == absolute.stdout

    def test_environment_is_what_was_asked_for(
        self, provider: EnvironmentProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The spec's variables are set, a command's own win, and none of this process's keys get in."""
        monkeypatch.setenv("PLANTED_API_KEY", "sk-planted-secret")

        async def main() -> None:
            async with opened(provider, env={"ONE": "1", "TWO": "2"}) as env:
                first = await env.exec('echo "$ONE,$TWO"', env={"TWO": "b c"})
                second = await env.exec('echo "$ONE,$TWO"')
                everything = await env.exec("env; cat /proc/$$/environ", env={"TWO": "x"})

                assert (b"1,b c\n", b"1,2\n") == (first.stdout, second.stdout)
                assert b"ONE=1" in everything.stdout
                assert b"planted" not in everything.stdout

        run(main())

    @pytest.mark.parametrize(("signal", "code"), [("KILL", 137), ("TERM", 143)])
    @in_sandbox
    async def test_signal_becomes_128_and_its_number(self, env: Environment, signal: str, code: int) -> None:
        """A command ended by a signal has an exit code as in a shell."""
        result = await env.exec(f"kill -{signal} $$")

        assert (code, False) == (result.exit_code, result.timed_out)

    @in_sandbox
    async def test_unstartable_command_says_why(self, env: Environment) -> None:
        """A command that cannot be started is a result, not an exception."""
        await env.write_file("plain", b"no program", mode=0o644)
        missing = await env.exec(["no-such-program-anywhere", "x"])
        plain = await env.exec([f"{env.workdir}/plain"])
        nowhere = await env.exec(["true"], cwd="no/such/folder")

        assert (127, 126) == (missing.exit_code, plain.exit_code)
        assert b"no-such-program-anywhere" in missing.stderr
        assert b"plain" in plain.stderr
        assert nowhere.exit_code in (126, 127)
        assert nowhere.stderr

    @in_sandbox
    async def test_stdin_of_five_megabytes_flows(self, env: Environment) -> None:
        """Input and output of any size do not block each other."""
        data = bytes(range(256)) * 20_000
        result = await env.exec(["cat"], stdin=data, output_limit=len(data))

        assert (0, len(data)) == (result.exit_code, result.stdout_size)
        assert data == result.stdout

    @in_sandbox
    async def test_stdin_may_be_ignored_or_absent(self, env: Environment) -> None:
        """A command that reads nothing is no error, and without input it reads the end at once."""
        ignored = await env.exec(["true"], stdin=b"x" * 5_000_000)
        partly = await env.exec(["head", "-c", "3"], stdin=b"abc" * 1_000_000)
        absent = await env.exec(["cat"], timeout=5)
        empty = await env.exec(["cat"], stdin=b"", timeout=5)

        assert [0, 0, 0, 0] == [result.exit_code for result in (ignored, partly, absent, empty)]
        assert b"abc" == partly.stdout

    @in_sandbox
    async def test_output_is_bounded_and_its_size_true(self, env: Environment) -> None:
        """Head and tail are kept, the rest is counted."""
        whole = b"".join(b"%d\n" % number for number in range(1, 200_001))
        result = await env.exec("seq 1 200000; seq 1 1000 >&2", output_limit=1000)

        assert (whole[:1000] + whole[-1000:], len(whole)) == (result.stdout, result.stdout_size)
        assert (2000, 3893) == (len(result.stderr), result.stderr_size)
        assert result.truncated

    @in_sandbox
    async def test_output_of_twice_the_limit_is_whole(self, env: Environment) -> None:
        """What fits into head and tail is kept without a gap."""
        result = await env.exec("printf 0123456789", output_limit=5)

        assert (b"0123456789", False) == (result.stdout, result.truncated)

    @in_sandbox
    async def test_output_is_bytes(self, env: Environment) -> None:
        """Nothing is decoded, stripped or translated."""
        result = await env.exec(r"printf '\377\376\000\r\n\303 '; printf '\377' >&2")

        assert (b"\xff\xfe\x00\r\n\xc3 ", b"\xff") == (result.stdout, result.stderr)

    @in_sandbox
    async def test_stdout_file_receives_the_whole(self, env: Environment, tmp_path: Path) -> None:
        """A file gets all of stdout, though memory keeps its ends only; and no more than the limit of files."""
        small, large = tmp_path / "small", tmp_path / "large"
        first = await env.exec("seq 1 100000; echo no >&2", output_limit=10, stdout_file=str(small))
        second = await env.exec(
            f"head -c {OUTPUT_FILE_LIMIT + 5} /dev/zero", output_limit=10, stdout_file=str(large)
        )

        assert (20, first.stdout_size) == (len(first.stdout), small.stat().st_size)
        assert small.read_bytes().endswith(b"\n100000\n")
        assert (OUTPUT_FILE_LIMIT + 5, OUTPUT_FILE_LIMIT) == (second.stdout_size, large.stat().st_size)

    # time-outs and kills

    @pytest.mark.parametrize("shape", TREES)
    @in_sandbox
    async def test_timeout_kills_the_whole_tree(self, env: Environment, shape: str) -> None:
        """At its limit nothing of a command is left, whatever it forked, and the output so far is there."""
        began = time.monotonic()
        script = "echo started; echo trouble >&2; " + TREES[shape].format("heart")
        if shape == "parent-gone":
            script = f"sh -c '{script.replace(' & kill -9 $$ & sleep 60', '')}' & echo $!; sleep 60"
        result = await env.exec(script, timeout=LIMIT)
        took = time.monotonic() - began

        assert (None, True, b"trouble\n") == (result.exit_code, result.timed_out, result.stderr)
        assert b"started\n" in result.stdout
        assert LIMIT <= took < LIMIT + 2
        assert await beats(env, "heart")
        assert not await alive(env, "heart")
        assert 0 == await env.kill_all()

    @in_sandbox
    async def test_timeout_spares_other_commands(self, env: Environment) -> None:
        """A limit is that of one command, not of the sandbox."""
        other = asyncio.ensure_future(env.exec(BEAT.format("other")))
        await until(lambda: alive(env, "other"))
        result = await env.exec("sleep 60", timeout=0.1)

        assert result.timed_out
        assert await alive(env, "other")
        assert 1 <= await env.kill_all()
        assert 137 == (await other).exit_code

    @in_sandbox
    async def test_endless_output_is_stopped_by_the_limit(self, env: Environment) -> None:
        """A command that prints without end is read on until its time is up."""
        result = await env.exec("yes & yes >&2", timeout=LIMIT, output_limit=1000)

        assert (True, 2000, 2000) == (result.timed_out, len(result.stdout), len(result.stderr))
        assert 1_000_000 < result.stdout_size

    @in_sandbox
    async def test_cancelling_kills_the_tree(self, env: Environment) -> None:
        """A cancelled call has killed everything when the cancellation goes on."""
        script = f"setsid sh -c '{BEAT.format('one')}' & {BEAT.format('two')}"
        running = asyncio.ensure_future(env.exec(script))
        await until(lambda: alive(env, "one"))
        await until(lambda: alive(env, "two"))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

        counts = await beats(env, "one"), await beats(env, "two")
        assert not await alive(env, "one")
        assert not await alive(env, "two")
        assert counts == (await beats(env, "one"), await beats(env, "two"))

    @in_sandbox
    async def test_cancelling_at_once_leaves_nothing(self, env: Environment) -> None:
        """However early the cancellation comes, nothing goes on running."""
        for steps in range(6):
            running = asyncio.ensure_future(env.exec(BEAT.format(f"heart{steps}")))
            for _ in range(steps):
                await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        assert 0 == await env.kill_all()
        assert not any([await alive(env, f"heart{steps}") for steps in range(6)])

    @in_sandbox
    async def test_background_lives_until_kill_all(self, env: Environment) -> None:
        """What a command leaves running survives it, and no longer than kill_all."""
        began = time.monotonic()
        result = await env.exec(f"{{ {BEAT.format('heart')}; }} & setsid sh -c '{BEAT.format('other')}' & echo done")

        assert (0, b"done\n") == (result.exit_code, result.stdout)
        assert 2 > time.monotonic() - began
        await until(lambda: alive(env, "heart"))
        await until(lambda: alive(env, "other"))
        assert 2 <= await env.kill_all()
        assert not await alive(env, "heart")
        assert not await alive(env, "other")
        assert 0 == await env.kill_all()

    @in_sandbox
    async def test_background_may_go_on_printing(self, env: Environment) -> None:
        """A process that outlives its command can fill the pipe that nobody looks at any more, and lives."""
        result = await env.exec(
            "echo first; (sleep 0.3; while :; do printf %70000s x; printf %70000s x >&2; echo >>heart; done) &"
        )

        assert b"first\n" == result.stdout
        await until(lambda: alive(env, "heart"))
        assert 10 < await beats(env, "heart")

    @in_sandbox
    async def test_kill_all_counts(self, env: Environment) -> None:
        """The count is that of the processes which were alive."""
        await env.exec("sleep 60 & setsid sleep 60 & (sleep 60 &)")

        assert 3 == await env.kill_all()
        assert 0 == await env.kill_all()
        assert 0 == (await env.exec("true")).exit_code

    @in_sandbox
    async def test_commands_run_side_by_side(self, env: Environment) -> None:
        """Concurrent commands do not wait for each other or mix their outputs."""
        began = time.monotonic()
        results = await asyncio.gather(*(env.exec(f"sleep 0.2; echo {n}", timeout=10) for n in range(8)))

        assert [b"%d\n" % n for n in range(8)] == [result.stdout for result in results]
        assert 1.4 > time.monotonic() - began

    # files

    @in_sandbox
    async def test_written_file_is_read_back(self, env: Environment) -> None:
        """Folders are made, bytes and mode are kept, commands see the file."""
        data = bytes(range(256)) * 1000
        await env.write_file("a/b/run", data)
        await env.write_file(f"{env.workdir}/a/script", b"#!/bin/sh\necho ran\n", mode=0o750)
        result = await env.exec(["./a/script"])
        modes = await env.exec("ls -l a/script a/b/run")

        assert data == await env.read_file("a/b/run")
        assert data == await env.read_file(f"{env.workdir}/a/b/run")
        assert b"ran\n" == result.stdout
        assert [b"-rw-r--r--", b"-rwxr-x---"] == sorted(line[:10] for line in modes.stdout.splitlines())

    @in_sandbox
    async def test_existing_file_is_replaced_whole(self, env: Environment) -> None:
        """The old content and mode are gone; a link is replaced, not followed."""
        await env.write_file("file", b"long old content", mode=0o600)
        await env.exec("ln -s file link")
        await env.write_file("file", b"new")
        await env.write_file("link", b"mine")
        listed = await env.exec("ls -A; ls -l file | cut -c1-10")

        assert (b"new", b"mine") == (await env.read_file("file"), await env.read_file("link"))
        assert b"file\nlink\n-rw-r--r--\n" == listed.stdout

    @in_sandbox
    async def test_what_is_no_regular_file_reads_as_none(self, env: Environment) -> None:
        """Missing files, folders, pipes, devices and broken links are None, without a hang."""
        await env.write_file("plain", b"")
        await env.exec("mkdir folder; mkfifo pipe; ln -s nowhere broken; ln -s broken2 broken2; ln -s plain link")
        names = ["missing", "no/such/folder", "plain/x", "folder", ".", "pipe", "broken", "broken2", "/dev/zero"]

        assert [None] * len(names) == [await env.read_file(name) for name in names]
        assert b"" == await env.read_file("plain")

    @in_sandbox
    async def test_reading_is_limited(self, env: Environment) -> None:
        """A file larger than the limit is a ValueError; one of just that size is read."""
        await env.write_file("ten", b"0123456789")

        assert b"0123456789" == await env.read_file("ten", limit=10)
        with pytest.raises(ValueError, match="9"):
            await env.read_file("ten", limit=9)

    @in_sandbox
    async def test_tree_survives_the_round_trip(self, env: Environment, tmp_path: Path) -> None:
        """Modes, links, empty folders and odd names are the same there and back again."""
        source = plant_tree(tmp_path / "source")
        await env.upload(str(source), "deep/er/copy")
        seen = await env.exec("./run.sh; ls empty; readlink to-nowhere; cat to-folder/inner.txt", cwd="deep/er/copy")
        await env.download("deep/er/copy", str(tmp_path / "new" / "back"))

        assert b"ran\n/no/such/place\ninside\n" == seen.stdout
        assert 10 == len(tree_of(source)) - 1
        assert tree_of(source) == tree_of(tmp_path / "new" / "back")

    @in_sandbox
    async def test_single_file_is_copied(self, env: Environment, tmp_path: Path) -> None:
        """A file becomes the target, with its mode, in place of what was there."""
        source = tmp_path / "source"
        source.write_bytes(b"\xff\x00data")
        source.chmod(0o711)
        await env.write_file("there", b"something longer than that")
        await env.upload(str(source), "there")
        await env.upload(str(source), "new/folder/there")
        await env.download("there", str(tmp_path / "back"))

        assert b"\xff\x00data" == await env.read_file("there")
        assert b"\xff\x00data" == await env.read_file("new/folder/there")
        assert b"\xff\x00data" == (tmp_path / "back").read_bytes()
        assert 0o711 == stat.S_IMODE((tmp_path / "back").stat().st_mode)

    @in_sandbox
    async def test_upload_into_a_folder_keeps_the_rest(self, env: Environment, tmp_path: Path) -> None:
        """A tree is laid over the folder that is there: its files replace, others stay."""
        (tmp_path / "source" / "sub").mkdir(parents=True)
        (tmp_path / "source" / "sub" / "both").write_bytes(b"new")
        await env.exec("mkdir -p target/sub; echo old >target/sub/both; echo own >target/sub/own")
        await env.upload(str(tmp_path / "source"), "target")

        assert b"new" == await env.read_file("target/sub/both")
        assert b"own\n" == await env.read_file("target/sub/own")

    @in_sandbox
    async def test_missing_source_is_a_file_not_found_error(self, env: Environment, tmp_path: Path) -> None:
        """Copying what is not there says so and makes nothing."""
        with pytest.raises(FileNotFoundError):
            await env.download("missing", str(tmp_path / "back"))
        with pytest.raises(FileNotFoundError):
            await env.upload(str(tmp_path / "missing"), "there")

        assert [] == list(tmp_path.iterdir())
        assert b"" == (await env.exec("ls -A")).stdout

    @in_sandbox
    async def test_remove_takes_files_trees_and_links(self, env: Environment) -> None:
        """What is named goes, whatever it is; what a link points to stays; nothing there is no error."""
        await env.exec(
            "mkdir -p tree/a/b kept; touch tree/a/f kept/f; chmod 555 tree/a; ln -s kept link; ln -s /no broken; touch f"
        )
        for name in ("tree", "link", "broken", "f", "f", "missing/too", "kept/f/no"):
            await env.remove(name)
        listed = await env.exec("ls -A; ls kept")

        assert b"kept\nf\n" == listed.stdout

    # refusals

    def test_foreign_network_modes_are_refused(self, provider: EnvironmentProvider) -> None:
        """A mode that the provider does not have is refused by its name, at opening and later."""

        async def main() -> None:
            async with opened(provider) as env:
                for mode in set(NetworkMode) - provider.capabilities.network_modes:
                    with pytest.raises(UsageError, match=mode.value):
                        await env.set_network(NetworkPolicy(mode))
                    with pytest.raises(UsageError, match=mode.value):
                        await provider.open(EnvironmentSpec(network=NetworkPolicy(mode)))
                if NetworkMode.PUBLIC in provider.capabilities.network_modes:
                    await env.set_network(NetworkPolicy(NetworkMode.PUBLIC))

        run(main())
        assert [] == self.leftovers(provider)

    def test_foreign_users_and_images_are_refused(self, provider: EnvironmentProvider) -> None:
        """A user or an image that the provider cannot give is refused, never ignored."""

        async def main() -> None:
            async with opened(provider) as env:
                if not provider.capabilities.users:
                    with pytest.raises(UsageError, match="nobody"):
                        await env.exec("true", user="nobody")
            if not provider.capabilities.images:
                with pytest.raises(UsageError, match="debian:12"):
                    await provider.open(EnvironmentSpec(image="debian:12"))

        run(main())
        assert [] == self.leftovers(provider)

    def test_check_is_one_line(self, provider: EnvironmentProvider) -> None:
        """The check says what answers, and leaves nothing."""
        line = run(provider.check())

        assert line
        assert "\n" not in line
        assert [] == self.leftovers(provider)

    # the end

    def test_nothing_is_left(self, provider: EnvironmentProvider) -> None:
        """Closing kills what runs, however it hides, and removes every trace; an unused sandbox likewise."""
        hearts: list[bool] = []

        async def main() -> None:
            async with opened(provider), opened(provider) as env:
                await env.exec("mkdir -p d/e; touch d/e/f; chmod 0 d/e d; " + TREES["double-fork"].format("h"), timeout=0.1)
                await env.exec("(setsid sh -c 'sleep 60 & sleep 60' &); sleep 60 & echo")
                hearts.append(bool(self.leftovers(provider)))

        run(main())
        assert [] == self.leftovers(provider)

    def test_closing_again_does_nothing(self, provider: EnvironmentProvider) -> None:
        """A sandbox can be closed twice, at once or later, after which it refuses to work."""

        async def main() -> None:
            env = await provider.open(EnvironmentSpec())
            await env.exec("sleep 60 &")
            await asyncio.gather(env.close(), env.close())
            await env.close()
            with pytest.raises(SandboxError):
                await env.exec("true")
            with pytest.raises(SandboxError):
                await env.write_file("x", b"")

        run(main())
        assert [] == self.leftovers(provider)

    def test_closing_ends_a_running_command(self, provider: EnvironmentProvider) -> None:
        """A command that still runs is killed, and its caller is not left waiting."""

        async def main() -> None:
            env = await provider.open(EnvironmentSpec())
            running = asyncio.ensure_future(env.exec(BEAT.format("heart") + " & sleep 60"))
            await until(lambda: alive(env, "heart"))
            await env.close()
            await asyncio.wait({running}, timeout=2)

            assert running.done()
            assert isinstance(running.exception(), SandboxError) or running.result().exit_code != 0

        run(main())
        assert [] == self.leftovers(provider)

    def test_cancelled_closing_still_closes(self, provider: EnvironmentProvider) -> None:
        """A cancellation during the close does not leave half of it."""

        async def main() -> None:
            env = await provider.open(EnvironmentSpec())
            await env.exec("sleep 60 &")
            closing = asyncio.ensure_future(env.close())
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            await env.close()

        run(main())
        assert [] == self.leftovers(provider)

    def test_cancelled_opening_leaves_nothing(self, provider: EnvironmentProvider) -> None:
        """Whenever an opening is cancelled, it is either whole or gone."""

        async def main() -> None:
            for steps in range(6):
                opening = asyncio.ensure_future(provider.open(EnvironmentSpec()))
                for _ in range(steps):
                    await asyncio.sleep(0)
                opening.cancel()
                try:
                    env = await opening
                except asyncio.CancelledError:
                    continue
                await env.close()

        run(main())
        assert [] == self.leftovers(provider)
