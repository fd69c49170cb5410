"""A scripted chat-completions endpoint on 127.0.0.1."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """What the endpoint sends: a body of any kind, or nothing for so many seconds."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hang_seconds: float = 0.0


def answer(text: str | None, **usage: int) -> Reply:
    """Return a proper completion that says *text*."""
    counts = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18, **usage}
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return Reply({"id": "1", "object": "chat.completion", "model": "scripted", "choices": [choice], "usage": counts})


@dataclass
class Endpoint:
    """Where the endpoint is, and what it was asked."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


Script = Callable[[dict[str, Any]], Reply]


@contextmanager
def serving(script: Script) -> Iterator[Endpoint]:
    """Serve *script*, which maps the JSON body of a request to a reply."""
    endpoint = Endpoint("")
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            endpoint.requests.append(body)
            endpoint.keys.append(self.headers.get("authorization", ""))
            reply = script(body)
            if reply.hang_seconds:
                over.wait(reply.hang_seconds)
                self.close_connection = True
                return
            raw = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"content-type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def prompt_of(body: dict[str, Any]) -> str:
    """Return the last message's text."""
    text: str = body["messages"][-1]["content"]
    return text
