"""Tests of what a `bubblewrap` sandbox keeps apart: files, processes, users and networks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from contracts.environment_tools import opened, run, until

from agentcompass.adapters.sandboxes import bubblewrap_keeper
from agentcompass.adapters.sandboxes.bubblewrap import BubblewrapProvider
from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.environment import EnvironmentSpec, Resources
from agentcompass.core.model.network import NetworkMode, NetworkPolicy

NO_NETWORK = NetworkPolicy(NetworkMode.NO_NETWORK)


@pytest.fixture(params=["bwrap", "unshare"])
def maker(request):
    """What is kept apart is kept apart whichever program makes the sandbox."""
    return request.param


def test_the_files_of_the_machine_are_not_there(bubblewrap, tmp_path):
    """Neither its users' secrets, nor what lies in its homes and temporary folders."""
    (tmp_path / "secret").write_text("of the host")

    async def main():
        async with opened(bubblewrap) as env:
            for path in (f"{tmp_path}/secret", "/etc/shadow", "/proc/1/root/etc/shadow"):
                assert None is await env.read_file(path)
            assert b"root:x:0:0" in await env.read_file("/etc/passwd")
            listed = await env.exec("ls -A /root /home /tmp /app /tests /logs /solution | grep -v :")
            assert b"" == listed.stdout.strip()

    run(main())


def test_links_do_not_lead_out(bubblewrap, tmp_path):
    """What the framework reads, writes and copies, it does inside: a link is followed there or not at all."""
    (tmp_path / "secret").write_text("of the host")

    async def main():
        async with opened(bubblewrap) as env:
            await env.exec(f"ln -s {tmp_path} out; ln -s {tmp_path}/secret secret; ln -s /etc/shadow shadow")
            for name in ("secret", "shadow", "out/secret"):
                assert None is await env.read_file(name)
                with pytest.raises(FileNotFoundError):
                    await env.download(name, str(tmp_path / "back"))
            with pytest.raises(SandboxError):
                await env.write_file("out/new", b"x")
            await env.remove("out")

    run(main())
    assert ["secret"] == os.listdir(tmp_path)


def test_the_system_is_read_only_and_the_rest_its_own(bubblewrap):
    """A task may write where it likes, but for the system; nothing of it is the next sandbox's."""

    async def main():
        async with opened(bubblewrap) as env:
            for path in ("/data/deep/file", "/etc/foo.conf", "/opt/x", "/root/deep/x", "/tests/x", "/var/lib/x/y"):
                await env.write_file(path, b"mine")
                assert b"mine" == (await env.exec(["cat", path])).stdout
            for path in ("/usr/bin/x", "/bin/x", "/lib/x", "/proc/x"):
                with pytest.raises(SandboxError):
                    await env.write_file(path, b"x")
            moved = await env.exec(
                "mv /etc /e; mv /lib64 /l; rm -f /etc/ld.so.preload; echo x >/etc/ld.so.preload; mv /bin /b"
            )
            assert 0 != moved.exit_code
            assert (b"", b"hi\n") == (await env.read_file("/etc/ld.so.preload"), (await env.exec("echo hi")).stdout)
        async with opened(bubblewrap) as env:
            assert None is await env.read_file("/data/deep/file")
        assert not os.path.exists("/etc/foo.conf")

    run(main())


def test_processes_are_nobody_outside_and_alone_inside(bubblewrap):
    """Inside they look like root, outside they are an unprivileged user; others are neither seen nor killed."""

    async def main():
        async with opened(bubblewrap) as env:
            inside = await env.exec(
                "id -u; ls -d /proc/[0-9]* | wc -l; kill -9 -1; hostname; grep NoNewPrivs /proc/self/status"
            )
            assert b"0\n" == inside.stdout[:2]
            assert 6 > int(inside.stdout.split()[1])
            assert b"sandbox\nNoNewPrivs:\t1\n" in (await env.exec("hostname; grep NoNew /proc/self/status")).stdout
            await env.exec("sleep 60 &")
            (pid,) = env._keeper.members()
            status = Path(f"/proc/{pid}/status").read_text()
            owner = "65534" if os.geteuid() == 0 else str(os.geteuid())
            assert ["Uid:", *[owner] * 4] == next(line.split() for line in status.splitlines() if "Uid:" in line)
            assert "Groups:\t \n" in status or os.geteuid() != 0

    run(main())


def test_kill_everybody_does_not_end_the_sandbox(bubblewrap):
    """Even a command that kills all it can reach leaves a sandbox to work in."""

    async def main():
        async with opened(bubblewrap) as env:
            await env.exec("sleep 60 &")
            await env.exec("kill -9 -1")
            assert b"still\n" == (await env.exec("echo still")).stdout
            assert 0 == await env.kill_all()

    run(main())


def test_no_zombies_are_left(bubblewrap):
    """Neither of background processes, nor of a command that was killed at its limit."""

    async def main():
        async with opened(bubblewrap) as env:
            await env.exec("(sleep 60 &); sleep 60 & true")
            await env.exec("sleep 60 & sleep 60", timeout=0.1)
            assert 2 == await env.kill_all()
            states = await env.exec("grep -h State /proc/[0-9]*/status")
            assert b"State" in states.stdout
            assert b"Z" not in states.stdout

    run(main())


def test_processes_in_namespaces_of_their_own_are_found(bubblewrap):
    """A process that has made more namespaces counts, keeps the network from being switched, and dies."""

    async def main():
        async with opened(bubblewrap) as env:
            await env.exec("unshare --user --pid --fork sleep 60 2>/dev/null & sleep 0.2")
            members = env._keeper.members()
            assert len(members) == await env.kill_all()
            assert set() == env._keeper.members()

    run(main())


def test_limits_bind_the_whole_sandbox(bubblewrap):
    """Memory and processes are counted together, whatever command they are of."""
    if not {"memory_mb", "pids"} <= bubblewrap.capabilities.resources:
        pytest.skip("there are no cgroups to set limits in")

    async def main():
        async with opened(bubblewrap, resources=Resources(memory_mb=64, pids=20)) as env:
            large = await env.exec(["python3", "-c", "x = b'x' * 200_000_000; print(len(x))"])
            forks = await env.exec("for i in $(seq 40); do sleep 60 & done; jobs -p | wc -l")
            assert 137 == large.exit_code
            assert b"fork" in forks.stderr
            assert 20 > await env.kill_all()
            assert b"fine\n" == (await env.exec("echo fine")).stdout

    run(main())


def test_a_limit_that_cannot_hold_is_refused(bubblewrap):
    """Rather than ignored."""
    with pytest.raises(UsageError, match="storage_mb"):
        run(bubblewrap.open(EnvironmentSpec(resources=Resources(storage_mb=1))))


def test_shown_files_are_read_only(root, tmp_path, bubblewrap, maker):
    """What the user binds is there, at its own path, and cannot be changed."""
    tool = str(tmp_path / "tool")
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "data").write_text("shown")
    (tmp_path / "tool" / "data").chmod(0o666)
    (tmp_path / "other").write_text("hidden")
    (tmp_path / "tool" / "a name").write_text("spaced")
    provider = BubblewrapProvider(root=str(root), bind=[str(tmp_path / "tool" / "a name"), tool], maker=maker)

    async def main():
        async with opened(provider) as env:
            assert b"shown" == await env.read_file(f"{tmp_path}/tool/data")
            assert None is await env.read_file(f"{tmp_path}/other")
            assert b"spaced" == await env.read_file(f"{tool}/a name")
            for name in ("data", "a name", "new"):
                assert 0 != (await env.exec(["sh", "-c", 'echo x >"$0"', f"{tool}/{name}"])).exit_code

    run(main())
    assert "shown" == (tmp_path / "tool" / "data").read_text()
    with pytest.raises(UsageError, match="bind"):
        BubblewrapProvider(bind=["relative"])


def test_variables_of_loaders_act_inside_only(bubblewrap):
    """A library to be preloaded is the sandbox's, and is not loaded by what leads there."""

    async def main():
        async with opened(bubblewrap, env={"LD_PRELOAD": "/app/none.so", "PS4": "x"}) as env:
            result = await env.exec("echo $LD_PRELOAD $PS4")
            assert b"/app/none.so x\n" == result.stdout
            assert b"setpriv" not in result.stderr
            assert b"nsenter" not in result.stderr

    run(main())


def test_a_workdir_is_made(bubblewrap):
    """A relative one lies in /app; an absolute one is where it says."""

    async def main():
        for wanted, there in ((None, "/app"), ("repo/sub", "/app/repo/sub"), ("/data/x", "/data/x")):
            async with opened(bubblewrap, workdir=wanted) as env:
                assert f"{there}\n".encode() == (await env.exec("pwd")).stdout
                assert there == env.workdir

    run(main())


def _owned_elsewhere(root, maker, labels, then):
    """Open a sandbox in a process of its own, which does *then*; return the process of the sandbox and that one."""
    script = (
        "import asyncio, os, sys\n"
        "from agentcompass.adapters.sandboxes.bubblewrap import BubblewrapProvider\n"
        "from agentcompass.core.model.environment import EnvironmentSpec\n"
        "async def main():\n"
        f"    provider = BubblewrapProvider(root=sys.argv[1], maker={maker!r})\n"
        f"    env = await provider.open(EnvironmentSpec(labels={labels!r}))\n"
        "    await env.exec('setsid sleep 60 & touch file')\n"
        "    print(*env._keeper.members(), flush=True)\n"
        f"    {then}\n"
        "asyncio.run(main())\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", script, str(root)], stdout=subprocess.PIPE)
    with owner.stdout:
        return int(owner.stdout.readline()), owner


def _is_dead(pid):
    try:
        return b") Z " in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return True


def test_what_a_killed_owner_leaves_is_released(bubblewrap, root, maker):
    """Its processes die with it; its folder is listed as abandoned, and goes."""
    pid, owner = _owned_elsewhere(root, maker, {"run": "r"}, "await asyncio.sleep(60)")
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()

    async def main():
        async def dead():
            return _is_dead(pid)

        await until(dead)
        (left,) = await bubblewrap.leftovers()
        assert (True, False, {"run": "r"}) == (left.abandoned, left.kept, dict(left.labels))
        await bubblewrap.release({"id": left.id})
        assert [] == list(await bubblewrap.leftovers())

    run(main())
    assert [] == list(root.iterdir())


@pytest.mark.seed("RE-10")
@pytest.mark.parametrize("then", ["pass", "os.kill(os.getpid(), 9)"], ids=["ended", "killed"])
def test_a_kept_one_outlives_its_owner(bubblewrap, root, maker, then):
    """With what runs in it, until it is released."""
    pid, owner = _owned_elsewhere(root, maker, {"kept": "true"}, then)
    owner.wait()

    async def main():
        assert not _is_dead(pid)
        (left,) = await bubblewrap.leftovers()
        assert (True, True) == (left.abandoned, left.kept)
        await bubblewrap.release({"id": left.id})
        assert _is_dead(pid)

    run(main())
    assert [] == list(root.iterdir())


def test_release_touches_nothing_but_sandboxes(bubblewrap, tmp_path):
    """A record that names another folder is refused."""
    (tmp_path / "precious").mkdir()
    for facts in ({"id": "x", "folder": str(tmp_path / "precious")}, {"id": "../x"}, {}):
        with pytest.raises(SandboxError, match="no folder of a sandbox"):
            run(bubblewrap.release(facts))
    assert (tmp_path / "precious").exists()


def test_a_missing_program_is_named(bubblewrap, monkeypatch):
    """With the package that has it."""
    monkeypatch.setattr(bubblewrap_keeper.shutil, "which", lambda *_, **__: None)
    with pytest.raises(UsageError, match=" is not installed here; install the package (bubblewrap|util-linux)"):
        run(bubblewrap.check())


def test_where_bwrap_is_missing_unshare_does_its_work(bubblewrap, root, monkeypatch):
    """Who looks at what there is, is told."""
    which = shutil.which
    monkeypatch.setattr(
        bubblewrap_keeper.shutil, "which", lambda name, **how: None if name == "bwrap" else which(name, **how)
    )

    assert "unshare from util-linux" in run(BubblewrapProvider(root=str(root)).check())


def test_a_sandbox_that_cannot_be_made_leaves_nothing(bubblewrap, root, monkeypatch):
    """What bwrap says is said, and the folder goes."""
    monkeypatch.setattr(bubblewrap_keeper, "_FIRST", "echo no such luck >&2; exit 1")

    async def main():
        async with opened(bubblewrap) as env:
            with pytest.raises(SandboxError, match="cannot make a sandbox: no such luck"):
                await env.exec("true")

    run(main())
    assert [] == list(root.iterdir())
