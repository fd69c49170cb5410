"""What an attempt has come to before its grading, saved so that the grading can be done later, or done again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from ..model.artifact import ArtifactStatus, Manifest, SavedArtifact
from ..model.plan import Plan
from ..model.result import HarnessResult, RunResult, Usage
from ..model.task import Message, OutputFile, PreparedTask, Task
from ..runtime.notes import Notes
from .reading import RecordError, require_schema
from .results import issue_document, issue_of, manifest_document, usage_document
from .run_info import policy_document

SCHEMA = "agentcompass.evaluation_checkpoint.v4"


def checkpoint_document(
    task: Task, attempt: int, run_id: str, plan: Plan, prepared: PreparedTask, result: RunResult
) -> dict[str, Any] | None:
    """Return the checkpoint of an attempt that is about to be graded; None if something in it is no JSON.

    The reference solution is left out: no grader needs it that did not have it in its own data.
    """
    document = {
        "schema_version": SCHEMA,
        "task_id": task.id,
        "attempt": attempt,
        "source_run_id": run_id,
        "source_evaluation_mode": plan.evaluation_mode.value,
        "run_completed": True,
        "network_policy": policy_document(plan.evaluation_network),
        "artifact_manifest": manifest_document(result.manifest) if result.manifest else None,
        "prepared_task": _prepared_document(prepared),
        "run_result": {
            "final_answer": result.final_answer,
            "trajectory": result.trajectory,
            "usage": usage_document(result.usage),
            "issues": [issue_document(issue) for issue in result.issues],
            "artifacts": dict(result.artifacts),
            "telemetry": dict(result.telemetry),
            "killed_processes": result.killed_processes,
            "seconds": dict(result.seconds),
            "diagnostics": list(result.diagnostics),
        },
    }
    try:
        text = json.dumps(document, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    same: dict[str, Any] = json.loads(text)
    return document if same == document else None


def _prepared_document(prepared: PreparedTask) -> dict[str, Any]:
    prompt: Any = prepared.prompt
    return {
        "prompt": prompt if isinstance(prompt, str) else [asdict(message) for message in prompt],
        "outputs": [asdict(output) for output in prepared.outputs],
        "workdir": prepared.workdir,
        "user": prepared.user,
        "metadata": dict(prepared.metadata),
    }


def notes_of(document: Mapping[str, Any], folder: str, where: str) -> Notes:
    """Return what is known of the attempt in *document*; its artifacts lie in *folder*.

    Raises:
        RecordError: it is no checkpoint of this schema.
    """
    require_schema(document, SCHEMA, where)
    try:
        saved = document["run_result"]
        collected = HarnessResult(
            saved["final_answer"],
            saved["trajectory"],
            Usage(**saved["usage"]),
            (),
            saved["artifacts"],
            saved["telemetry"],
        )
        return Notes(
            issues=[issue_of(issue) for issue in saved["issues"]],
            diagnostics=list(saved["diagnostics"]),
            seconds=dict(saved["seconds"]),
            collected=collected,
            prepared=_prepared(document["prepared_task"]),
            killed=saved["killed_processes"],
            manifest=_manifest(document["artifact_manifest"], folder),
            inferred=document["run_completed"] is True,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise RecordError(where, f"malformed ({type(exc).__name__}: {exc})") from None


def _prepared(document: Mapping[str, Any]) -> PreparedTask:
    prompt = document["prompt"]
    return PreparedTask(
        prompt if isinstance(prompt, str) else tuple(Message(**message) for message in prompt),
        tuple(OutputFile(**output) for output in document["outputs"]),
        document["workdir"],
        document["user"],
        None,
        document["metadata"],
    )


def _manifest(document: Mapping[str, Any] | None, folder: str) -> Manifest | None:
    if document is None:
        return None
    entries = [SavedArtifact(**{**entry, "refused": tuple(entry["refused"])}) for entry in document["entries"]]
    return Manifest(folder, tuple(replace(entry, status=ArtifactStatus(entry.status)) for entry in entries))
