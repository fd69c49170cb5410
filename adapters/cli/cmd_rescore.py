"""``agentcompass rescore``: grade the saved work of a run again, without its agent, into a new run."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentcompass.core.config.layers import merge
from agentcompass.core.config.request import Choices
from agentcompass.core.errors import UsageError
from agentcompass.core.model.request import Choice, ModelSpec, Output

from ..config.requests import Prepared, prepare
from ..engine.rescoring import Regrade, rescoring
from ..stores.sources import Source
from .cmd_run import perform
from .options import given, json_object, number


def run(args: argparse.Namespace) -> int:
    """Rescore; return the exit code of the new run."""
    source = Source(args.run_dir)
    prepared = _prepared(args, source)
    regrade = Regrade(_tasks(args, source), args.only_failed)
    return perform(prepared, args.output, (source, rescoring(regrade)))


def _prepared(args: argparse.Namespace, source: Source) -> Prepared:
    """Return the request of the source with a harness that does nothing, which nothing asks to do anything."""
    try:
        saved: Mapping[str, Any] = source.request
        execution = {"attempts": saved["execution"]["attempts"], **_execution(args)}
        benchmark, harness, environment = saved["benchmark"], saved["harness"], saved["environment"]
        choices = Choices(
            benchmark["id"],
            "nop",
            args.env or environment["id"],
            benchmark_params=merge(
                benchmark.get("params", {}), json_object(args.benchmark_params, "--benchmark-params")
            ),
            environment_params=merge(
                environment.get("params", {}) if args.env in (None, environment["id"]) else {},
                json_object(args.env_params, "--env-params"),
            ),
            execution=execution,
            runtime=dict(given(results_dir=str(_results_dir(source, saved)), progress=args.progress)),
        )
    except (KeyError, TypeError) as exc:
        raise UsageError("RUN_DIR", f"{source.path} has no usable request ({exc})", "choose another run") from None
    prepared = prepare(choices, output=Output(saved.get("output", {}).get("run_name", ""), args.run_id))
    model = saved.get("model")
    request = replace(
        prepared.request,
        harness=Choice(harness["id"], harness.get("params", {})),
        model=ModelSpec(model["id"], model.get("base_url", "")) if model else None,
    )
    return replace(prepared, request=request, harness_params={}, harness_id="nop")


def _execution(args: argparse.Namespace) -> dict[str, Any]:
    return dict(
        given(
            task_concurrency=number(args.task_concurrency, "--task-concurrency", int),
            max_retries=number(args.max_retries, "--max-retries", int),
        )
    )


def _results_dir(source: Source, saved: Mapping[str, Any]) -> Any:
    """Return the results folder that the source lies in: above its id, its combination, and its group."""
    name = str(saved.get("output", {}).get("run_name", ""))
    depth = len([part for part in name.replace("\\", "/").split("/") if part.strip() not in ("", ".", "..")])
    return source.path.absolute().parents[1 + depth]


def _tasks(args: argparse.Namespace, source: Source) -> frozenset[str] | None:
    if not args.task:
        return None
    known = {task.id for task in source.tasks()}
    for name in args.task:
        if name not in known:
            raise UsageError("--task", f"{name!r} is no task of {source.path}", "name one of tasks.jsonl")
    return frozenset(args.task)
