"""``agentcompass launch``: several requests of an orchestration file, in one pool."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from agentcompass.core.records.run_info import request_document
from agentcompass.core.redaction import Redactor
from agentcompass.core.runtime.effects import Stop

from ..config.files import load
from ..config.launches import PreparedLaunch, prepare_launch
from ..engine.launch import Launch, LaunchResult, check, named
from ..engine.loops import run_alone, working_threads
from ..logs import attached, console
from ..terminal.named import request_reporters
from ..terminal.result import rows
from .install import components_of, install_missing
from .options import given, number, runtime_options

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(args: argparse.Namespace) -> int:
    """Run the orchestration; 0 only if every request completed."""
    if args.auto_install_dependencies:
        install_missing(components_of(load(Path(args.file))))
    prepared = prepare_launch(
        args.file,
        runtime={**runtime_options(args), **given(reuse=args.reuse)},
        task_concurrency=number(args.task_concurrency, "--task-concurrency", int),
        run_id=args.run_id,
        config_paths=args.config,
    )
    requests = [named(name, request) for name, request in prepared.requests]
    asyncio.run(check(requests))
    if args.dry_run:
        return _dry_run(prepared)
    runtime = requests[0].prepared.runtime
    for request in requests:
        for warning in request.prepared.warnings:
            print(f"warning: {request.name}: {warning}", file=sys.stderr)
    launch = Launch(requests, prepared.slots, lambda name: request_reporters(runtime.progress, name, sys.stderr))
    with attached(console(runtime.log_level, launch.redactor)):
        result, caught = run_alone(_execute(launch))
    _print(result, args.output, launch.redactor)
    status = 128 + caught if caught is not None else int(result.status != "completed")
    if working_threads():  # the interpreter would wait for them at its end
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


async def _execute(launch: Launch) -> tuple[LaunchResult, int | None]:
    caught: list[int] = []

    def on_signal(caught_now: int) -> None:
        if caught:
            os._exit(128 + caught_now)  # a second signal: at once, whatever is left
        caught.append(caught_now)
        name = signal.Signals(caught_now).name
        print(f"{name}: stopping and tidying up; once more exits at once", file=sys.stderr)
        launch.stop.set(Stop.INTERRUPTED, f"stopped by {name}")

    for wanted in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(wanted, on_signal, wanted)
    return await launch.execute(), caught[0] if caught else None


def _dry_run(prepared: PreparedLaunch) -> int:
    """Print the resolved orchestration, redacted."""
    requests = [
        {"name": name, **request.redactor.document(request_document(request.request))}
        for name, request in prepared.requests
    ]
    print(json.dumps({"task_concurrency": prepared.slots, "requests": requests}, indent=2, ensure_ascii=False))
    return 0


def _print(result: LaunchResult, form: str, redactor: Redactor) -> None:
    if form == "json":
        print(json.dumps(redactor.document(result.document()), indent=2, ensure_ascii=False))
        return
    for outcome in result.outcomes:
        print(f"{outcome.name}: {redactor.text(outcome.status)}")
        for name, value in rows(outcome.result) if outcome.result else [("error", outcome.error or "")]:
            print(f"  {name:<8} {redactor.text(value)}")
    print(
        f"{result.status}: {sum(o.status == 'completed' for o in result.outcomes)} of {len(result.outcomes)} completed"
    )
