"""Tests of the network of a Docker sandbox: switched while it is open, and kept to a list."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from contracts.environment_tools import opened, run
from support import docker

from agentcompass.core.errors import UsageError
from agentcompass.core.model.network import NetworkMode, NetworkPolicy

docker_daemon, slice_image = docker.docker_daemon, docker.slice_image
docker_engine = pytest.importorskip("agentcompass.adapters.sandboxes.docker_engine")

PROBE = "import socket; socket.setdefaulttimeout(3); print(socket.gethostbyname('pypi.org') != '')"


@pytest.fixture
def provider(slice_image):
    return docker_engine.DockerProvider(image=slice_image)


def test_network_is_switched(provider) -> None:
    """Without a network there is not even DNS; with the public one there is, as often as it is switched."""

    async def main() -> None:
        none, public = NetworkPolicy(NetworkMode.NO_NETWORK), NetworkPolicy()
        async with opened(provider, network=none) as env:

            async def devices() -> bytes:
                return (await env.exec("ls /sys/class/net | tr -d '0-9\\n'")).stdout

            began = time.monotonic()
            closed = await env.exec(["python3", "-c", PROBE])
            assert 0 != closed.exit_code
            assert 3 > time.monotonic() - began
            assert b"lo" == await devices()
            await env.set_network(public)
            assert b"ethlo" == await devices()
            assert b"nameserver" in (await env.exec("cat /etc/resolv.conf")).stdout
            await env.set_network(public)
            await env.set_network(none)
            assert b"lo" == await devices()
            await env.set_network(public)
            assert b"ethlo" == await devices()

    run(main())


@pytest.fixture
def page():
    """The port of a web server on this machine's loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"the page")

    def log_message(self, *args):
        pass


def test_list_of_hosts_is_kept(provider, page) -> None:
    """Behind a list the named host is reached, nothing else is, and a switch holds at once."""
    if NetworkMode.ALLOWLIST not in provider.capabilities.network_modes:
        pytest.skip("lists take root on the engine's machine")
    allowed = NetworkPolicy(NetworkMode.ALLOWLIST, allowed_hosts=("127.0.0.1",))
    fetch = ["env", "no_proxy=", "NO_PROXY=", "curl", "-sS", "-m", "5", f"http://127.0.0.1:{page}/"]

    async def main() -> None:
        async with opened(provider, network=allowed) as env:
            assert b"the page" == (await env.exec(fetch)).stdout
            assert b"lo" == (await env.exec("ls /sys/class/net | tr -d '\\n'")).stdout
            other = await env.exec(["curl", "-sS", "-m", "5", f"http://127.0.0.2:{page}/"])
            assert f"agentcompass: 127.0.0.2:{page} is refused (allowlist)".encode() in other.stdout
            await env.set_network(NetworkPolicy(NetworkMode.ALLOWLIST, allowed_hosts=("example.org",)))
            assert b"is refused" in (await env.exec(fetch)).stdout
            await env.set_network(NetworkPolicy(NetworkMode.NO_NETWORK))
            assert 0 != (await env.exec(fetch)).exit_code
            assert b"" == (await env.exec("env | grep -i ^http_proxy")).stdout
            await env.set_network(allowed)
            assert b"the page" == (await env.exec(fetch)).stdout
            await env.set_network(NetworkPolicy())
            assert b"" == (await env.exec("env | grep -i ^http_proxy")).stdout
            assert b"eth" in (await env.exec("ls /sys/class/net")).stdout

    run(main())


def test_lists_are_refused_elsewhere(slice_image, monkeypatch) -> None:
    """What cannot be enforced is refused, and the sandbox stays without a network."""
    monkeypatch.setattr(docker_engine, "is_reachable", lambda name, pid: False)

    async def main() -> None:
        none = NetworkPolicy(NetworkMode.NO_NETWORK)
        async with opened(docker_engine.DockerProvider(image=slice_image), network=none) as env:
            with pytest.raises(UsageError, match="allowlist"):
                await env.set_network(NetworkPolicy(NetworkMode.ALLOWLIST, allowed_hosts=("example.org",)))
            assert b"lo" == (await env.exec("ls /sys/class/net | tr -d '\\n'")).stdout

    run(main())
