"""Starts the service, calls it from many threads, kills it, and starts it again."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def service(state):
    port = free_port()
    command = ["bash", "/app/start.sh", str(port), state]
    process = subprocess.Popen(command, cwd="/", stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        until = time.monotonic() + 5
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert time.monotonic() < until, "it does not listen within five seconds"
            assert process.poll() is None, "it has ended"
            time.sleep(0.05)
        yield port
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def call(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read().decode().strip()
    finally:
        connection.close()


CALLS = [
    ("GET", "/counters/a", None, 404, None),
    ("GET", "/counters", None, 200, "{}"),
    ("POST", "/counters/a", None, 200, "1"),
    ("POST", "/counters/a", "41", 200, "42"),
    ("POST", "/counters/a", "-50", 200, "-8"),
    ("POST", "/counters/a", "1.5", 400, None),
    ("POST", "/counters/a", "many", 400, None),
    ("GET", "/counters/a", None, 200, "-8"),
    ("POST", "/counters/b_2-c", "99999999999999999999", 200, "99999999999999999999"),
    ("POST", "/counters/zero", "0", 200, "0"),
    ("GET", "/counters/zero", None, 200, "0"),
    ("POST", "/counters/UPPER", None, 404, None),
    ("POST", "/counters/", None, 404, None),
    ("GET", "/counters/a/b", None, 404, None),
    ("GET", "/elsewhere", None, 404, None),
    ("PUT", "/counters/a", "1", 405, None),
    ("DELETE", "/counters", None, 405, None),
    ("DELETE", "/counters/zero", None, 204, ""),
    ("DELETE", "/counters/zero", None, 404, None),
    ("GET", "/counters/zero", None, 404, None),
]


def main():
    with tempfile.TemporaryDirectory() as folder:
        state, other = f"{folder}/state", f"{folder}/other state"
        with service(state) as port, service(other) as second:
            for method, path, body, status, text in CALLS:
                found = call(port, method, path, body)
                assert found[0] == status, f"{method} {path} {body}: expected {status}, found {found}"
                assert text is None or found[1] == text, f"{method} {path} {body}: expected {text!r}, found {found}"
            with ThreadPoolExecutor(16) as clients:
                answers = list(clients.map(lambda _: call(port, "POST", "/counters/shared", "1"), range(400)))
            values = sorted(int(text) for status, text in answers if status == 200)
            assert values == list(range(1, 401)), f"{400 - len(set(values))} additions were lost"
            assert call(second, "GET", "/counters") == (200, "{}"), "services share their counters"
        with service(state) as port:
            status, text = call(port, "GET", "/counters")
            wanted = {"a": -8, "b_2-c": 99999999999999999999, "shared": 400}
            assert (status, json.loads(text)) == (200, wanted), f"after kill -9: {text}"


main()
