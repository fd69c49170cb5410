"""Results of the formats v1 and v2 as documents of the present one; nothing is concluded from free text.

What such a record holds as structure is taken over: metrics, issues, an error that is an object with the fields of an
issue. A failure that is told in words only has no classification: it becomes an issue with the code `UNCLASSIFIED` and
loses its values, so that it can be looked at, counts as unavailable, and is executed again when the run is continued.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ..config.fields import count, text
from ..errors import UsageError
from ..metrics.contract import PRIMARY_IDS, MetricContract, MetricKind, MetricSpec
from ..metrics.observation import TaskKey
from ..model.issue import Issue, IssuePhase, Severity
from ..model.request import Strategy
from ..model.result import RunResult, Usage
from ..runtime.ledger import AttemptRecord
from .reading import RecordError
from .results import TASK_SCHEMA, issue_of, result_document
from .run_info import SCHEMA as RUN_INFO_SCHEMA
from .run_info import contract_document

UNCLASSIFIED = "classification_unknown"  #: the code of a failure that an old record tells in words only

_RUN_INFO = ("agentcompass.run_info.v1", "agentcompass.run_info.v2")
_TASK = ("agentcompass.task.v1", "agentcompass.task.v2", None)  # v1 had no name for it
_ENDED_WELL = ("", "completed", "ok", "success")
_CUT_SHORT = ("cancelled", "interrupted")
_USAGE = tuple(part.name for part in fields(Usage))


def is_old(run_info: Mapping[str, Any]) -> bool:
    """Tell whether a saved run is of a former format."""
    return run_info.get("schema_version") in _RUN_INFO


def current_task(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a task of a former format as one of the present.

    Raises:
        RecordError: it is neither, or malformed.
    """
    schema = document.get("schema_version")
    if schema == TASK_SCHEMA:
        return dict(document)
    if schema not in _TASK:
        raise RecordError(where, f"its schema is {schema!r}, and v1, v2 and v3 of 'agentcompass.task' are read")
    try:
        attempts = _attempts(document)
        retries = document.get("retry_counts") or {}
        return {
            "schema_version": TASK_SCHEMA,
            "task_id": text(document["task_id"], "task_id"),
            "category": _text(document.get("category")),
            "cluster": None,
            "ground_truth": document.get("ground_truth"),
            "attempts": {
                str(int(number)): _attempt(attempt, retries.get(number, 0), schema or "agentcompass.task.v1")
                for number, attempt in attempts.items()
            },
        }
    except (AttributeError, KeyError, TypeError, UsageError, ValueError) as exc:
        raise RecordError(where, f"malformed ({type(exc).__name__}: {exc})") from None


def _attempts(document: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the attempts; a task without them is its only one, and an error of the task is theirs who have none."""
    attempts = document.get("attempts")
    if not attempts:
        return {"1": document}
    error = document.get("error")
    if not error or any(attempt.get("error") or attempt.get("issues") for attempt in attempts.values()):
        return dict(attempts)
    return {number: {**attempt, "error": error} for number, attempt in attempts.items()}


def _attempt(attempt: Mapping[str, Any], retries: Any, schema: str) -> dict[str, Any]:
    values = _values(attempt)
    issues = _issues(attempt, bool(values))
    meta, usage, seconds = (attempt.get(name) or {} for name in ("meta", "usage", "seconds"))
    trajectory = attempt.get("trajectory")
    result = RunResult(
        metrics={} if any(issue.code == UNCLASSIFIED for issue in issues) else values,
        issues=issues,
        final_answer=attempt.get("final_answer"),
        usage=Usage(**{name: usage[name] for name in _USAGE if _is_number(usage.get(name))}),
        artifacts={**(attempt.get("artifacts") or {}), **({"trajectory": trajectory} if trajectory else {})},
        evidence={**(meta.get("benchmark") or {}), "converted_from": schema},
        seconds={name: value for name, value in seconds.items() if _is_number(value)},
        cancelled=attempt.get("status") in _CUT_SHORT,
    )
    return result_document(AttemptRecord(result, count(0)(attempt.get("retry_count", retries), "retry_count"), None))


def _values(attempt: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics; the oldest records hold the primary one beside everything else."""
    values = attempt.get("metrics")
    if values is not None:
        return dict(values)
    return {name: attempt[name] for name in PRIMARY_IDS.values() if isinstance(attempt.get(name), bool | int | float)}


def _issues(attempt: Mapping[str, Any], is_graded: bool) -> tuple[Issue, ...]:
    """Return what structure tells of the failures, else one that says that nothing does."""
    error, meta = attempt.get("error"), attempt.get("meta") or {}
    if issues := attempt.get("issues"):
        return tuple(issue_of(issue) for issue in issues)
    if isinstance(error, Mapping) and {"severity", "phase", "code", "message"} <= error.keys():
        return (issue_of(error),)
    status = str(attempt.get("status") or meta.get("status") or "")
    if not error and status in _ENDED_WELL and is_graded:
        return ()
    words = error or (f"it ended as {status!r}" if status else "it has neither a value nor a reason")
    return (Issue(Severity.ERROR, IssuePhase.RUN, UNCLASSIFIED, str(words)),)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass
class OldTasks:
    """What the task records of an old run tell of the run as a whole: its tasks, and what was measured."""

    tasks: dict[str, TaskKey] = field(default_factory=dict)
    _kinds: dict[str, MetricKind] = field(default_factory=dict)

    def add(self, task: Mapping[str, Any]) -> None:
        """Take in a task, as `current_task` returns it."""
        self.tasks[task["task_id"]] = TaskKey(task["task_id"], task["category"])
        for attempt in task["attempts"].values():
            for name, value in attempt["metrics"].items():
                kind = MetricKind.BINARY_SUCCESS if isinstance(value, bool) else MetricKind.SCALAR
                self._kinds.setdefault(str(name), kind)

    def contract(self) -> MetricContract | None:
        """Return what was measured, or None if no task has a value of a primary metric."""
        primary = next((n for kind, n in PRIMARY_IDS.items() if self._kinds.get(n) == kind), None)
        if primary is None:
            return None
        others = tuple(MetricSpec(name, kind) for name, kind in self._kinds.items() if name != primary)
        return MetricContract(MetricSpec(primary, self._kinds[primary]), others)


def current_run_info(run_info: Mapping[str, Any], params: Mapping[str, Any], known: OldTasks) -> dict[str, Any]:
    """Return the record of an old run as one of the present; *params* (params.json) fills in what its request lacks."""
    saved: Mapping[str, Any] = run_info.get("request") or {}
    request = {name: _filled(saved.get(name), params.get(name)) for name in {**params, **saved}}
    chosen = (request.get("benchmark") or {}).get("params") or {}
    attempts = {"k": chosen.get("k", 1), "strategy": chosen.get("attempt_strategy", Strategy.PASS.value)}
    request["execution"] = {"attempts": attempts, **(request.get("execution") or {})}
    current = {**run_info, "schema_version": RUN_INFO_SCHEMA, "request": request}
    if (contract := known.contract()) is not None:
        current["metric_contract"] = contract_document(contract)
    return current


def _filled(saved: Any, spare: Any) -> Any:
    """Return *saved*, with what *spare* has beyond it if both are objects."""
    if isinstance(saved, Mapping) and isinstance(spare, Mapping):
        return {**spare, **saved}
    return spare if saved is None else saved


def planned(run_info: Mapping[str, Any], known: OldTasks) -> list[TaskKey]:
    """Return the tasks of an old run: those whose plans it names, in that order, and those that it has records of."""
    plans = run_info.get("resolved_execution_plans")
    names = dict.fromkeys([*(plans if isinstance(plans, Mapping) else ()), *known.tasks])
    return [known.tasks.get(name, TaskKey(name)) for name in names]
