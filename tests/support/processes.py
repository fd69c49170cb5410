"""Processes that a test started somewhere below it, found by a mark in their environment."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import uuid
from collections.abc import Callable
from time import monotonic, sleep


class Mark:
    """A variable that only one test's sandboxes have."""

    def __init__(self) -> None:
        self.value = f"mark-{uuid.uuid4().hex}"

    @property
    def option(self) -> tuple[str, str]:
        """The option that puts the mark into every command of ``host_process``."""
        return ("--env-params", json.dumps({"env_variables": {"TEST_MARK": self.value}}))

    def alive(self) -> list[int]:
        """Return the ids of living processes that carry the mark."""
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if self.value.encode() in file.read():
                        found.append(int(entry))
            except OSError:  # it has ended, or is not ours
                continue
        return found

    def kill(self) -> None:
        """End what a test has let live on purpose."""
        for process in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait for something that another process does."""
    deadline = monotonic() + seconds
    while monotonic() < deadline:
        if condition():
            return
        sleep(0.02)
    raise AssertionError("it did not happen in time")
