"""Counts over HTTP; every change is on disk before it is answered."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, STATE = int(sys.argv[1]), os.path.abspath(sys.argv[2])
LOCK = threading.Lock()
COUNTERS = {}


def save():
    with open(STATE + ".new", "w") as file:
        json.dump(COUNTERS, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(STATE + ".new", STATE)


class Handler(BaseHTTPRequestHandler):
    def answer(self, status, text=""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8", "replace").strip()
        name = re.fullmatch(r"/counters/([a-z0-9_-]+)", self.path)
        with LOCK:
            if self.path == "/counters":
                self.answer(*((200, json.dumps(COUNTERS)) if self.command == "GET" else (405,)))
            elif not name:
                self.answer(404)
            else:
                self.answer(*self.counter(name[1], body))

    def counter(self, name, body):
        if self.command == "POST":
            if not re.fullmatch(r"[+-]?\d+|", body):
                return (400,)
            COUNTERS[name] = COUNTERS.get(name, 0) + int(body or 1)
            save()
            return 200, str(COUNTERS[name])
        if self.command not in ("GET", "DELETE"):
            return (405,)
        if name not in COUNTERS:
            return (404,)
        if self.command == "GET":
            return 200, str(COUNTERS[name])
        del COUNTERS[name]
        save()
        return (204,)

    do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = handle_any  # noqa: N815

    def log_message(self, *_):
        pass


if os.path.exists(STATE):
    with open(STATE) as saved:
        COUNTERS.update(json.load(saved))


class Server(ThreadingHTTPServer):
    request_queue_size = 128


Server(("127.0.0.1", PORT), Handler).serve_forever()
