"""Several requests from Python: an orchestration file, or a document like one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from agentcompass.adapters.config.launches import PreparedLaunch, prepare_launch
from agentcompass.adapters.engine.launch import Launch, LaunchResult, check, named
from agentcompass.adapters.logs import attached, console
from agentcompass.adapters.terminal.named import request_reporters
from agentcompass.ports.reporter import Reporter

from .api import _wait

Source = str | os.PathLike[str] | Mapping[str, Any]


async def async_launch(
    orchestration: Source,
    *,
    task_concurrency: int | None = None,
    run_id: str | None = None,
    runtime: Mapping[str, Any] | None = None,
    config_path: Sequence[str | os.PathLike[str]] = (),
    reporters: Callable[[str], Sequence[Reporter]] | None = None,
) -> LaunchResult:
    """Run all requests of *orchestration*, a file or what such a file holds; more than one can run at a time.

    *runtime* lies over the file's section of that name; *reporters* makes the observers of the request with a name.

    Raises:
        UsageError: something about it is wrong; nothing has been created. A request that fails later is told by its
            outcome alone.
    """
    prepared: PreparedLaunch = prepare_launch(
        orchestration,
        runtime=runtime,
        task_concurrency=task_concurrency,
        run_id=run_id,
        config_paths=[os.fspath(path) for path in config_path],
    )
    requests = [named(name, request) for name, request in prepared.requests]
    await check(requests)
    settings = requests[0].prepared.runtime
    launch_ = Launch(
        requests, prepared.slots, reporters or (lambda name: request_reporters(settings.progress, name, sys.stderr))
    )
    with ExitStack() as stack:
        stack.enter_context(attached(console(settings.log_level, launch_.redactor)))
        return await launch_.execute()


def launch(orchestration: Source, **arguments: Any) -> LaunchResult:
    """Run all requests and wait for them, also inside a running event loop; see `async_launch`."""
    return _wait(async_launch(orchestration, **arguments))
