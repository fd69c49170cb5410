"""The engine's player and pool, on virtual time, do what the world says."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from sim.agreement import agree
from sim.play import seeds
from sim.settings import draw
from sim.vloop import HORIZON, VirtualLoop

CHUNKS = 5
SHARE, MOST = 0.3, 2000  #: of the seeds are also played by the engine, which takes four times as long


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_engine_agrees_with_the_world(chunk):
    """Both tell the same events at the same times, save the same documents and end in the same state."""
    for seed in range(chunk, min(int(seeds() * SHARE), MOST), CHUNKS):
        agree(replace(draw(seed), crash_at=None))


def test_virtual_time_passes_only_while_everything_waits():
    """An hour of sleep takes no time, and timers go off at exactly their time."""
    loop = VirtualLoop()
    try:
        loop.run_until_complete(asyncio.sleep(3600))

        assert 3600.0 == loop.time()
    finally:
        loop.close()


@pytest.mark.parametrize("seconds", [None, 2 * HORIZON])
def test_virtual_time_does_not_wait_for_what_never_comes(seconds):
    """A loop on which nothing can happen any more says so."""
    loop = VirtualLoop()
    waiting = loop.create_future()
    if seconds is not None:
        loop.call_later(seconds, waiting.set_result, None)
    try:
        with pytest.raises(RuntimeError, match="nothing will ever happen"):
            loop.run_until_complete(waiting)
    finally:
        loop.close()
