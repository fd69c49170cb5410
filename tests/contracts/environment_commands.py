"""The contract of sandboxes, the commands: what they get and give, and how they die."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from agentcompass.core.model.environment import OUTPUT_FILE_LIMIT
from agentcompass.ports.environment import Environment, EnvironmentProvider

from .environment_tools import LIMIT, alive, beat, beats, in_sandbox, opened, run, until

TREES = {
    "foreground": beat("heart"),
    "child": f"{{ {beat('heart')}; }} & wait",
    "parent-gone": f"sh -c '{{ {beat('heart')}; }} & kill -9 $$'; sleep 60",
    "own-session": f"setsid sh -c '{beat('heart')}' & wait",
    "double-fork": f"(setsid sh -c '({beat('heart')}) & exit' &); sleep 60",
    "ignores-term": f"trap '' TERM HUP INT; sh -c \"trap '' TERM HUP INT; {beat('heart')}\"",
}


class CommandContract:
    """How commands run in every sandbox."""

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
        second = await env.exec(f"head -c {OUTPUT_FILE_LIMIT + 5} /dev/zero", output_limit=10, stdout_file=str(large))

        assert (20, first.stdout_size) == (len(first.stdout), small.stat().st_size)
        assert small.read_bytes().endswith(b"\n100000\n")
        assert (OUTPUT_FILE_LIMIT + 5, OUTPUT_FILE_LIMIT) == (second.stdout_size, large.stat().st_size)

    @in_sandbox
    async def test_commands_run_side_by_side(self, env: Environment) -> None:
        """Concurrent commands do not wait for each other or mix their outputs."""
        began = time.monotonic()
        results = await asyncio.gather(*(env.exec(f"sleep 0.2; echo {n}", timeout=10) for n in range(8)))

        assert [b"%d\n" % n for n in range(8)] == [result.stdout for result in results]
        assert 1.4 > time.monotonic() - began


class KillContract:
    """How commands and what they leave behind die in every sandbox."""

    @pytest.mark.parametrize("shape", TREES)
    @in_sandbox
    async def test_timeout_kills_the_whole_tree(self, env: Environment, shape: str) -> None:
        """At its limit nothing of a command is left, whatever it forked, and the output so far is there."""
        began = time.monotonic()
        result = await env.exec(f"echo started; echo trouble >&2; {TREES[shape]}", timeout=LIMIT)
        took = time.monotonic() - began

        assert (None, True, b"started\n") == (result.exit_code, result.timed_out, result.stdout)
        assert result.stderr.startswith(b"trouble\n")
        assert LIMIT <= took < LIMIT + 2
        assert await beats(env, "heart")
        assert not await alive(env, "heart")
        assert 0 == await env.kill_all()

    @in_sandbox
    async def test_timeout_spares_other_commands(self, env: Environment) -> None:
        """A limit is that of one command, not of the sandbox."""
        other = asyncio.ensure_future(env.exec(beat("other")))
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
        script = f"setsid sh -c '{beat('one')}' & {beat('two')}"
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
            running = asyncio.ensure_future(env.exec(beat("heart")))
            for _ in range(steps):
                await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        assert 0 == await env.kill_all()
        assert not await alive(env, "heart")

    @in_sandbox
    async def test_background_lives_until_kill_all(self, env: Environment) -> None:
        """What a command leaves running survives it, and no longer than kill_all."""
        began = time.monotonic()
        result = await env.exec(f"{{ {beat('heart')}; }} & setsid sh -c '{beat('other')}' & echo done")

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
            "echo first; (sleep 0.3; while sleep 0.01; do printf %70000s x; printf %70000s x >&2; echo >>heart; done) &"
        )

        assert b"first\n" == result.stdout
        for _ in range(5):
            await until(lambda: alive(env, "heart"))

    @in_sandbox
    async def test_kill_all_counts(self, env: Environment) -> None:
        """The count is that of the processes which were alive."""
        await env.exec("sleep 60 & setsid sleep 60 & (sleep 60 &)")

        assert 3 == await env.kill_all()
        assert 0 == await env.kill_all()
        assert 0 == (await env.exec("true")).exit_code
