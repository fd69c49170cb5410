"""The one way out of a sandbox with a list: an HTTP proxy that decides on the addresses it then connects to."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from agentcompass.core.model.network import NetworkMode, NetworkPolicy
from agentcompass.core.network_rules import is_refused_by_name, permits

from .egress_request import Request, chunk_size, parse
from .waiting import in_own_thread

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]  #: gives the addresses of a name

_HEAD_LIMIT = 32 * 1024  # bytes of a head; also (twice that) what is read ahead of a slow receiver
_CHUNK = 32 * 1024
_CONNECTIONS = 512  # at once; each takes two of this process's open files
_BACKLOG = 256  # connections that wait to be taken
_LOOKUPS = 16  # at once; each takes a thread
_REMEMBERED = 100  # refusals kept as evidence
_ADDRESSES = 8  # of a name, that are tried
_LISTED = 20  # entries of a list that a refusal shows
_LINGER_SECONDS = 2.0  # for the client to take an answer while it still sends
_REASONS = {400: "Bad Request", 403: "Forbidden", 408: "Request Timeout", 431: "Request Header Fields Too Large"}
_REASONS |= {502: "Bad Gateway", 503: "Service Unavailable"}


def proxy_variables(port: int, host: str = "127.0.0.1") -> Mapping[str, str]:
    """Return the variables that lead programs to a proxy; what a sandbox serves to itself goes past it."""
    url = f"http://{host}:{port}"
    variables = {"http_proxy": url, "https_proxy": url, "all_proxy": url, "no_proxy": "localhost,127.0.0.1,::1"}
    return variables | {name.upper(): value for name, value in variables.items()}


class _Refusal(Exception):  # noqa: N818  (an answer)
    """The answer to a request that is not served."""

    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.status = status


@dataclass(eq=False, slots=True)
class _Flow:
    """One connection through the proxy: where it was led to, and its two ends."""

    client: asyncio.StreamWriter
    host: str = ""
    port: int = 0
    addresses: Sequence[str] = ()
    address: str = ""
    server: asyncio.StreamWriter | None = None

    def is_permitted(self, policy: NetworkPolicy) -> bool:
        return self.address in permits(policy, self.host, self.port, self.addresses)

    def cut(self) -> None:
        """Reset both ends, so that neither takes this for the end of what was sent."""
        for end in (self.client, self.server):
            if end is not None:
                with suppress(OSError):
                    end.get_extra_info("socket").setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                    )
                end.transport.abort()


class EgressProxy:
    """Serves CONNECT and plain HTTP on a listening socket, to whatever `NetworkPolicy` permits; one request each.

    Names are resolved here, once for each connection, and the connection is made to an address of that answer. What
    travels inside a tunnel is not looked at. `allowed` and `refusals` count, `refused` tells of the first refusals.
    """

    def __init__(
        self,
        policy: NetworkPolicy,
        *,
        resolve: Resolve | None = None,
        header_seconds: float = 30.0,
        connect_seconds: float = 15.0,
        connections: int = _CONNECTIONS,
    ) -> None:
        self.allowed = 0
        self.refusals = 0
        self.refused: list[str] = []
        self._policy = policy
        self._resolve = resolve or _look_up
        self._header_seconds = header_seconds
        self._connect_seconds = connect_seconds
        self._connections = connections
        self._lookups = asyncio.Semaphore(_LOOKUPS)
        self._flows: set[_Flow] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._closed = False

    async def start(self, sock: socket.socket) -> None:
        """Serve *sock*, which listens, until `close`."""
        self._server = await asyncio.start_server(self._accept, sock=sock, limit=_HEAD_LIMIT, backlog=_BACKLOG)

    @property
    def policy(self) -> NetworkPolicy:
        """What is permitted now."""
        return self._policy

    def set_policy(self, policy: NetworkPolicy) -> None:
        """Permit *policy* from now on, and cut the connections that it does not."""
        self._policy = policy
        for flow in self._flows:
            if flow.address and not flow.is_permitted(policy):
                flow.cut()

    async def close(self) -> None:
        """Stop listening and cut every connection; closing again does nothing."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closed:  # it was on its way already
            writer.transport.abort()
            return
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        flow = _Flow(writer)
        self._flows.add(flow)
        whole = False
        try:
            try:
                request = await self._request(reader)
                if request is not None:
                    await self._pass_on(request, flow, reader)
            except _Refusal as refusal:
                await _answer(writer, reader, refusal.status, str(refusal))
            whole = True
        except* (OSError, EOFError, ValueError, asyncio.LimitOverrunError):  # an end is gone, or broke off
            pass
        finally:
            self._flows.discard(flow)
            if whole:
                writer.close()
                if flow.server is not None:
                    flow.server.close()
            else:
                flow.cut()

    async def _request(self, reader: asyncio.StreamReader) -> Request | None:
        """Read the head of the one request; None if the client has gone without a word."""
        if len(self._flows) > self._connections:
            raise _Refusal(503, f"this sandbox has {self._connections} connections open already")
        try:
            async with asyncio.timeout(self._header_seconds):
                return parse(await reader.readuntil(b"\r\n\r\n"))
        except TimeoutError:
            raise _Refusal(408, f"no request within {self._header_seconds:g} s") from None
        except asyncio.LimitOverrunError:
            raise _Refusal(431, f"the head is larger than {_HEAD_LIMIT} bytes") from None
        except asyncio.IncompleteReadError as error:
            if not error.partial:
                return None
            raise _Refusal(400, "the request broke off") from None
        except ValueError as error:
            raise _Refusal(400, str(error)) from None

    async def _pass_on(self, request: Request, flow: _Flow, reader: asyncio.StreamReader) -> None:
        flow.host, flow.port = request.host, request.port
        server_reader, server = await self._connect(flow)
        if request.is_tunnel:
            flow.client.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await flow.client.drain()
            upwards = _pump(reader, server)
        else:
            server.write(request.head)
            upwards = _body(reader, server, request.length)
        async with asyncio.TaskGroup() as both:
            sending = both.create_task(upwards)
            await _pump(server_reader, flow.client)
            if not request.is_tunnel:  # the answer is complete, whatever the client still sends
                await asyncio.wait({sending}, timeout=_LINGER_SECONDS)
                sending.cancel()

    async def _connect(self, flow: _Flow) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        flow.addresses = await self._addresses(flow.host, flow.port)
        failure = "its name leads to no address"
        for address in self._permitted(flow)[:_ADDRESSES]:
            try:
                async with asyncio.timeout(self._connect_seconds):
                    reader, writer = await asyncio.open_connection(address, flow.port, limit=_HEAD_LIMIT)
            except (OSError, TimeoutError) as error:
                failure = f"{address}: {getattr(error, 'strerror', None) or error or 'no answer'}"
                continue
            flow.server, flow.address = writer, address
            if not flow.is_permitted(self._policy):  # it was switched meanwhile
                self._refuse(flow.host, flow.port)
            self.allowed += 1
            return reader, writer
        raise _Refusal(502, f"cannot connect to {flow.host}:{flow.port}: {failure}")

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        try:
            if is_refused_by_name(self._policy, host, port):
                self._refuse(host, port)
            async with self._lookups, asyncio.timeout(self._connect_seconds):
                return await self._resolve(host, port)
        except (OSError, TimeoutError, ValueError) as error:
            raise _Refusal(502, f"cannot find {host}: {getattr(error, 'strerror', None) or 'no answer'}") from None

    def _permitted(self, flow: _Flow) -> Sequence[str]:
        found = permits(self._policy, flow.host, flow.port, flow.addresses)
        if flow.addresses and not found:
            self._refuse(flow.host, flow.port)
        return found

    def _refuse(self, host: str, port: int) -> None:
        line = f"agentcompass: {host}:{port} is refused ({self._policy.network_mode.value}): {_rule(self._policy)}"
        self.refusals += 1
        if len(self.refused) < _REMEMBERED and line not in self.refused:
            self.refused.append(line)
        raise _Refusal(403, line)


def _rule(policy: NetworkPolicy) -> str:
    if policy.network_mode is NetworkMode.NO_NETWORK:
        return "this sandbox has no network"
    if policy.network_mode is NetworkMode.ALLOWLIST:
        return f"this sandbox may reach only: {_shown(policy.allowed_hosts)}"
    return f"this sandbox may reach neither private addresses nor: {_shown(policy.denied_hosts)}"


def _shown(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - _LISTED} more" if len(hosts) > _LISTED else ""
    return (", ".join(hosts[:_LISTED]) or "nothing") + more


async def _look_up(host: str, port: int) -> Sequence[str]:
    found = await in_own_thread(partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM))
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass everything on, as fast as it is taken, and then the end."""
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def _body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, length: int | None) -> None:
    """Pass on the body of one request and nothing of what follows: a second one could name another host."""
    if length is None:
        while size := chunk_size(await _line(reader, writer)):
            await _exactly(reader, writer, size)
            if await _line(reader, writer) != b"\r\n":
                raise ValueError("a broken chunk")
        while await _line(reader, writer) != b"\r\n":  # the trailers
            pass
    else:
        await _exactly(reader, writer, length)
    while await reader.read(_CHUNK):  # dropped
        pass
    writer.write_eof()


async def _line(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    line = await reader.readuntil(b"\r\n")
    writer.write(line)
    await writer.drain()
    return line


async def _exactly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, size: int) -> None:
    while size:
        data = await reader.read(min(size, _CHUNK))
        if not data:
            raise EOFError
        size -= len(data)
        writer.write(data)
        await writer.drain()


async def _answer(writer: asyncio.StreamWriter, reader: asyncio.StreamReader, status: int, line: str) -> None:
    """Send *line*; what the client still sends is taken, or it would get a reset in place of the answer."""
    body = f"{line}\n".encode()
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    await writer.drain()
    writer.write_eof()
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_SECONDS):
            while await reader.read(_CHUNK):
                pass
