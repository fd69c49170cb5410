"""``agentcompass run``: one evaluation, stopped properly by SIGINT and SIGTERM alike."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from typing import Any

from agentcompass.core.config.request import Choices
from agentcompass.core.model.request import Output
from agentcompass.core.runtime.effects import Stop

from ..config.requests import Prepared, prepare
from ..engine.compose import Continues
from ..engine.evaluate import EvaluationResult, evaluate
from ..engine.loops import run_alone, working_threads
from ..engine.run import Run
from ..logs import attached, console
from ..terminal.reporters import terminal_reporters
from ..terminal.result import print_result
from .options import given, json_list, json_object, number, runtime_options


def run(args: argparse.Namespace) -> int:
    """Run the evaluation that *args* describe; return the exit code."""
    prepared = prepare(choices(args), config_paths=args.config, output=Output(args.run_name, args.run_id))
    for warning in prepared.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if args.dry_run:
        from .dry_run import dry_run

        return dry_run(prepared, args.output)
    return perform(prepared, args.output)


def perform(prepared: Prepared, form: str, continues: Continues | None = None) -> int:
    """Run *prepared*, print the result as text or JSON, and return the exit code."""
    with attached(console(prepared.runtime.log_level, prepared.redactor)):
        result, caught = run_alone(_evaluate(prepared, continues))
    if form == "json":
        print(json.dumps(prepared.redactor.document(result.document()), indent=2, ensure_ascii=False))
    else:
        print_result(result, prepared.redactor)
    status = 128 + caught if caught is not None else int(result.status != "completed")
    if working_threads():  # the interpreter would wait for them at its end
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


def choices(args: argparse.Namespace) -> Choices:
    """Return what the options say, with dedicated ones over the JSON mappings."""
    execution = json_object(args.execution_params, "--execution-params")
    attempts = given(k=number(args.k, "--k", int), strategy=args.attempt_strategy)
    if attempts:
        execution["attempts"] = {**execution.get("attempts", {}), **attempts}
    execution |= given(
        task_concurrency=number(args.task_concurrency, "--task-concurrency", int),
        max_retries=number(args.max_retries, "--max-retries", int),
        retry_pattern_list=_patterns(args.retry_pattern_list),
        keep_environment=args.keep_environment,
        enabled_recipes=args.recipe,
    )
    benchmark = json_object(args.benchmark_params, "--benchmark-params")
    benchmark |= given(limit=number(args.limit, "--limit", int), sample_ids=_ids(args.sample_ids))
    benchmark |= given(allow_invalid=args.allow_invalid)
    protocol: Any = args.model_api_protocol
    if protocol.strip().startswith("["):
        protocol = json_list(protocol, "--model-api-protocol")
    return Choices(
        args.benchmark,
        args.harness,
        args.env,
        args.model,
        args.model_base_url,
        args.model_api_key,
        protocol,
        json_object(args.model_params, "--model-params"),
        benchmark,
        json_object(args.harness_params, "--harness-params"),
        json_object(args.env_params, "--env-params"),
        execution,
        _runtime(args),
        tuple(args.recipe_dir),
    )


def _runtime(args: argparse.Namespace) -> dict[str, Any]:
    reuse = None if args.reuse is None else True
    return {**runtime_options(args), **given(reuse=reuse, reuse_run_id=args.reuse or None)}


def _patterns(text: str | None) -> list[Any] | None:
    """Return the list that the option was given; ``null`` is an empty one, over whatever the files say."""
    if text is None:
        return None
    return [] if text.strip() == "null" else json_list(text, "--retry-pattern-list")


def _ids(text: str | None) -> list[Any] | None:
    if text is None:
        return None
    if text.strip().startswith("["):
        return json_list(text, "--sample-ids")
    return [name.strip() for name in text.split(",") if name.strip()]


async def _evaluate(prepared: Prepared, continues: Continues | None) -> tuple[EvaluationResult, int | None]:
    caught: list[int] = []

    def on_signal(caught_now: int, run: Run) -> None:
        if caught:
            os._exit(128 + caught_now)  # a second signal: at once, whatever is left
        caught.append(caught_now)
        name = signal.Signals(caught_now).name
        print(f"{name}: stopping and tidying up; once more exits at once", file=sys.stderr)
        run.stop.set(Stop.INTERRUPTED, f"stopped by {name}")

    def on_ready(run: Run) -> None:
        for wanted in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(wanted, on_signal, wanted, run)

    result = await evaluate(prepared, terminal_reporters(prepared.runtime.progress, sys.stderr), on_ready, continues)
    return result, caught[0] if caught else None
