"""Tests of the bounded capture."""

from __future__ import annotations

import io
import random

import pytest

from agentcompass.adapters.sandboxes.capture import Capture


@pytest.mark.parametrize("limit", [0, 1, 7, 100, 5000])
@pytest.mark.parametrize("size", [0, 1, 7, 14, 15, 199, 200, 201, 4000])
def test_ends_are_kept_however_the_stream_is_cut(limit: int, size: int) -> None:
    """The value depends on the bytes alone, not on the chunks in which they come."""
    draw = random.Random(size * 7919 + limit)
    data = draw.randbytes(size)
    capture = Capture(limit)
    rest = data
    while rest:
        cut = draw.randint(1, draw.choice([2, 10, 5000]))
        capture.feed(rest[:cut])
        rest = rest[cut:]

    expected = data if size <= 2 * limit else data[:limit] + data[size - limit :]
    assert expected == capture.value()
    assert size == capture.size


def test_memory_is_bounded() -> None:
    """A long stream of small chunks holds three limits at most."""
    capture = Capture(1000)
    for _ in range(10_000):
        capture.feed(b"x" * 100)
        assert len(capture._head) + len(capture._tail) <= 3100


def test_file_gets_the_whole_up_to_its_limit() -> None:
    """The file is independent of what memory keeps, and has a limit of its own."""
    file = io.BytesIO()
    capture = Capture(1, file, 7)
    for chunk in (b"abc", b"def", b"ghi", b"jkl"):
        capture.feed(chunk)

    assert b"abcdefg" == file.getvalue()
    assert (12, b"al") == (capture.size, capture.value())


def test_failing_file_is_remembered_and_left_alone() -> None:
    """The first error is kept, and the capture goes on."""

    class Full(io.BytesIO):
        writes = 0

        def write(self, data: object) -> int:
            self.writes += 1
            raise OSError(28, "No space left on device")

    file = Full()
    capture = Capture(10, file)
    capture.feed(b"abc")
    capture.feed(b"def")

    assert (1, 28) == (file.writes, capture.file_error.errno if capture.file_error else None)
    assert b"abcdef" == capture.value()
