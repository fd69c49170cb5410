"""What tests of the way out of a sandbox are written with: names, servers, a proxy, and requests to it."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager

from agentcompass.adapters.sandboxes.egress import EgressProxy
from agentcompass.core.model.network import NetworkMode, NetworkPolicy

HERE = "127.0.0.1"


def only(*hosts):
    return NetworkPolicy(NetworkMode.ALLOWLIST, tuple(hosts))


class Lookup:
    """A resolver that knows some names, and who asked."""

    def __init__(self, **names):
        self.names = {name.replace("_", "."): addresses for name, addresses in names.items()}
        self.asked = []

    async def __call__(self, host, port):
        self.asked.append(host)
        if host not in self.names and host != HERE:
            raise OSError(-2, "Name or service not known")
        return self.names.get(host, (host,))


class Peer:
    """A server of the test: *serve* handles its connections, `heads` are the requests that came."""

    def __init__(self):
        self.heads = []
        self.bodies = []
        self.connections = 0
        self.port = 0

    async def answer(self, reader, writer):
        """Answer each request with its own path, as a server that would go on for ever."""
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.heads.append(head)
                size = [int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
                self.bodies.append(await reader.readexactly(size[0]) if size else b"")
                body = head.split(b" ")[1]
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                if b"connection: close" in head.lower():
                    break
        except asyncio.IncompleteReadError:
            pass
        writer.close()

    async def count(self, reader, writer):
        """Read to the end, and only then say how much that was."""
        self.connections += 1
        size = 0
        while data := await reader.read(65536):
            size += len(data)
        writer.write(b"%d" % size)
        writer.close()

    async def echo(self, reader, writer):
        """Send back whatever comes."""
        self.connections += 1
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()


@asynccontextmanager
async def peer(kind="answer"):
    it = Peer()
    tasks = []
    server = await asyncio.start_server(
        lambda *ends: tasks.append(asyncio.ensure_future(getattr(it, kind)(*ends))), HERE, 0
    )
    it.port = server.sockets[0].getsockname()[1]
    try:
        yield it
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            assert outcome is None or isinstance(outcome, asyncio.CancelledError | OSError)


@asynccontextmanager
async def proxied(policy, **options):
    """Open a proxy, and give it with a way to connect to it."""
    proxy = EgressProxy(policy, **options)
    sock = socket.create_server((HERE, 0))
    await proxy.start(sock)
    port = sock.getsockname()[1]
    writers = []

    async def connect():
        reader, writer = await asyncio.open_connection(HERE, port)
        writers.append(writer)
        return reader, writer

    try:
        yield proxy, connect
    finally:
        for writer in writers:
            writer.close()
        await proxy.close()
        await proxy.close()


async def say(connect, text, end=False):
    """Send *text* and return all that comes back."""
    reader, writer = await connect()
    writer.write(text if isinstance(text, bytes) else text.encode())
    if end:
        writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


def get(url, host=None, more=""):
    return f"GET {url} HTTP/1.1\r\n" + (f"Host: {host}\r\n" if host else "") + f"{more}\r\n"


async def tunnel(connect, host, port):
    reader, writer = await connect()
    writer.write(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    return await reader.readuntil(b"\r\n\r\n"), reader, writer
