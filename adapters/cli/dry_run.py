"""``run --dry-run``: checks everything and lists what would run; nothing is created."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from agentcompass.core.model.task import RejectedItem, Task
from agentcompass.core.records.run_info import plan_document, request_document
from agentcompass.core.selection import select

from ..config.requests import Prepared
from ..engine.compose import build_components


def dry_run(prepared: Prepared, form: str) -> int:
    """Print the request and its tasks as text or JSON; return the exit code."""
    request = prepared.request
    components = asyncio.run(build_components(prepared))
    loaded = components.benchmark.load_tasks()
    tasks = select(loaded.tasks, request.selection)
    declared = components.declared(prepared.request)
    plans = {task.id: plan_document(components.plan(request, declared, task)) for task in tasks}
    if form == "json":
        document = {
            "request": request_document(request),
            "tasks": [{"id": task.id, "category": task.category, "plan": plans[task.id]} for task in tasks],
            "rejected_items": [{"where": item.where, "reason": item.reason} for item in loaded.rejected],
        }
        print(json.dumps(prepared.redactor.document(document), indent=2, ensure_ascii=False))
    else:
        _print(prepared, tasks, plans, loaded.rejected)
    return 1 if loaded.rejected and not loaded.tolerated else 0


def _print(prepared: Prepared, tasks: Sequence[Task], plans: dict[str, Any], rejected: Sequence[RejectedItem]) -> None:
    request, redactor = prepared.request, prepared.redactor
    attempts = request.execution.attempts
    model = f" / {request.model.id}" if request.model else ""
    total = len(tasks) * attempts.k
    print(redactor.text(f"{request.benchmark.id} / {request.harness.id}{model} in {request.environment.id}"))
    print(f"{len(tasks)} tasks x {attempts.k} = {total} attempts, strategy {attempts.strategy.value}")
    for task in tasks:
        plan = plans[task.id]
        run, grading = plan["run_timeout_seconds"], plan["evaluation_timeout_seconds"]
        limits = f"run {_seconds(run)}, evaluation {_seconds(grading)}"
        print(redactor.text(f"  {task.id}{f' [{task.category}]' if task.category else ''}  {limits}"))
    for item in rejected:
        print(redactor.text(f"  no task: {item.where}: {item.reason}"))
    print("nothing was created")


def _seconds(value: float | None) -> str:
    return "no limit" if value is None else f"{value:g} s"
