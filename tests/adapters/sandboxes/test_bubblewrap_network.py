"""Tests of the networks of `bubblewrap` sandboxes: none, the machine's, or what a list opens."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pluggy
import pytest
from contracts.environment_tools import opened, run, until
from support.proxies import only

import agentcompass.adapters
import agentcompass.core
import agentcompass.ports
from agentcompass.core.errors import SandboxError
from agentcompass.core.model.network import NetworkMode, NetworkPolicy

NO_NETWORK = NetworkPolicy(NetworkMode.NO_NETWORK)
FETCH = "import sys, urllib.request as r; sys.stdout.write(r.urlopen(sys.argv[1], timeout=5).read().decode())"


@pytest.fixture(params=["bwrap", "unshare"])
def maker(request):
    """Networks are the same whichever program makes the sandbox."""
    return request.param


@asynccontextmanager
async def greeter():
    """Serve "hello" on this machine's 127.0.0.1, and give the port."""

    async def greet(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def test_commands_share_their_sandbox(bubblewrap):
    """A later command sees the processes of an earlier one, and reaches what it serves."""

    async def main():
        async with opened(bubblewrap, network=NO_NETWORK) as env:
            await env.exec("python3 -m http.server 8000 >log 2>&1 & echo $! >pid; sleep 60 & echo $! >other")
            await env.write_file("page", b"served")

            async def served():
                fetched = await env.exec(["python3", "-c", FETCH, "http://127.0.0.1:8000/page"])
                return fetched.stdout == b"served"

            await until(served)
            assert 0 == (await env.exec("kill $(cat other) && kill -0 $(cat pid)")).exit_code
        async with opened(bubblewrap, network=NO_NETWORK) as env:
            assert 0 != (await env.exec(["python3", "-c", FETCH, "http://127.0.0.1:8000/page"])).exit_code

    run(main())


def test_without_network_nothing_is_reached(bubblewrap):
    """No name server, no route, and not what listens on this machine."""

    async def main():
        async with greeter() as port, opened(bubblewrap, network=NO_NETWORK) as env:
            local = await env.exec(["python3", "-c", FETCH, f"http://127.0.0.1:{port}/"], timeout=10)
            named = await env.exec(["python3", "-c", "import socket; socket.gethostbyname('example.org')"], timeout=10)
            routed = await env.exec(["python3", "-c", FETCH, "http://192.0.2.1/"], timeout=10)

            assert [1, 1, 1] == [result.exit_code for result in (local, named, routed)]
            assert b"refused" in local.stderr
            assert b"unreachable" in routed.stderr

    run(main())


def test_an_allow_list_opens_what_it_lists(bubblewrap):
    """Through the proxy that the variables name; another port, and going past it, is refused."""
    if NetworkMode.ALLOWLIST not in bubblewrap.capabilities.network_modes:
        pytest.skip("the network of others cannot be entered here")

    async def main():
        async with greeter() as port, greeter() as other, opened(bubblewrap, network=only(f"127.0.0.1:{port}")) as env:
            proxied = {"no_proxy": "", "NO_PROXY": ""}
            listed = await env.exec(["python3", "-c", FETCH, f"http://127.0.0.1:{port}/"], env=proxied)
            unlisted = await env.exec(["python3", "-c", FETCH, f"http://127.0.0.1:{other}/"], env=proxied)
            past = await env.exec(["python3", "-c", FETCH, f"http://127.0.0.1:{port}/"])
            named = await env.exec(["python3", "-c", "import socket; socket.gethostbyname('example.org')"], timeout=10)

            assert b"hello" == listed.stdout
            assert b"HTTP Error 403: Forbidden" in unlisted.stderr
            assert [1, 1] == [past.exit_code, named.exit_code]
            await env.set_network(only(f"127.0.0.1:{other}"))
            now = await env.exec(["python3", "-c", FETCH, f"http://127.0.0.1:{other}/"], env=proxied)
            assert b"hello" == now.stdout

    run(main())


def test_the_network_is_switched_between_processes(bubblewrap):
    """Public, none and public again; not while something runs, which would keep the old one."""

    async def main():
        async with greeter() as port, opened(bubblewrap) as env:
            fetch = ["python3", "-c", FETCH, f"http://127.0.0.1:{port}/"]
            assert b"hello" == (await env.exec(fetch)).stdout
            await env.exec("sleep 60 &")
            with pytest.raises(SandboxError, match="while processes run"):
                await env.set_network(NO_NETWORK)
            await env.kill_all()
            await env.set_network(NO_NETWORK)
            assert 1 == (await env.exec(fetch)).exit_code
            await env.set_network(NetworkPolicy())
            assert b"hello" == (await env.exec(fetch)).stdout

    run(main())


def test_without_root_it_is_the_same(maker):
    """An unprivileged user has the same sandbox, lists of hosts included."""
    if os.geteuid() != 0 or shutil.which(maker) is None:
        pytest.skip("takes root to be somebody else")
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")  # ours may lie in root's home
    version = python and subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).returncode
    if version != 0:
        pytest.skip("there is no Python for everybody here")
    with socket.create_server(("127.0.0.1", 0)) as server, tempfile.TemporaryDirectory() as site:
        _copy_for_everybody(Path(site))
        port = str(server.getsockname()[1])
        shown = subprocess.run(
            [
                *"setpriv --reuid=12345 --regid=12345 --clear-groups".split(),
                python,
                "-c",
                UNPRIVILEGED,
                port,
                maker,
            ],
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": site, "PYTHONDONTWRITEBYTECODE": "1"},
        )
    assert ["0", "[]", "403", "as this user without capabilities", "0"] == shown.stdout.splitlines(), shown.stderr


def _copy_for_everybody(site):
    """Put the package, and what it needs for this, where every user can read it: ours may be closed to them."""
    for package in (agentcompass, agentcompass.core, agentcompass.ports, agentcompass.adapters, pluggy):
        shutil.copytree(
            Path(package.__file__).parent,
            site / package.__name__.replace(".", "/"),
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    subprocess.run(["chmod", "-R", "a+rX", site], check=True)


UNPRIVILEGED = """
import asyncio, os, sys, tempfile
from agentcompass.adapters.sandboxes.bubblewrap import BubblewrapProvider
from agentcompass.core.model.environment import EnvironmentSpec
from agentcompass.core.model.network import NetworkMode, NetworkPolicy
async def main(root):
    provider = BubblewrapProvider(root=root, maker=sys.argv[2])
    policy = NetworkPolicy(NetworkMode.ALLOWLIST, ("192.0.2.1",))
    env = await provider.open(EnvironmentSpec(network=policy))
    print((await env.exec("id -u; (sleep 60 &)")).stdout.decode().strip())
    assert 1 == await env.kill_all()
    print([pid for pid in env._keeper.members()])
    ask = "exec 3<>/dev/tcp/127.0.0.1/${http_proxy##*:}; printf $0 >&3; head -1 <&3"
    head = f"GET http://127.0.0.1:{sys.argv[1]}/ HTTP/1.1\\r\\n\\r\\n"
    print((await env.exec(["bash", "-c", ask.replace("$0", '"$0"'), head])).stdout.decode().split()[1])
    await env.close()
    print(next(part for part in (await provider.check()).replace("; ", ", ").split(", ") if "capabilities" in part))
    print(len(os.listdir(root)))
with tempfile.TemporaryDirectory() as root:
    asyncio.run(main(root))
"""
