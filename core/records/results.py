"""Attempts and tasks as documents (`agentcompass.attempt.v3`, `agentcompass.task.v3`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from ..model.artifact import Manifest, SavedArtifact
from ..model.issue import Issue, IssuePhase, Severity
from ..model.plan import Budget, Plan
from ..model.result import RunResult, Usage
from ..model.task import Message, Task
from ..runtime.ledger import AttemptRecord, FinishedTask

ATTEMPT_SCHEMA = "agentcompass.attempt.v3"
TASK_SCHEMA = "agentcompass.task.v3"
RETRY_SCHEMA = "agentcompass.retry.v1"
SPENT_SCHEMA = "agentcompass.spent.v1"

_USAGE = tuple(field.name for field in fields(Usage))


def issue_document(issue: Issue) -> dict[str, str]:
    """Return one issue; severities and phases are the documented words."""
    return {
        "severity": issue.severity.value,
        "phase": issue.phase.value,
        "code": issue.code,
        "message": issue.message,
    }


def issue_of(document: Mapping[str, Any]) -> Issue:
    """Return the issue that *document* holds.

    Raises:
        KeyError, ValueError: it is none.
    """
    return Issue(Severity(document["severity"]), IssuePhase(document["phase"]), document["code"], document["message"])


def usage_document(usage: Usage) -> dict[str, int | float]:
    """Return what is known of *usage*."""
    return {name: value for name in _USAGE if (value := getattr(usage, name)) is not None}


def spent_document(usage: Usage) -> dict[str, Any]:
    """Return what earlier runs have consumed in vain on an attempt that is executed again."""
    return {"schema_version": SPENT_SCHEMA, "usage": usage_document(usage)}


def budget_document(budget: Budget | None) -> dict[str, Any] | None:
    """Return a budget with its source, or None for no limit."""
    return asdict(budget) if budget else None


def limits_document(plan: Plan) -> dict[str, Any]:
    """Return the limits that applied to an attempt, with their sources."""
    return {
        "run": budget_document(plan.run),
        "run_outer_seconds": plan.run_outer_seconds,
        "evaluation": budget_document(plan.evaluation),
        "runresult_collect_timeout_seconds": plan.collect_seconds,
        "build_timeout_seconds": plan.build_seconds,
        "max_retries": plan.retry.max_retries,
    }


def manifest_document(manifest: Manifest) -> dict[str, Any]:
    """Return which artifacts were looked for, and what came of each; places are below the attempt's folder."""
    return {"directory": "artifacts", "entries": [artifact_document(entry) for entry in manifest.entries]}


def artifact_document(entry: SavedArtifact) -> dict[str, Any]:
    """Return what came of one artifact."""
    return {**asdict(entry), "status": entry.status.value, "refused": list(entry.refused)}


def result_document(record: AttemptRecord) -> dict[str, Any]:
    """Return what is kept of an attempt, without its identity; the trajectory is a file of its own."""
    if record.saved is not None:  # of an earlier run, kept as it was saved there
        return dict(record.saved)
    result = record.result
    artifacts = dict(result.artifacts)
    if result.diagnostics:
        artifacts["execution_diagnostics"] = "\n".join(result.diagnostics)
    return {
        "status": result.status.value,
        "metrics": dict(result.metrics),
        "final_answer": result.final_answer,
        "trajectory": {"path": "trajectory.json"} if result.trajectory is not None else {},
        "issues": [issue_document(issue) for issue in result.issues],
        "artifacts": artifacts,
        "analysis_result": {},
        "meta": {
            "benchmark": dict(result.evidence),
            "harness": {"telemetry": dict(result.telemetry)} if result.telemetry else {},
        },
        "usage": usage_document(result.usage),
        "discarded_usage": usage_document(record.discarded),
        "seconds": dict(result.seconds),
        "killed_processes": result.killed_processes,
        **({"artifact_manifest": manifest_document(result.manifest)} if result.manifest else {}),
        "limits": limits_document(record.plan) if record.plan else {},
        "retry_count": record.retries,
    }


def planned_document(task: Task) -> dict[str, Any]:
    """Return a planned task: what a summary must know of it even if it never finishes."""
    return {"task_id": task.id, "category": task.category, "cluster": task.cluster, "digest": task_digest(task)}


def task_digest(task: Task) -> str:
    """Return what tells a task from another of its id: a SHA-256, cut to 64 bits, over what it asks and expects.

    What a benchmark keeps in `data` is not looked at. The digest is the same in every process.
    """
    content = (task.prompt, task.ground_truth, task.metadata, task.run_timeout_seconds, task.evaluation_timeout_seconds)
    try:
        text = json.dumps(content, sort_keys=True, default=_plain)
    except (TypeError, ValueError, RecursionError):  # keys of several types, a cycle
        text = repr(task.prompt)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return [value.role, value.content]
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    return type(value).__name__  # how an object is told may hold its place in memory


def attempt_document(task: Task, attempt: int, record: AttemptRecord) -> dict[str, Any]:
    """Return one attempt as a document of its own."""
    return {
        "schema_version": ATTEMPT_SCHEMA,
        "task_id": task.id,
        "category": task.category,
        "attempt": attempt,
        **result_document(record),
    }


def task_document(finished: FinishedTask, k: int, strategy: str) -> dict[str, Any]:
    """Return a finished task with all its attempts."""
    task, attempts = finished.task, finished.attempts
    return {
        "schema_version": TASK_SCHEMA,
        "task_id": task.id,
        "category": task.category,
        "cluster": task.cluster,
        "ground_truth": task.ground_truth,
        "attempt_plan": {"k": k, "strategy": strategy},
        "retry_count": sum(record.retries for record in attempts.values()),
        "retry_counts": {str(n): record.retries for n, record in attempts.items() if record.retries},
        "attempts": {str(n): result_document(record) for n, record in attempts.items()},
    }


def retry_document(task: Task, attempt: int, result: RunResult, plan: Plan | None, details: Any) -> dict[str, Any]:
    """Return an execution that was replaced by a retry."""
    return {
        "schema_version": RETRY_SCHEMA,
        "task_id": task.id,
        "category": task.category,
        "attempt": attempt,
        **details,
        "issues": [issue_document(issue) for issue in result.issues],
        "discarded_result": {
            **result_document(AttemptRecord(result, int(details["retry"]) - 1, plan)),
            "trajectory": result.trajectory or {},  # there is no other file for it
        },
    }
