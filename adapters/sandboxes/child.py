"""One child process on the event loop: started at once, its pipes kept flowing, its end noticed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from threading import Thread
from typing import IO, TYPE_CHECKING, Any

from .capture import Capture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CHUNK = 64 * 1024
_PIPE_CAPACITY = 1024 * 1024  # the most that an unprivileged process can leave waiting in a pipe


class OutputPipe:
    """Reads a pipe into a capture; once told to forget, goes on reading so that late writers neither block nor die."""

    def __init__(self, pipe: IO[bytes], capture: Capture) -> None:
        self._loop = asyncio.get_running_loop()
        self._pipe = pipe
        self._capture: Capture | None = capture
        self.ended: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(pipe.fileno(), False)
        self._loop.add_reader(pipe.fileno(), self._read)

    def _read(self) -> int:
        try:
            data = os.read(self._pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if not data:
            self.close()
        elif self._capture is not None:
            self._capture.feed(data)
        return len(data)

    def drain(self) -> None:
        """Read what is in the pipe now: a busy loop may have left bytes that were written long ago."""
        taken = 0
        while taken < _PIPE_CAPACITY and not self.ended.done():
            count = self._read()
            if not count:
                return
            taken += count

    def forget(self) -> None:
        """Drop whatever comes from now on."""
        self._capture = None

    def close(self) -> None:
        """Stop reading; closing again does nothing."""
        if self.ended.done():
            return
        self._loop.remove_reader(self._pipe.fileno())
        self._pipe.close()
        self.ended.set_result(None)


class InputPipe:
    """Writes bytes into a pipe as fast as they are taken; a reader that goes away is no error."""

    def __init__(self, pipe: IO[bytes], data: bytes) -> None:
        self._loop = asyncio.get_running_loop()
        self._pipe = pipe
        self._rest = memoryview(data)
        os.set_blocking(pipe.fileno(), False)
        self._loop.add_writer(pipe.fileno(), self._write)

    def _write(self) -> None:
        try:
            self._rest = self._rest[os.write(self._pipe.fileno(), self._rest[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:
            self._rest = self._rest[:0]
        if not self._rest:
            self.close()

    def close(self) -> None:
        """Stop writing; closing again does nothing."""
        if not self._pipe.closed:
            self._loop.remove_writer(self._pipe.fileno())
            self._pipe.close()


class Child:
    """A running command, leader of its own session.

    *stdin* may be a file, and *out* too: the command gets them as they are, and they are closed here once it has them.
    Starting is one synchronous step, so that there is no moment in which a cancellation could lose the process.
    `exited` holds the exit code as the port counts it; `done` is set when the pipes have ended too.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        stdin: bytes | IO[bytes] | None,
        out: Capture | IO[bytes],
        err: Capture,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self.done: asyncio.Future[None] = self._loop.create_future()
        self.process = subprocess.Popen(
            argv,
            bufsize=0,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE if isinstance(stdin, bytes) else stdin,
            stdout=subprocess.PIPE if isinstance(out, Capture) else out,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        pipes = ((self.process.stdout, out), (self.process.stderr, err))
        self._outputs = [OutputPipe(pipe, to) for pipe, to in pipes if pipe is not None and isinstance(to, Capture)]
        self._input = InputPipe(self.process.stdin, stdin) if self.process.stdin and isinstance(stdin, bytes) else None
        for end in (stdin, out):
            if end is not None and not isinstance(end, bytes | Capture):
                end.close()
        self._watch()
        self._parts: tuple[asyncio.Future[Any], ...] = (self.exited, *(pipe.ended for pipe in self._outputs))
        for part in self._parts:
            part.add_done_callback(self._settle)

    def forget(self) -> None:
        """Take what the pipes hold now and drop what comes later."""
        for pipe in self._outputs:
            pipe.drain()
            pipe.forget()
        if self._input is not None:
            self._input.close()

    def close(self) -> None:
        """Close the pipes."""
        self.forget()
        for pipe in self._outputs:
            pipe.close()

    def _settle(self, _: object) -> None:
        if not self.done.done() and all(part.done() for part in self._parts):
            self.done.set_result(None)

    def _watch(self) -> None:
        # not asyncio's child watchers: they differ between Python versions, and 3.11's needs a thread per process
        if sys.platform == "linux":
            try:
                fd = os.pidfd_open(self.process.pid)
            except OSError:
                pass
            else:
                self._loop.add_reader(fd, self._reap, fd)
                return
        Thread(target=self._await_exit, name="agentcompass-wait", daemon=True).start()

    def _reap(self, pidfd: int) -> None:
        if self.process.poll() is not None:
            self._loop.remove_reader(pidfd)
            os.close(pidfd)
            self._exit()

    def _await_exit(self) -> None:
        self.process.wait()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._exit)

    def _exit(self) -> None:
        code = self.process.returncode
        self.exited.set_result(code if code >= 0 else 128 - code)
