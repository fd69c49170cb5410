"""One command in a container, from its start to its end, or to that of its whole tree, in a thread of its own."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, BinaryIO

from agentcompass.core.errors import SandboxError

from .capture import Capture
from .docker_client import engine_errors
from .docker_stream import Frames, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .docker_reach import Reach

_FIRST_LOOK = 0.05  # seconds: most commands have ended before it, and cost no call more
_LONGEST_PAUSE = 1.0  # between looks, where no descriptor tells the end
_START_SECONDS = 60.0  # for the engine to start a command
_GRACE = 0.2  # seconds that the streams get to end after the command, before what comes later is dropped
_LONGEST_GRACE = 1.0  # while there is something to read
_CODE_SECONDS = 20.0  # for the engine to tell an exit code; it is late after commands that left something behind
_PIPE_CAPACITY = 1024 * 1024
_ARGUMENT_LIMIT = 128 * 1024  # bytes of one argument, of every Linux
_REFUSED = "OCI runtime "  # how the engine begins to say why a command did not start; it says so on stdout
_MEASURED = 'head -c "$0" | "$@"'
_PAUSED = "paused container"
_PAUSE_SECONDS = 0.02
_TRIES = 20  # to start a command in a container that is halted for the moment of a kill


@dataclass(frozen=True)
class Order:
    """A command: what to run in which container, how long, and how much of its output to keep.

    *branch* is the mark of its processes, *file* gets the whole of stdout. *remark* returns what the sandbox itself
    has to say to the exit code, for stderr.
    """

    container: str
    argv: Sequence[str]
    branch: str
    cwd: str
    env: Mapping[str, str]
    user: str | None
    stdin: bytes | None
    timeout: float | None
    output_limit: int
    file: BinaryIO | None
    remark: Callable[[int | None], str]


class Command:
    """Runs an order in the thread that calls `run`; any other may `cancel` it.

    The time limit counts from when the command was seen to have started, which the engine takes some hundredths of a
    second for.
    """

    def __init__(self, api: Any, reach: Reach, order: Order) -> None:
        self._api = api
        self._reach = reach
        self._order = order
        self._id = ""
        self._stream: Stream | None = None
        self.out = self.err = Capture(0)
        self._clear()
        self._lock = Lock()
        self._cancelled = Event()
        self._root = 0  # the command's first process, as the engine numbers it
        self._watch: int | None = None
        self._started: float | None = None

    def cancel(self) -> None:
        """End the command and its tree."""
        self._cancelled.set()
        with self._lock:
            if self._stream is not None:
                self._stream.wake()

    def run(self, ended: Callable[[int | None], None]) -> None:
        """Run the command, call *ended* with its exit code (None: killed), and keep its streams flowing after it."""
        if (problem := _unstartable(self._order.argv)) is not None:
            self.err.feed(f"cannot start the command: {problem}\n".encode())
            ended(126)
            return
        try:
            with engine_errors("run a command"):
                code = self._attempt()
            self.err.feed(self._order.remark(code).encode())
            ended(code)
            self._linger()
        finally:
            self._close()

    def _attempt(self) -> int | None:
        for _ in range(_TRIES):
            self._start()
            if self._stream is None or self._attend():
                return None
            code, refusal = self._outcome()
            if _PAUSED not in refusal:
                break
            self._close()
            time.sleep(_PAUSE_SECONDS)
        if refusal:
            self.err.feed(f"cannot start the command: {refusal}\n".encode())
        return code

    def _clear(self) -> None:
        """Begin with no output."""
        file = self._order.file
        if file is not None and self.out.size:
            file.seek(0)
            file.truncate()
        self.out, self.err = Capture(self._order.output_limit, file), Capture(self._order.output_limit)
        self._frames = Frames(self.out, self.err)

    def _start(self) -> None:
        """Start the command, unless it was cancelled before."""
        order = self._order
        argv, stdin = list(order.argv), order.stdin
        if stdin is not None and self._api.base_url.startswith("https:"):
            # an encrypted connection has no end of its own for the input: there its length tells where it is
            argv = ["/bin/sh", "-c", _MEASURED, str(len(stdin)), *argv]
        made = self._api.exec_create(
            order.container,
            argv,
            stdin=stdin is not None,
            environment=dict(order.env),
            workdir=order.cwd,
            user=order.user or "",
        )
        self._id = made["Id"]
        if self._cancelled.is_set():
            return
        raw = self._api.exec_start(self._id, socket=True)
        with self._lock:
            self._stream = Stream(raw, self._frames, stdin)

    def _attend(self) -> bool:
        """Wait for the end of the command; at its limit, or when cancelled, kill its tree and return True."""
        assert self._stream is not None
        began, pause = time.monotonic(), _FIRST_LOOK
        look = began + pause
        while not self._stream.ended:
            now = time.monotonic()
            due = self._due()
            if self._has_started() and (self._cancelled.is_set() or now >= due):
                self._kill()
                return True
            if now - began > _START_SECONDS and not self._has_started():
                raise SandboxError(f"docker did not start a command within {_START_SECONDS:g} s")
            if now >= look or (self._cancelled.is_set() and not self._has_started()):
                if not self._look():
                    break
                pause = min(pause * 1.5, _LONGEST_PAUSE) if self._has_started() else _FIRST_LOOK
                look = time.monotonic() + pause if self._watch is None else float("inf")
            wait = max(min(look, self._due()) - time.monotonic(), 0)
            if self._cancelled.is_set():
                wait = min(wait, 0.01)
            others = () if self._watch is None else (self._watch,)
            if self._stream.wait(wait if wait != float("inf") else None, others):
                break
        self._settle()
        return False

    def _has_started(self) -> bool:
        assert self._stream is not None
        if self._started is None and (self._root or self._stream.has_output):
            self._started = time.monotonic()
        return self._started is not None

    def _due(self) -> float:
        """Return when the command's time is up."""
        if self._order.timeout is None or not self._has_started():
            return float("inf")
        assert self._started is not None
        return self._started + self._order.timeout

    def _look(self) -> bool:
        """Ask the engine whether the command runs, and learn its first process if there is one."""
        facts = self._api.exec_inspect(self._id)
        if facts["ExitCode"] is not None and not facts["Running"]:
            return False
        self._root = facts["Pid"] or 0
        if self._root and self._watch is None:
            self._watch = self._reach.watch(self._root)
        return True

    def _kill(self) -> None:
        """Kill the tree, and take what it had written: an engine that cannot pass it on notices no end."""
        stream = self._stream
        assert stream is not None
        failures: list[BaseException] = []
        killed = Event()

        def kill() -> None:
            try:
                self._reach.kill(self._order.branch)
            except BaseException as error:  # noqa: BLE001, RUF100  (raised below, in the thread that waits)
                failures.append(error)
            killed.set()
            stream.wake()

        killer = Thread(target=kill, name="agentcompass-kill", daemon=True)
        killer.start()
        while not killed.is_set():
            stream.wait(_LONGEST_PAUSE)
        killer.join()
        if failures:
            raise failures[0]
        self._settle()

    def _settle(self) -> None:
        """Take what comes in the moments after the end."""
        assert self._stream is not None
        now = time.monotonic()
        last, quiet = now + _LONGEST_GRACE, now + _GRACE
        while not self._stream.ended and now < quiet:
            before = self.out.size + self.err.size
            self._stream.wait(quiet - now)
            now = time.monotonic()
            if self.out.size + self.err.size > before:
                quiet = min(max(quiet, now + _GRACE / 4), last)
        self._stream.drain(_PIPE_CAPACITY)

    def _outcome(self) -> tuple[int, str]:
        """Return the exit code and, when the command did not start, why."""
        deadline, pause = time.monotonic() + _CODE_SECONDS, 0.005
        while True:
            facts = self._api.exec_inspect(self._id)
            if facts["ExitCode"] is not None:
                break
            if time.monotonic() > deadline:
                raise SandboxError(f"docker does not tell the exit code of a command within {_CODE_SECONDS:g} s")
            self._idle(pause)
            pause = min(pause * 2, 0.2)
        code = int(facts["ExitCode"])
        if code not in (126, 127) or facts["Pid"]:
            return code, ""
        said = self.out.value().decode(errors="replace").strip()
        self._clear()
        reason = said.removeprefix(_REFUSED).rpartition("container process: ")[2].removesuffix(": unknown")
        is_missing = "chdir" not in said and ("not found" in said or "no such file" in said)
        return 127 if is_missing else 126, reason or "the engine does not say why"

    def _idle(self, seconds: float) -> None:
        """Wait, with the stream flowing: an engine that cannot pass on what comes is late with all it has to tell."""
        assert self._stream is not None
        self._frames.forget()
        if self._stream.ended:
            time.sleep(seconds)
        else:
            self._stream.wait(seconds)

    def _linger(self) -> None:
        """Read and drop what processes in the background still write, so that they neither block nor die."""
        stream = self._stream
        if stream is None or stream.ended:
            return
        self._frames.forget()
        pipes = list(self._reach.held_pipes(self._order.branch, self._root))
        try:
            while (pipes or not stream.ended) and not self._cancelled.is_set():
                stream.wait(None, pipes)
                for pipe in list(pipes):
                    if _is_at_its_end(pipe):
                        pipes.remove(pipe)
                        os.close(pipe)
        finally:
            for pipe in pipes:
                os.close(pipe)

    def _close(self) -> None:
        with self._lock:
            stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
        if self._watch is not None:
            os.close(self._watch)
            self._watch = None
        self._root, self._started = 0, None


def _unstartable(argv: Sequence[str]) -> str | None:
    """Say why no kernel would start *argv*; the engine's own words for it differ, as do its exit codes."""
    if not argv or not argv[0]:
        return "it is empty"
    if any("\0" in word for word in argv):
        return "it holds a null byte"
    if any(len(word.encode(errors="surrogateescape")) >= _ARGUMENT_LIMIT for word in argv):
        return "Argument list too long"
    return None


def _is_at_its_end(pipe: int) -> bool:
    """Read what is in *pipe* and drop it; tell whether nobody can write to it any more."""
    with suppress(BlockingIOError):
        while data := os.read(pipe, 64 * 1024):
            del data
        return True
    return False
