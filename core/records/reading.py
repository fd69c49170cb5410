"""Saved documents read back as values; what is malformed is refused with its place, and costs only itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..config.fields import count
from ..errors import AgentCompassError, UsageError
from ..metrics.contract import MetricContract, MetricInvalidError, MetricKind, MetricSpec, check
from ..metrics.observation import Observation, TaskKey
from ..model.issue import worst
from ..model.request import AttemptPlan, Strategy
from ..model.result import Usage
from .results import TASK_SCHEMA, issue_of
from .run_info import SCHEMA as RUN_INFO_SCHEMA


class RecordError(AgentCompassError):
    """A saved document is not what it should be; *where* names the document, *problem* what is wrong with it."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where, self.problem = where, problem


def require_schema(document: Mapping[str, Any], wanted: str, where: str) -> None:
    """Refuse a document of another schema.

    Raises:
        RecordError: it has another schema, or none.
    """
    found = document.get("schema_version")
    if found != wanted:
        raise RecordError(where, f"its schema is {found!r}, and {wanted!r} is needed")


def planned_task(document: Mapping[str, Any], where: str) -> TaskKey:
    """Return a line of the list of planned tasks.

    Raises:
        RecordError: it names no task.
    """
    name, category, cluster = (document.get(key) for key in ("task_id", "category", "cluster"))
    if not isinstance(name, str):
        raise RecordError(where, "it has no task_id")
    if not isinstance(category, str | None) or not isinstance(cluster, str | None):
        raise RecordError(where, f"the category {category!r} or the cluster {cluster!r} is no text")
    return TaskKey(name, category, cluster)


def contract_of(run_info: Mapping[str, Any], where: str) -> MetricContract:
    """Return what the benchmark of a saved run measures.

    Raises:
        RecordError: the record does not tell.
    """
    require_schema(run_info, RUN_INFO_SCHEMA, where)
    if "metric_contract" not in run_info:
        raise RecordError(where, "it does not tell what was measured, and nor do its tasks")
    try:
        saved = run_info["metric_contract"]
        return MetricContract(_spec(saved["primary"]), tuple(_spec(spec) for spec in saved["auxiliary"]))
    except (AgentCompassError, KeyError, TypeError, ValueError) as exc:
        raise RecordError(where, f"metric_contract is malformed ({exc})") from None


def _spec(document: Mapping[str, Any]) -> MetricSpec:
    return MetricSpec(**{**document, "kind": MetricKind(document["kind"])})


def attempt_plan_of(run_info: Mapping[str, Any], where: str) -> AttemptPlan:
    """Return how many attempts a saved run made, and how they become a value.

    Raises:
        RecordError: the record does not tell.
    """
    try:
        saved = run_info["request"]["execution"]["attempts"]
        return AttemptPlan(count(1)(saved["k"], "k"), Strategy(saved["strategy"]))
    except (KeyError, TypeError, UsageError, ValueError) as exc:
        raise RecordError(where, f"request.execution.attempts is malformed ({exc})") from None


def observations_of(document: Mapping[str, Any], contract: MetricContract, where: str) -> list[Observation]:
    """Return an observation for every attempt of a saved task.

    Raises:
        RecordError: the document is no task of this schema; one without `issues`, or with an `error`, is none either.
    """
    require_schema(document, TASK_SCHEMA, where)
    try:
        return [
            _observation(document["task_id"], int(number), attempt, contract, f"{where}: attempt {number}")
            for number, attempt in document["attempts"].items()
        ]
    except (AttributeError, KeyError, TypeError, UsageError, ValueError) as exc:
        raise RecordError(where, f"malformed ({type(exc).__name__}: {exc})") from None


def _observation(
    task_id: str, number: int, attempt: Mapping[str, Any], contract: MetricContract, where: str
) -> Observation:
    if "issues" not in attempt:
        raise RecordError(where, "it has no issues")
    if "error" in attempt:
        raise RecordError(where, "it has an error beside its issues")
    try:
        metrics = check(contract, attempt["metrics"])
    except MetricInvalidError as exc:
        raise RecordError(where, str(exc)) from None
    issues = [issue_of(issue) for issue in attempt["issues"]]
    seconds = attempt.get("seconds") or {}
    return Observation(
        task_id,
        number,
        metrics,
        worst(issues),
        count(0)(attempt["retry_count"], "retry_count"),
        Usage(**attempt.get("usage", {})),
        round(sum(seconds.values()), 6) if seconds else None,
        Usage(**attempt.get("discarded_usage", {})),
    )
