"""Listening sockets inside the network namespace of another process, for use in this one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from functools import cache

from agentcompass.core.errors import SandboxError

_WITHIN = 30.0  # seconds for a helper that takes some hundredths
_NAMESPACES = "/proc/{}/ns/net"

# A process of its own: a thread would come back into the pool with the wrong network, and only a process with one
# thread may enter a user namespace. NS_GET_USERNS is how an unprivileged one gets into what it has made itself.
_HELPER = r"""
import ctypes, fcntl, os, socket, struct, sys

NEWUSER, NEWNET, GET_USERNS = 0x10000000, 0x40000000, 0xB701
GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 1
setns = ctypes.CDLL(None, use_errno=True).setns


def enter(fd, kind):
    if setns(fd, kind):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def raise_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        answer = fcntl.ioctl(any_socket, GET_FLAGS, struct.pack("16sh14x", b"lo", 0))
        flags = struct.unpack("16sh14x", answer)[1]
        if not flags & UP:
            fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh14x", b"lo", flags | UP))


network, channel, host, port = int(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])), sys.argv[3], int(sys.argv[4])
try:
    try:
        enter(network, NEWNET)
    except PermissionError:
        enter(fcntl.ioctl(network, GET_USERNS), NEWUSER)
        enter(network, NEWNET)
    raise_loopback()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=512) as server:
        socket.send_fds(channel, [b"ok"], [server.fileno()])
except OSError as error:
    channel.send(str(error).encode())
"""


def listen_in(pid: int, host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """Return a socket that listens at *host* and *port* (0: a free one) in the network namespace of process *pid*.

    Its loopback device is set up if it is down. Blocks for some hundredths of a second.

    Raises:
        SandboxError: the process is gone, or its network is not ours to enter.
    """
    try:
        with open(_NAMESPACES.format(pid), "rb", buffering=0) as network:
            return _helped(network.fileno(), host, port)
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxError(f"cannot listen in the network of process {pid}: {error}") from error


def _helped(network: int, host: str, port: int) -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        ours.setblocking(False)  # by the time it is read the helper has ended
        numbers = [str(network), str(theirs.fileno())]
        helper = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _HELPER, *numbers, host, str(port)],
            pass_fds=(network, theirs.fileno()),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_WITHIN,
            check=False,
        )
        try:
            said, received, _, _ = socket.recv_fds(ours, 4096, 1)
        except BlockingIOError:
            last = helper.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise OSError(last or f"the helper ended with {helper.returncode}") from None
    if not received:
        raise OSError(said.decode(errors="replace"))
    return socket.socket(fileno=received[0])


@cache
def can_listen_in() -> bool:
    """Tell whether `listen_in` works here for any process, which takes a privileged one."""
    if sys.platform != "linux" or not sys.executable:
        return False
    try:
        listen_in(os.getpid()).close()
    except SandboxError:
        return False
    return True
