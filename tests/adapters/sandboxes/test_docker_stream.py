"""Tests of the streams of commands: frames in pieces of any size, and engines reached over TCP, encrypted or not."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import struct
import subprocess
import threading

import pytest
from contracts.environment_tools import opened, run
from support import docker

from agentcompass.adapters.sandboxes.capture import Capture

docker_daemon, slice_image = docker.docker_daemon, docker.slice_image
docker_engine = pytest.importorskip("agentcompass.adapters.sandboxes.docker_engine")
docker_stream = pytest.importorskip("agentcompass.adapters.sandboxes.docker_stream")


def frame(kind: int, data: bytes) -> bytes:
    return struct.pack(">BxxxL", kind, len(data)) + data


@pytest.mark.parametrize("size", [1, 3, 8, 9, 1000])
def test_frames_come_in_any_pieces(size) -> None:
    """However the stream is cut, each byte reaches the stream that it is of; after forgetting none does."""
    out, err = Capture(1000), Capture(1000)
    frames = docker_stream.Frames(out, err)
    whole = frame(1, b"one ") + frame(2, b"trouble") + frame(1, b"") + frame(1, b"two") + frame(2, bytes(300))
    for start in range(0, len(whole), size):
        frames.feed(whole[start : start + size])
    frames.forget()
    frames.feed(frame(1, b"late"))

    assert (b"one two", b"trouble" + bytes(300)) == (out.value(), err.value())


@pytest.fixture
def forwarder(docker_daemon):
    """Make a TCP port that leads to the engine, perhaps through TLS."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    servers, tasks = [], set()

    async def start(context):
        def accept(reader, writer):
            tasks.add(asyncio.ensure_future(forward(reader, writer)))  # the loop itself may lose them

        servers.append(await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context))
        return servers[0].sockets[0].getsockname()[1]

    async def stop():
        for server in servers:
            server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(3):  # aborted transports take a turn of the loop to go
            await asyncio.sleep(0)

    yield lambda context=None: asyncio.run_coroutine_threadsafe(start(context), loop).result()
    asyncio.run_coroutine_threadsafe(stop(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


async def forward(reader, writer):
    inner_reader, inner_writer = await asyncio.open_unix_connection("/var/run/docker.sock")
    try:
        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))
    finally:
        writer.transport.abort()
        inner_writer.transport.abort()


async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        else:
            writer.close()
    except OSError:
        writer.close()


@pytest.fixture
def certificates(tmp_path):
    """A folder with an authority's certificate, and one that it has signed for both sides."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=tmp_path, check=True, capture_output=True)

    openssl(*"req -x509 -newkey rsa:2048 -nodes -keyout ca-key.pem -out ca.pem -days 2 -subj /CN=ca".split())
    openssl(*"req -newkey rsa:2048 -nodes -keyout key.pem -out request.pem -subj /CN=localhost".split())
    (tmp_path / "names").write_text("subjectAltName=IP:127.0.0.1")
    sign = "x509 -req -in request.pem -CA ca.pem -CAkey ca-key.pem -CAcreateserial -out cert.pem -days 2 -extfile names"
    openssl(*sign.split())
    return tmp_path


async def exchange(image) -> None:
    data = bytes(range(256)) * 2000
    async with opened(docker_engine.DockerProvider(image=image)) as env:
        whole = await env.exec(["cat"], stdin=data, output_limit=len(data))
        partly = await env.exec(["head", "-c", "3"], stdin=b"abc" * 1_000_000)
        failed = await env.exec("cat >/dev/null; exit 3", stdin=b"x")
        missing = await env.exec(["no-such-program"], stdin=b"x")
        empty = await env.exec(["cat"], stdin=b"", timeout=5)
        large = await env.exec("head -c 20000000 /dev/zero; echo end >&2")

        assert (len(data), data) == (whole.stdout_size, whole.stdout)
        assert (0, b"abc") == (partly.exit_code, partly.stdout)
        assert (3, 127) == (failed.exit_code, missing.exit_code)
        assert (0, b"") == (empty.exit_code, empty.stdout)
        assert (20_000_000, b"end\n") == (large.stdout_size, large.stderr)


def test_engine_behind_tcp(forwarder, slice_image, monkeypatch) -> None:
    """Input, its end, and output pass through a plain connection."""
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{forwarder()}")
    run(exchange(slice_image))


def test_engine_behind_tls(forwarder, certificates, slice_image, monkeypatch) -> None:
    """They do through an encrypted one, which cannot be closed by half."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # they would win over the engine's own
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{forwarder(context)}")
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(certificates))
    run(exchange(slice_image))
