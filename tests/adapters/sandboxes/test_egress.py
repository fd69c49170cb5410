"""Tests of the way out of a sandbox: what is let through, refused and cut."""

from __future__ import annotations

import asyncio
import socket

import pytest
from contracts.environment_tools import run, until
from support.proxies import HERE, Lookup, get, only, peer, proxied, say, tunnel

from agentcompass.adapters.sandboxes.egress import proxy_variables
from agentcompass.adapters.sandboxes.egress_request import parse
from agentcompass.core.model.network import NetworkMode, NetworkPolicy


@pytest.mark.seed("CP-05")
def test_plain_requests_reach_what_is_listed_and_nothing_else():
    """By address and port, by name, and not by another name or port of the same machine."""

    async def main():
        async with peer() as server, peer() as other:
            lookup = Lookup(good_org=(HERE,), evil_org=(HERE,))
            policy = only(f"{HERE}:{server.port}", "good.org")
            async with proxied(policy, resolve=lookup) as (proxy, connect):
                by_address = await say(connect, get(f"http://{HERE}:{server.port}/a?b=c#d"))
                by_name = await say(connect, get(f"http://good.org:{other.port}/n"))
                refused = await say(connect, get(f"http://evil.org:{other.port}/e"))
                elsewhere = await say(connect, get(f"http://{HERE}:{other.port}/e"))

                assert by_address.endswith(b"\r\n\r\n/a?b=c")
                assert by_name.endswith(b"\r\n\r\n/n")
                assert refused.startswith(b"HTTP/1.1 403 Forbidden\r\n")
                assert refused.endswith(
                    f"\r\n\r\nagentcompass: evil.org:{other.port} is refused (allowlist): this sandbox may reach only: "
                    f"{HERE}:{server.port}, good.org\n".encode()
                )
                assert elsewhere.startswith(b"HTTP/1.1 403")
                assert (2, 2) == (proxy.allowed, proxy.refusals)
                assert ["evil.org", HERE] == [line.split()[1].partition(":")[0] for line in proxy.refused]
            assert b"GET /a?b=c HTTP/1.1\r\nHost: %s:%d\r\n" % (HERE.encode(), server.port) in server.heads[0]
            assert 1 == other.connections

    run(main())


def test_tunnels_flow_both_ways_and_end_half_by_half():
    """Megabytes go through, and the end of one direction is passed on before the other has spoken."""

    async def main():
        async with peer("count") as server, peer("echo") as echo, proxied(only(HERE)) as (_, connect):
            head, reader, writer = await tunnel(connect, HERE, server.port)
            writer.write(b"x" * 3_000_000)
            writer.write_eof()
            assert head.startswith(b"HTTP/1.1 200 ")
            assert b"3000000" == await reader.read()

            _, reader, writer = await tunnel(connect, HERE, echo.port)
            for word in (b"one", b"two"):
                writer.write(word)
                assert word == await reader.readexactly(3)

    run(main())


def test_a_receiver_that_does_not_read_stops_the_sender():
    """Of an endless stream only so much is taken as fits into bounded buffers."""

    async def main():
        async with peer("echo") as server, proxied(only(HERE)) as (_, connect):
            _, _, writer = await tunnel(connect, HERE, server.port)
            sent = 0
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    while True:
                        writer.write(b"x" * 65536)
                        await writer.drain()
                        sent += 65536
            assert sent < 64_000_000
            writer.transport.abort()

    run(main())


def test_one_request_for_each_connection():
    """What follows a request is not passed on, for a second one could name another host; its body is."""

    async def main():
        async with peer() as server, proxied(only(HERE)) as (_, connect):
            url = f"http://{HERE}:{server.port}"
            both = get(f"{url}/one", more="Connection: keep-alive, x-secret\r\nX-Secret: 1\r\nX-Open: 2\r\n")
            first = await say(connect, both + get(f"{url}/two", "other.org"))
            posted = await say(
                connect, f"POST {url}/p HTTP/1.1\r\nContent-Length: 4\r\nExpect: x\r\n\r\nbody" + get(f"{url}/3")
            )
            assert first.endswith(b"/one")
            assert posted.endswith(b"/p")
            assert [b"/one", b"/p"] == [head.split(b" ")[1] for head in server.heads]
            assert [b"", b"body"] == server.bodies
            assert b"X-Secret" not in server.heads[0]
            assert b"X-Open: 2\r\nConnection: close\r\n\r\n" in server.heads[0]

    run(main())


def test_chunks_are_passed_on_and_end_where_they_end():
    """A body of unknown length is followed chunk by chunk, with its trailers."""
    body = b"5\r\nhello\r\n3;x=y\r\nyou\r\n0\r\nT: 1\r\n\r\n"

    async def main():
        async with peer("count") as server, proxied(only(HERE)) as (_, connect):
            url = f"http://{HERE}:{server.port}/"
            head = f"POST {url} HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
            sent = len(parse(head).head) + len(body)

            assert b"%d" % sent == await say(connect, head + body + b"GET / HTTP/1.1\r\n\r\n", end=True)
            for broken in (b"5\r\nhello!\r\n", b"x\r\n", b"-1\r\n", b"5", b"5\r\nhel"):
                with pytest.raises(ConnectionResetError):
                    await say(connect, head + broken, end=True)

    run(main())


def test_the_decision_is_made_on_the_address_that_is_connected_to():
    """A name is looked up once, and what it leads to is what counts."""

    async def main():
        async with peer() as server:
            lookup = Lookup(a_good_org=(HERE,), b_good_org=("10.0.0.1", HERE), exact_org=(HERE,))
            async with proxied(only("*.good.org", "exact.org"), resolve=lookup) as (_, connect):
                for name in ("a.good.org", "b.good.org"):
                    assert (await say(connect, get(f"http://{name}:{server.port}/"))).startswith(b"HTTP/1.1 403")
                assert (await say(connect, get(f"http://exact.org:{server.port}/"))).startswith(b"HTTP/1.1 200")
                assert ["a.good.org", "b.good.org", "exact.org"] == lookup.asked
            assert 1 == server.connections

    run(main())


def test_a_name_that_is_refused_is_not_looked_up():
    """Else a sandbox could tell its secrets to whoever serves a name."""

    async def main():
        lookup = Lookup()
        async with proxied(only("good.org"), resolve=lookup) as (proxy, connect):
            assert (await say(connect, get("http://secret.evil.org/"))).startswith(b"HTTP/1.1 403")
            proxy.set_policy(NetworkPolicy(NetworkMode.DENYLIST, (), ("*.evil.org",)))
            denied = await say(connect, get("http://secret.evil.org/"))
            assert denied.endswith(b"this sandbox may reach neither private addresses nor: *.evil.org\n")
            proxy.set_policy(NetworkPolicy(NetworkMode.NO_NETWORK))
            assert (await say(connect, get("http://good.org/"))).endswith(b"this sandbox has no network\n")
        assert [] == lookup.asked

    run(main())


def test_a_deny_list_leaves_private_addresses_closed():
    """This machine, and what a cloud tells its machines, is not the network."""

    async def main():
        async with peer() as server:
            lookup = Lookup(any_org=(HERE,), meta_org=("169.254.169.254",))
            async with proxied(NetworkPolicy(NetworkMode.DENYLIST, (), ("b.org",)), resolve=lookup) as (_, connect):
                for host in (HERE, "any.org", "meta.org"):
                    answer = await say(connect, get(f"http://{host}:{server.port}/"))
                    assert answer.startswith(b"HTTP/1.1 403")
            assert 0 == server.connections

    run(main())


def test_a_switch_cuts_what_it_forbids():
    """Open connections go with their permission, others stay; new ones follow the new list."""

    async def main():
        async with peer("echo") as kept, peer("echo") as cut, proxied(only(HERE)) as (proxy, connect):
            _, reader, writer = await tunnel(connect, HERE, kept.port)
            _, other_reader, _ = await tunnel(connect, HERE, cut.port)
            proxy.set_policy(only(f"{HERE}:{kept.port}"))

            with pytest.raises(ConnectionResetError):
                await other_reader.read()
            writer.write(b"still")
            assert b"still" == await reader.readexactly(5)
            head, *_ = await tunnel(connect, HERE, cut.port)
            assert head.startswith(b"HTTP/1.1 403")

    run(main())


def test_a_switch_during_the_connecting_counts():
    """What was permitted when the name was asked for, and no more when it is connected, is refused."""

    async def main():
        async with peer() as server:

            async def switching(host, port):
                proxy.set_policy(only("other.org"))
                return (HERE,)

            async with proxied(only("good.org"), resolve=switching) as (proxy, connect):
                assert (await say(connect, get(f"http://good.org:{server.port}/"))).startswith(b"HTTP/1.1 403")
            assert [] == server.heads

    run(main())


def test_what_cannot_be_reached_is_said():
    """A closed port, and a name that there is not, are the network's failures, not refusals."""
    with socket.create_server((HERE, 0)) as closed:
        port = closed.getsockname()[1]

    async def main():
        async with proxied(only(HERE, "gone.org"), resolve=Lookup()) as (proxy, connect):
            down = await say(connect, get(f"http://{HERE}:{port}/"))
            gone = await say(connect, get("http://gone.org/"))

            assert down.startswith(b"HTTP/1.1 502 Bad Gateway")
            assert b"cannot connect to %s:%d: " % (HERE.encode(), port) in down
            assert b"cannot find gone.org: Name or service not known\n" in gone
            assert (0, []) == (proxy.refusals, proxy.refused)

    run(main())


def test_bad_heads_get_an_answer():
    """Too large, broken off, or never coming; a client that says nothing gets nothing."""

    async def main():
        lookup = Lookup()
        async with proxied(only("a.org"), resolve=lookup, header_seconds=0.05) as (proxy, connect):
            huge = await say(connect, "GET http://a.org/ HTTP/1.1\r\nX: " + "x" * 200_000)
            garbage = await say(connect, b"\x16\x03\r\n\r\n" + b"x" * 100_000)
            broken = await say(connect, "GET http://a.org/", end=True)
            slow = await say(connect, "GET http://a.org/")
            silent = await say(connect, "", end=True)

            assert [b"431", b"400", b"400", b"408"] == [text[9:12] for text in (huge, garbage, broken, slow)]
            assert b"" == silent
            assert 0 == proxy.allowed
        assert [] == lookup.asked

    run(main())


def test_connections_are_bounded_and_many():
    """One too many is told so; when others end there is room again."""

    async def main():
        async with peer("echo") as server, proxied(only(HERE), connections=50) as (_, connect):
            opened = await asyncio.gather(*(tunnel(connect, HERE, server.port) for _ in range(50)))
            assert {b"200"} == {head[9:12] for head, _, _ in opened}
            assert (await say(connect, "", end=True)).startswith(b"HTTP/1.1 503 ")
            for _, _, writer in opened:
                writer.close()

            async def has_room():
                return (await tunnel(connect, HERE, server.port))[0].startswith(b"HTTP/1.1 200")

            await until(has_room)

    run(main())


def test_closing_cuts_everything():
    """No connection outlives the proxy, whatever it is at, and nothing new is taken."""

    async def main():
        async def never(host, port):
            await asyncio.Event().wait()

        async with peer("echo") as server, proxied(NetworkPolicy()) as (proxy, connect):
            _, reader, _ = await tunnel(connect, HERE, server.port)
            waiting, _ = await connect()
            proxy._resolve = never
            asking, writer = await connect()
            writer.write(get("http://a.org/").encode())
            await until(lambda: asyncio.sleep(0, len(proxy._flows) == 3))
            await proxy.close()

            for end in (reader, waiting, asking):
                with pytest.raises(ConnectionResetError):
                    await end.read()
            with pytest.raises(OSError):
                await connect()

    run(main())


def test_variables_lead_to_the_proxy():
    """In both spellings, and not for what a sandbox serves itself."""
    variables = proxy_variables(3128)

    assert {"http://127.0.0.1:3128"} == {
        variables[name] for name in "http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY".split()
    }
    assert "localhost,127.0.0.1,::1" == variables["no_proxy"] == variables["NO_PROXY"]
