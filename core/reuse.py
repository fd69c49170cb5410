"""Which attempts of an earlier run stand: decided per attempt, by the retry policy of now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import retry
from .errors import UsageError
from .metrics.contract import MetricContract, MetricInvalidError, check
from .model.issue import Issue, Severity
from .model.plan import EvaluationMode, Plan
from .model.request import RunRequest
from .model.result import RunResult, Usage
from .model.reuse import Difference
from .model.task import Task
from .records.legacy import UNCLASSIFIED
from .records.reading import RecordError, attempt_plan_of, require_schema
from .records.results import ATTEMPT_SCHEMA, issue_of
from .records.run_info import SCHEMA as RUN_INFO_SCHEMA
from .records.run_info import policy_document
from .runtime.ledger import AttemptRecord

_IDENTITY = ("schema_version", "task_id", "category", "attempt")


def require_compatible(info: Mapping[str, Any], request: RunRequest, where: str) -> None:
    """Refuse a source whose attempts are not those of *request*.

    Raises:
        UsageError: another schema, benchmark or attempt plan.
    """
    try:
        require_schema(info, RUN_INFO_SCHEMA, where)
        benchmark = info["request"]["benchmark"]["id"]
        plan = attempt_plan_of(info, where)
    except (RecordError, KeyError, TypeError) as exc:
        raise UsageError("--reuse", f"{where} cannot be read: {exc}", "choose another run") from None
    if benchmark != request.benchmark.id:
        raise UsageError("--reuse", f"{where} is a run of {benchmark!r}", f"choose one of {request.benchmark.id!r}")
    wanted = request.execution.attempts
    if plan != wanted:
        problem = f"{where} has k={plan.k} and strategy {plan.strategy}, this run k={wanted.k} and {wanted.strategy}"
        raise UsageError("--reuse", problem, "use the same attempt plan")


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Difference]:
    """Return what of model, harness, environment and benchmark differs between two documents of requests."""
    found = []
    for section in ("model", "harness", "environment", "benchmark"):
        old, new = dict(_leaves(section, before.get(section))), dict(_leaves(section, now.get(section)))
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name):
                found.append(Difference(name, old.get(name), new.get(name)))
    return found


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        yield path, value
        return
    for name, inner in value.items():
        yield from _leaves(f"{path}.{name}", inner)


def saved_attempt(document: Mapping[str, Any], contract: MetricContract, where: str) -> AttemptRecord:
    """Return the final attempt that *document* holds.

    Raises:
        RecordError: it holds none of the present format; a result without `issues`, or with an `error`, is none.
    """
    require_schema(document, ATTEMPT_SCHEMA, where)
    if "issues" not in document or "error" in document:
        raise RecordError(
            where, "it has no issues" if "issues" not in document else "it has an error beside its issues"
        )
    try:
        result = RunResult(
            metrics=check(contract, document["metrics"]),
            issues=tuple(issue_of(issue) for issue in document["issues"]),
            final_answer=document["final_answer"],
            usage=Usage(**document["usage"]),
            seconds=dict(document["seconds"]),
            cancelled=document["status"] == "cancelled",
        )
        discarded = Usage(**document["discarded_usage"])
        retries = int(document["retry_count"])
    except (KeyError, TypeError, ValueError, AttributeError, MetricInvalidError) as exc:
        raise RecordError(where, f"malformed ({type(exc).__name__}: {exc})") from None
    for issue in result.issues:
        if issue.code == UNCLASSIFIED:
            raise RecordError(where, f"its failure is of a former format, which told it in words only: {issue.message}")
    saved = {key: value for key, value in document.items() if key not in _IDENTITY}
    return AttemptRecord(result, retries, None, discarded, saved)


def spent_on(document: Mapping[str, Any] | None, retries: Iterable[Mapping[str, Any]]) -> Usage:
    """Return what executions of an attempt without a result have consumed in vain: in earlier runs, as *document*
    says, and in those that *retries* replaced. What is graded again has been worth its cost.
    """
    spent = usage_of(document)
    for each in retries:
        if each.get("scope") != retry.Scope.EVALUATE.value:
            spent = spent.plus(usage_of(each.get("discarded_result")))
    return spent


def usage_of(document: Any) -> Usage:
    """Return the usage that *document* tells, as far as it can be read."""
    try:
        return Usage(**document["usage"])
    except (KeyError, TypeError):
        return Usage()


def complaint(issues: Sequence[Issue], patterns: tuple[str, ...]) -> str | None:
    """Return why *issues* call for a retry; None if they do not.

    FATAL always does, an ERROR if one of *patterns* matches, a WARNING never.
    """
    matched = retry.reason(issues, patterns)
    if matched is None:
        return None
    for issue in issues:
        if issue.severity is Severity.FATAL:
            return f"it ended with FATAL {issue.code}"
    return f"its ERROR matches the pattern {matched!r}"


def require_same(document: Mapping[str, Any], task: Task, attempt: int, plan: Plan, where: str) -> None:
    """Refuse a checkpoint that is not of this attempt, or that would be graded otherwise now.

    Raises:
        RecordError: naming what differs.
    """
    if (document.get("task_id"), document.get("attempt")) != (task.id, attempt):
        raise RecordError(where, f"it is of {document.get('task_id')!r}, attempt {document.get('attempt')}")
    mode = plan.evaluation_mode
    if mode is EvaluationMode.REUSE or plan.steps > 1:
        raise RecordError(where, "the sandbox that the agent ran in is needed, and is gone")
    if document.get("source_evaluation_mode") != mode.value:
        raise RecordError(
            where, f"it was to be graded with {document.get('source_evaluation_mode')!r}, not {mode.value!r}"
        )
    if document.get("network_policy") != policy_document(plan.evaluation_network):
        raise RecordError(where, "the network policy of the grading is another")
