"""Tests of sockets that listen in the network of another process."""

from __future__ import annotations

import os
import socket
import subprocess

import pytest

from agentcompass.adapters.sandboxes.netns import can_listen_in, listen_in
from agentcompass.core.errors import SandboxError


@pytest.fixture
def elsewhere():
    """A process in a network of its own, in which nothing is up."""
    if not can_listen_in():
        assert not os.environ.get("CI"), "CI is privileged"
        pytest.skip("the network of others cannot be entered here")
    process = subprocess.Popen(["unshare", "-n", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(b"x")
    process.stdin.flush()
    process.stdout.read(1)  # it is in there
    yield process.pid
    process.stdin.close()
    process.stdout.close()
    process.wait()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_who_is_inside_reaches_the_socket(elsewhere, host):
    """And who is outside does not; the loopback device has been set up for it."""
    script = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).sendall(b'from inside')"
    with listen_in(elsewhere, host) as sock:
        port = sock.getsockname()[1]
        inside = ["nsenter", "-n", "-t", str(elsewhere), "python3", "-c", script, host, str(port)]
        subprocess.run(inside, check=True)
        sock.settimeout(5)
        connection, _ = sock.accept()
        with connection:
            assert b"from inside" == connection.recv(100)
        with pytest.raises(OSError):
            socket.create_connection((host, port), 1)


def test_a_taken_port_is_said(elsewhere):
    """The error is that of the other network."""
    with listen_in(elsewhere) as sock, pytest.raises(SandboxError, match="Address already in use"):
        listen_in(elsewhere, port=sock.getsockname()[1])


def test_a_process_that_is_gone_is_named():
    """It has no network any more."""
    with pytest.raises(SandboxError, match="of process 999999999"):
        listen_in(999999999)
