"""The two-way stream of a command in a container: frames told apart, input fed meanwhile, nothing held up."""

from __future__ import annotations

import os
import selectors
import socket
import ssl
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .capture import Capture

_CHUNK = 64 * 1024
_MOST = 16 * _CHUNK  # bytes in one go; then others get their turn
_HEADER = struct.Struct(">BxxxL")
_STDERR = 2
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Frames:
    """Takes the stream apart as it comes and gives each part to its capture; holds no more than a header."""

    def __init__(self, out: Capture, err: Capture) -> None:
        self._captures: tuple[Capture, Capture] | None = (out, err)
        self._header = b""
        self._left = 0
        self._is_err = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        view = memoryview(data)
        while view:
            if not self._left:
                view = self._begin(view)
                continue
            part, view = view[: self._left], view[self._left :]
            self._left -= len(part)
            if self._captures is not None:
                self._captures[self._is_err].feed(bytes(part))

    def forget(self) -> None:
        """Drop whatever comes from now on."""
        self._captures = None

    def _begin(self, view: memoryview) -> memoryview:
        missing = _HEADER.size - len(self._header)
        self._header += bytes(view[:missing])
        if len(self._header) == _HEADER.size:
            kind, self._left = _HEADER.unpack(self._header)
            self._is_err = kind == _STDERR
            self._header = b""
        return view[missing:]


class Stream:
    """The connection of one command, used by one thread; `wake` may be called by any.

    *raw* is what the client library gives for a started command. `ended` says that the engine has closed it.
    """

    def __init__(self, raw: Any, frames: Frames, stdin: bytes | None) -> None:
        self._raw = raw
        self._socket: Any = getattr(raw, "_sock", raw)
        self._socket.setblocking(False)
        self._frames = frames
        self._rest = memoryview(stdin or b"")
        self._feeds = stdin is not None
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._alarm, self._alarmed = socket.socketpair()
        self._alarm.setblocking(False)
        self._alarmed.setblocking(False)
        self._selector.register(self._alarmed, selectors.EVENT_READ)
        self._is_full = False  # there may be more to read, even if the socket (of an encrypted stream) does not say so
        self.ended = False
        self.has_output = False
        self._ahead()
        self._write()

    def wake(self) -> None:
        """End a `wait` at once."""
        with suppress(OSError):
            self._alarm.send(b"!")

    def wait(self, seconds: float | None, others: Sequence[int] = ()) -> bool:
        """Keep the stream flowing until something came or *seconds* have gone; tell whether one of *others* is ready.

        *others* are descriptors that are waited for as well.
        """
        for other in others:
            self._selector.register(other, selectors.EVENT_READ)
        try:
            ready = {key.fd for key, _ in self._selector.select(0 if self._is_full else seconds)}
        finally:
            for other in others:
                self._selector.unregister(other)
        if self._alarmed.fileno() in ready:
            with suppress(BlockingIOError):
                self._alarmed.recv(_CHUNK)
        if self._is_full or self._socket.fileno() in ready:
            self._read()
            self._write()
        return any(other in ready for other in others)

    def drain(self, limit: int) -> None:
        """Take what has arrived, up to *limit* bytes."""
        while limit > 0 and not self.ended:
            count = self._read()
            if not count:
                return
            limit -= count

    def close(self) -> None:
        """Close the connection; the command lives on."""
        self.ended = True
        self._selector.close()
        self._alarm.close()
        self._alarmed.close()
        for part in (getattr(self._raw, "_response", None), self._raw, self._socket):
            if part is not None:
                with suppress(OSError):
                    part.close()

    def _ahead(self) -> None:
        """Take what was read together with the head of the answer: it is in no socket any more."""
        try:
            reader = self._raw._response.raw._fp.fp
            with suppress(*_NOT_NOW):
                while data := reader.peek(1):
                    self._take(reader.read(len(data)))
        except (AttributeError, OSError):
            return

    def _read(self) -> int:
        total = 0
        self._is_full = True
        while total < _MOST:
            try:
                data = self._socket.recv(_CHUNK)
            except _NOT_NOW:
                self._is_full = False
                break
            except OSError:
                data = b""
            if not data:
                self._is_full = False
                self._end()
                break
            self._take(data)
            total += len(data)
        return total

    def _take(self, data: bytes) -> None:
        self.has_output = True
        self._frames.feed(data)

    def _end(self) -> None:
        self.ended = True
        self._selector.unregister(self._socket)

    def _write(self) -> None:
        """Send as much of the input as is taken, and its end after it; whoever reads no more is no error."""
        if not self._feeds or self.ended:
            return
        try:
            while self._rest:
                self._rest = self._rest[self._socket.send(self._rest[:_CHUNK]) :]
        except _NOT_NOW:
            self._selector.modify(self._socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
            return
        except OSError:
            self._rest = self._rest[:0]
        self._feeds = False
        self._selector.modify(self._socket, selectors.EVENT_READ)
        if not isinstance(self._socket, ssl.SSLSocket):  # which could not read after it
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)


def drain_pipes(pipes: Sequence[int], stop: int) -> None:
    """Read *pipes* to their ends, or until *stop* is readable, and close them: what writes to them must not block."""
    with selectors.DefaultSelector() as selector:
        selector.register(stop, selectors.EVENT_READ)
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while len(selector.get_map()) > 1:
            ready = [key.fd for key, _ in selector.select()]
            if stop in ready:
                break
            for pipe in ready:
                with suppress(BlockingIOError):
                    if not os.read(pipe, _CHUNK):
                        selector.unregister(pipe)
    for pipe in pipes:
        os.close(pipe)
