"""``agentcompass tasks``: what is wrong with tasks, by reading them (lint) and by trying them (check)."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentcompass.core.config.request import Choices
from agentcompass.core.errors import UsageError
from agentcompass.core.model.component import Kind
from agentcompass.core.model.task import Finding

from ..config.requests import prepare
from ..engine.evaluate import EvaluationResult, evaluate
from ..engine.host import Host
from ..engine.parameters import validated
from ..logs import attached, console
from ..terminal.reporters import terminal_reporters
from .options import given, json_object, number


def run(args: argparse.Namespace) -> int:
    """Lint or check; return 1 if a task is not as it should be."""
    if args.what is None:
        raise UsageError("tasks", "nothing is asked for", "see agentcompass tasks --help")
    findings = _lint(args.benchmark, args.path)
    if args.what == "lint":
        return _print_findings(findings, args.json)
    errors = [finding for finding in findings if finding.is_error]
    if errors:
        _print_findings(errors, False)
        return 1
    return _check(args)


def _lint(benchmark: str, path: str) -> Sequence[Finding]:
    host = Host()
    component = host.component(Kind.BENCHMARK, benchmark)
    if "tasks_dir" not in component.properties:
        raise UsageError("--benchmark", f"{benchmark!r} reads no folder of tasks", "use harbor")
    params = validated(component, {"tasks_dir": path}, f"benchmarks.{benchmark}")
    findings: Sequence[Finding] = host.build(Kind.BENCHMARK, benchmark, **params).lint()
    return findings


def _print_findings(findings: Sequence[Finding], as_json: bool) -> int:
    errors = sum(finding.is_error for finding in findings)
    if as_json:
        document = [
            {"severity": "error" if f.is_error else "warning", "where": f.where, "message": f.message} for f in findings
        ]
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        for finding in findings:
            print(f"{finding.where}: {'error' if finding.is_error else 'warning'}: {finding.message}")
        print(f"{errors} errors, {len(findings) - errors} warnings")
    return 1 if errors else 0


def _check(args: argparse.Namespace) -> int:
    """Run oracle and nop on every task, and compare."""
    solved = _scores(_run(args, "oracle"))
    idle = _scores(_run(args, "nop"))
    rows = [_row(task, solved.get(task), idle.get(task)) for task in sorted({*solved, *idle})]
    if args.json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        for row in rows:
            print(f"{'ok' if row['ok'] else 'WRONG':<6} {row['task']}  oracle {row['oracle']}, nop {row['nop']}")
    return 0 if rows and all(row["ok"] for row in rows) else 1


def _run(args: argparse.Namespace, harness: str) -> EvaluationResult:
    runtime = dict(given(results_dir=args.results_dir, progress=args.progress))
    choices = Choices(
        args.benchmark,
        harness,
        args.env,
        benchmark_params={"tasks_dir": args.path},
        environment_params=json_object(args.env_params, "--env-params"),
        execution=dict(given(task_concurrency=number(args.task_concurrency, "--task-concurrency", int))),
        runtime=runtime,
    )
    prepared = prepare(choices)
    with attached(console("ERROR", prepared.redactor)):
        return asyncio.run(evaluate(prepared, terminal_reporters(prepared.runtime.progress, sys.stderr)))


def _scores(result: EvaluationResult) -> dict[str, float | None]:
    """Return the first value of each task's first attempt, None where there is none."""
    found = {}
    for path in Path(result.paths["details"]).glob("*.json"):
        document = json.loads(path.read_text("utf-8"))
        found[document["task_id"]] = _value(document["attempts"].get("1", {}))
    return found


def _value(attempt: Mapping[str, Any]) -> float | None:
    if any(issue["severity"] == "fatal" for issue in attempt.get("issues", ())):
        return None
    return next((float(value) for value in attempt.get("metrics", {}).values()), None)


def _row(task: str, solved: float | None, idle: float | None) -> dict[str, Any]:
    """Tell whether the reference solution passes *task*, and doing nothing does not."""
    fine = solved is not None and solved >= 1 and idle is not None and idle < 1
    return {"task": task, "oracle": solved, "nop": idle, "ok": fine}
