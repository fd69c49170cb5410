"""Tests of an open Docker sandbox: what it limits, what it survives, and what it says when it cannot."""

from __future__ import annotations

import asyncio
import os
import socket
import tracemalloc

import pytest
from contracts.environment_tools import alive, beat, opened, run, until
from support import docker

from agentcompass.core.errors import SandboxError
from agentcompass.core.model.environment import Resources
from agentcompass.core.model.network import NetworkPolicy

docker_daemon, slice_image = docker.docker_daemon, docker.slice_image
docker_engine = pytest.importorskip("agentcompass.adapters.sandboxes.docker_engine")


@pytest.fixture
def provider(slice_image):
    return docker_engine.DockerProvider(image=slice_image)


@pytest.fixture(params=["here", "elsewhere"])
def both(request, slice_image, monkeypatch):
    """The engine as it is, and as one whose processes cannot be seen from here."""
    if request.param == "elsewhere":
        monkeypatch.setattr(docker_engine, "is_reachable", lambda name, pid: False)
    return docker_engine.DockerProvider(image=slice_image)


def test_memory_limit_is_told(both) -> None:
    """A command that is killed for want of memory says so; the sandbox goes on, and the next one says nothing."""

    async def main() -> None:
        async with opened(both, resources=Resources(memory_mb=64)) as env:
            first = await env.exec(["python3", "-c", "x = bytearray(200_000_000)"])
            second = await env.exec("kill -9 $$")

            assert 137 == first.exit_code
            assert b"agentcompass: the memory limit of 64 MiB was reached; a process was killed\n" in first.stderr
            assert (137, b"") == (second.exit_code, second.stderr)

    run(main())


def test_memory_limit_that_a_child_met_is_told(provider) -> None:
    """A command that lives on after its child was killed is told of it as well, unless it succeeded."""

    async def main() -> None:
        async with opened(provider, resources=Resources(memory_mb=64)) as env:
            result = await env.exec("python3 -c 'x = bytearray(200_000_000)'; exit 3")

            assert 3 == result.exit_code
            assert b"64 MiB was reached" in result.stderr

    run(main())


def test_limits_are_given_to_the_kernel(provider, docker_daemon) -> None:
    """Processors, memory without swap, and processes are what was asked for."""

    async def main() -> None:
        async with opened(provider, resources=Resources(cpu=0.5, memory_mb=128, pids=40)) as env:
            config = docker_daemon.inspect_container(env._container)["HostConfig"]
            forks = await env.exec("for i in $(seq 60); do sleep 5 & done; wait", timeout=1)

            assert 500_000_000 == config["NanoCpus"]
            assert 128 * 1024 * 1024 == config["Memory"] == config["MemorySwap"]
            assert 40 == config["PidsLimit"]
            assert b"ork" in forks.stderr
            assert 10 < await env.kill_all()
            assert 0 == (await env.exec("true")).exit_code

    run(main())


def test_forks_without_end_are_killed(provider) -> None:
    """A tree that grows as fast as it can is halted and killed to the last."""

    async def main() -> None:
        async with opened(provider, resources=Resources(pids=200)) as env:
            await env.write_file("bomb", b"while :; do (setsid sh bomb &) 2>/dev/null; done\n")
            await env.exec("(env -i /usr/bin/setsid sh bomb >/dev/null 2>&1 &)")
            await asyncio.sleep(0.3)

            assert 10 < await env.kill_all()
            assert 0 == await env.kill_all()
            assert 0 == (await env.exec("true")).exit_code

    run(main())


def test_process_without_any_trace_is_killed(provider) -> None:
    """Even without its environment, session and parent a process is in its container."""

    async def main() -> None:
        async with opened(provider) as env:
            await env.exec(f"(env -i /usr/bin/setsid /bin/sh -c '{beat('heart')}' &)")
            await until(lambda: alive(env, "heart"))

            assert 1 <= await env.kill_all()
            assert not await alive(env, "heart")

    run(main())


def test_sandbox_cannot_be_killed_from_inside(both) -> None:
    """Signals to its first process or to all of them cost only what the sandbox had started itself."""

    async def main() -> None:
        async with opened(both) as env:
            await env.exec("kill -9 1; kill -TERM 1; pkill sleep; kill -9 -1")
            await env.exec("sleep 60 &")

            assert 1 == await env.kill_all()
            assert 0 == await env.kill_all()
            assert b"here\n" == (await env.exec("echo here")).stdout

    run(main())


def test_without_programs_files_can_still_be_had(provider, tmp_path) -> None:
    """What has removed every program can be killed, copied and closed."""

    async def main() -> None:
        async with opened(provider) as env:
            await env.exec(
                f"echo result >result; {{ {beat('heart')}; }} & sleep 60 & exec rm -rf /bin /sbin /usr/bin /usr/sbin"
            )
            missing = await env.exec("true")
            killed = await env.kill_all()
            await env.download(".", str(tmp_path / "back"))

            assert 127 == missing.exit_code
            assert 1 <= killed
            assert b"result\n" == (tmp_path / "back" / "result").read_bytes()
            await env.write_file("new", b"x")
            assert b"x" == await env.read_file("new")
            await env.exec("true")
            for name in ("new", "heart", "result", "missing", "/usr/share"):
                await env.remove(name)
            assert await env.read_file("new") is None
            assert not await env._job(lambda: env._files.exists("/usr/share"))

    run(main())


def test_end_of_the_container_is_told(provider, docker_daemon) -> None:
    """When the container is killed from outside, commands fail with its end and its exit code."""

    async def main() -> None:
        async with opened(provider) as env:
            running = asyncio.ensure_future(env.exec(beat("heart")))
            await until(lambda: alive(env, "heart"))
            docker_daemon.kill(env._container)
            with pytest.raises(SandboxError, match="has ended, exit code 137"):
                await running
            with pytest.raises(SandboxError, match="has ended, exit code 137"):
                await env.exec("true")

    run(main())


def test_container_that_is_gone_is_told(provider, docker_daemon) -> None:
    """When somebody has removed the container, every use says so, and closing is quiet."""

    async def main() -> None:
        async with opened(provider) as env:
            docker_daemon.remove_container(env._container, force=True)
            network = env.set_network(NetworkPolicy())
            for use in (env.exec("true"), env.read_file("x"), env.write_file("x", b""), network):
                with pytest.raises(SandboxError, match="[Nn]o such container"):
                    await use

    run(main())


def test_user_and_folder_of_a_command(provider) -> None:
    """Each command may have a user and a folder of its own; unknown ones are results."""

    async def main() -> None:
        async with opened(provider) as env:
            seen = await env.exec("id -un; pwd", user="nobody", cwd="/tmp")
            unknown = await env.exec("true", user="nobody-knows-him")

            assert b"nobody\n/tmp\n" == seen.stdout
            assert 126 == unknown.exit_code
            assert b"nobody-knows-him" in unknown.stderr

    run(main())


def test_files_belong_to_the_sandboxes_user(slice_image, tmp_path) -> None:
    """What is brought in can be changed by whoever works there."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "inner").write_bytes(b"1")
    provider = docker_engine.DockerProvider(image=slice_image, user="nobody")

    async def main() -> None:
        async with opened(provider, workdir="/tmp/own") as env:
            await env.write_file("/tmp/written", b"1")
            await env.upload(str(tmp_path / "source"), "/tmp/tree")
            result = await env.exec("id -un; echo 2 >/tmp/written; echo 2 >/tmp/tree/inner; stat -c %U /tmp/tree")

            assert (0, b"nobody\nnobody\n", b"") == (result.exit_code, result.stdout, result.stderr)

    run(main())


def test_memory_does_not_follow_output(provider) -> None:
    """Of 300 MB only the ends are ever held."""

    async def main() -> int:
        async with opened(provider) as env:
            tracemalloc.start()
            try:
                result = await env.exec("head -c 300000000 /dev/zero")
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert (300_000_000, 1024 * 1024) == (result.stdout_size, len(result.stdout))
            return peak

    assert 20_000_000 > run(main())


def test_what_cannot_be_passed_on_cannot_be_started(provider) -> None:
    """An empty command, null bytes and arguments beyond the system's limit are results that say why."""

    async def main() -> None:
        async with opened(provider) as env:
            for command in ([], ["echo", "a\0b"], "x" * 3_000_000):
                result = await env.exec(command)
                assert 126 == result.exit_code
                assert result.stderr.startswith(b"cannot start the command: ")

    run(main())


def test_refusal_of_the_engine_is_no_output(provider, tmp_path) -> None:
    """The engine's reason for not starting a command is on stderr, and not in the file for stdout."""

    async def main() -> None:
        async with opened(provider) as env:
            result = await env.exec(["no-such-program"], stdout_file=str(tmp_path / "out"))

            assert (127, b"") == (result.exit_code, result.stdout)
            assert b"no-such-program" in result.stderr
            assert b"" == (tmp_path / "out").read_bytes()

    run(main())


def test_upload_lays_over_what_is_there(provider, tmp_path) -> None:
    """Folders that are there keep their modes, hard links stay links, sockets and pipes are left out."""
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "file").write_bytes(b"1")
    os.link(source / "sub" / "file", source / "same")
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(source / "sock"))

    async def main() -> None:
        async with opened(provider) as env:
            await env.exec("mkdir -m 1777 tree; mkdir -m 711 tree/sub")
            await env.upload(str(source), "tree")
            seen = await env.exec("stat -c %a tree tree/sub; ls -A tree; stat -c %h tree/same; cat tree/sub/file")

            assert b"1777\n711\nsame\nsub\n2\n1" == seen.stdout

    run(main())


def test_closing_stops_a_copy(provider, tmp_path) -> None:
    """A copy under way is stopped and its caller told."""
    with open(tmp_path / "large", "wb") as file:
        file.truncate(20_000_000_000)

    async def main() -> None:
        async with opened(provider) as env:
            copying = asyncio.ensure_future(env.upload(str(tmp_path / "large"), "large"))
            await asyncio.sleep(0.3)
            await env.close()
            with pytest.raises(SandboxError):
                await copying

    run(main())


def test_kills_do_not_disturb_other_commands(both) -> None:
    """While commands are killed at their limits, others start, run and end as ever."""

    async def main() -> None:
        async with opened(both) as env:

            async def killed() -> None:
                for _ in range(4):
                    assert (await env.exec("(setsid sleep 60 &); sleep 60", timeout=0.05)).timed_out

            async def others() -> list[bytes]:
                return [(await env.exec(f"echo {n}; exit 0")).stdout for n in range(12)]

            printed, *_ = await asyncio.gather(others(), killed(), killed())
            assert [b"%d\n" % n for n in range(12)] == printed
            assert 0 == await env.kill_all()

    run(main())
