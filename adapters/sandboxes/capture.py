"""Bounded capture of an output stream: both ends in memory, the true size, and optionally the text in a file."""

from __future__ import annotations

from typing import BinaryIO

from agentcompass.core.model.environment import OUTPUT_FILE_LIMIT


class Capture:
    """What is kept of one stream: its first and its last *limit* bytes.

    *file* receives the whole up to *file_limit* bytes. An error in writing it does not disturb the command: it is
    kept in `file_error`, for whoever wants the file.
    """

    def __init__(self, limit: int, file: BinaryIO | None = None, file_limit: int = OUTPUT_FILE_LIMIT) -> None:
        self.size = 0
        self.file_error: OSError | None = None
        self._limit = max(limit, 0)
        self._head = bytearray()
        self._tail = bytearray()
        self._file = file
        self._room = file_limit

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.size += len(data)
        self._write(data)
        space = self._limit - len(self._head)
        self._head += data[:space]
        if len(data) > space:
            self._tail += data[space:]
            # trimming only at twice the limit makes it one copy per byte, however small the chunks are
            if len(self._tail) > 2 * self._limit:
                del self._tail[: len(self._tail) - self._limit]

    def value(self) -> bytes:
        """Return what is kept: the whole stream, or its head followed by its tail."""
        return bytes(self._head) + bytes(self._tail[max(len(self._tail) - self._limit, 0) :])

    def _write(self, data: bytes) -> None:
        if self._file is None or self._room <= 0 or self.file_error is not None:
            return
        try:
            self._file.write(data[: self._room])
        except OSError as error:
            self.file_error = error
        self._room -= len(data)
