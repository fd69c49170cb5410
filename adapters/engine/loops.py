"""An event loop for one piece of work, which nothing that a component leaves running can keep from ending."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any, TypeVar

log = logging.getLogger("agentcompass.engine")
T = TypeVar("T")

OBEDIENCE_SECONDS = 5.0  #: how long all that is left may take to end
_THREADS = "agentcompass-work"


def run_alone(work: Coroutine[Any, Any, T]) -> T:
    """Return what *work* returns, as `asyncio.run` does; but tasks and threads that do not end are left behind."""
    runner = asyncio.Runner()
    loop = runner.get_loop()
    name = f"{_THREADS}-{id(loop)}"
    executor = ThreadPoolExecutor(thread_name_prefix=name)
    loop.set_default_executor(executor)
    try:
        return runner.run(work)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        if _ended(loop, name):
            runner.close()
        else:
            log.error("something that a component started does not end; it is left behind")
            loop.set_exception_handler(lambda loop, context: None)  # it would tell of every task once more
            loop.close()


def working_threads(name: str = _THREADS) -> list[threading.Thread]:
    """Return the threads in which components still work, of every loop or of the one that has *name*."""
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]


def _ended(loop: asyncio.AbstractEventLoop, name: str) -> bool:
    deadline = monotonic() + OBEDIENCE_SECONDS
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=OBEDIENCE_SECONDS))
    for thread in working_threads(name):
        thread.join(max(0.0, deadline - monotonic()))
    return not working_threads(name) and all(task.done() for task in tasks)
