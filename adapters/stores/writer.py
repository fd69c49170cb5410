"""One thread that does file work in order and reports back in batches.

Every hand-over between threads costs more than a small write, so work that is waiting is done together, and the event
loop is woken once for all of it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

BATCH = 64  #: pieces of work after which the waiting ones are told, though there is more to do


@dataclass(slots=True)
class _Job:
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]
    work: Callable[[], Any]
    error: BaseException | None = None


class Writer:
    """Does what it is given, one piece after the other."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def do(self, work: Callable[[], Any]) -> None:
        """Have *work* done in the thread and wait for it; its exception comes out here."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="agentcompass-store", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        job = _Job(loop, loop.create_future(), work)
        self._jobs.put(job)
        await job.future

    async def close(self) -> None:
        """Finish what waits and end the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            await asyncio.get_running_loop().run_in_executor(None, thread.join)

    def _run(self) -> None:
        job = self._jobs.get()
        while job is not None:
            done: list[_Job] = []
            while job is not None:
                _perform(job)
                done.append(job)
                if len(done) == BATCH:
                    break
                try:
                    job = self._jobs.get_nowait()
                except Empty:
                    break
            _report(done)
            if job is not None:
                job = self._jobs.get()


def _perform(job: _Job) -> None:
    try:
        job.work()
    except BaseException as exc:  # it belongs to whoever waits for the work
        job.error = exc


def _report(jobs: list[_Job]) -> None:
    for loop in {job.loop for job in jobs}:
        mine = [job for job in jobs if job.loop is loop]
        try:
            loop.call_soon_threadsafe(_deliver, mine)
        except RuntimeError:  # the loop has been closed: nobody waits any more
            continue


def _deliver(jobs: list[_Job]) -> None:
    for job in jobs:
        if job.future.done():  # whoever waited was cancelled
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(None)
