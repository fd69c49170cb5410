"""Saved documents read back as values, or refused with their place."""

from __future__ import annotations

from copy import deepcopy

import pytest

from agentcompass.core.metrics.contract import MetricKind, MetricSpec, binary_contract
from agentcompass.core.metrics.observation import Observation, TaskKey
from agentcompass.core.model.issue import Issue, IssuePhase, Severity
from agentcompass.core.model.request import AttemptPlan, Strategy
from agentcompass.core.model.result import RunResult, Usage
from agentcompass.core.model.task import Task
from agentcompass.core.records.reading import (
    RecordError,
    attempt_plan_of,
    contract_of,
    observations_of,
    planned_task,
    require_schema,
)
from agentcompass.core.records.results import planned_document, task_document
from agentcompass.core.records.run_info import SCHEMA, contract_document
from agentcompass.core.runtime.ledger import AttemptRecord, FinishedTask

CONTRACT = binary_contract(MetricSpec("length", MetricKind.SCALAR, minimum=0.0))
ISSUE = Issue(Severity.ERROR, IssuePhase.RUN, "model_timeout", "late")
RESULTS = {
    1: AttemptRecord(
        RunResult(
            {"correct": True, "length": 3}, usage=Usage(5, cost_usd=0.5), seconds={"plan": 0.25, "evaluate": 1.5}
        ),
        2,
        None,
    ),
    2: AttemptRecord(RunResult({}, (ISSUE,)), 0, None),
}
TASK = task_document(FinishedTask(Task("t"), 0, 1, RESULTS), 2, "avg")
INFO = {
    "schema_version": SCHEMA,
    "metric_contract": contract_document(CONTRACT),
    "request": {"execution": {"attempts": {"k": 2, "strategy": "avg"}}},
}


def test_a_saved_task_gives_its_observations():
    """What the run counted is what a summary counts."""
    assert [
        Observation("t", 1, {"correct": True, "length": 3}, None, 2, Usage(5, cost_usd=0.5), 1.75),
        Observation("t", 2, {}, Severity.ERROR, 0, Usage(), None),
    ] == observations_of(TASK, CONTRACT, "here")


def test_a_saved_run_tells_its_contract_and_plan():
    """A summary needs the benchmark no more."""
    assert CONTRACT == contract_of(INFO, "here")
    assert AttemptPlan(2, Strategy.AVG) == attempt_plan_of(INFO, "here")
    assert TaskKey("t", "c", "k") == planned_task(planned_document(Task("t", category="c", cluster="k")), "here")


def _spoiled(document, path, value):
    spoiled = deepcopy(document)
    target = spoiled
    for step in path[:-1]:
        target = target[step]
    if value is KeyError:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    return spoiled


@pytest.mark.seed("RE-09")
@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("schema_version",), "agentcompass.task.v2", "its schema is 'agentcompass.task.v2'"),
        (("schema_version",), KeyError, "its schema is None"),
        (("attempts",), KeyError, "malformed"),
        (("attempts",), [], "malformed"),
        (("attempts", "one"), {}, "malformed"),
        (("attempts", "1", "issues"), KeyError, "attempt 1: it has no issues"),
        (("attempts", "1", "issues"), None, "malformed"),
        (("attempts", "1", "issues"), ["failed"], "malformed"),
        (("attempts", "1", "issues"), [{"severity": "bad", "phase": "run", "code": "c", "message": "m"}], "malformed"),
        (("attempts", "1", "error"), "failed", "attempt 1: it has an error beside its issues"),
        (("attempts", "1", "error"), None, "attempt 1: it has an error beside its issues"),
        (("attempts", "1", "metrics"), {"correct": "yes"}, "attempt 1: metric 'correct'"),
        (("attempts", "1", "metrics"), {"length": float("nan")}, "attempt 1: metric 'length'"),
        (("attempts", "1", "metrics"), {"length": -1}, "attempt 1: metric 'length'"),
        (("attempts", "1", "metrics"), {"other": 1}, "attempt 1: metric 'other'"),
        (("attempts", "1", "metrics"), None, "attempt 1: metric values"),
        (("attempts", "1", "retry_count"), "2", "malformed"),
        (("attempts", "1", "retry_count"), -1, "malformed"),
        (("attempts", "1", "usage"), {"tokens": 1}, "malformed"),
        (("attempts", "1", "seconds"), {"plan": "long"}, "malformed"),
        (("attempts", "1"), None, "malformed"),
        (("attempts", "1"), "done", "it has no issues"),
    ],
)
def test_a_malformed_task_is_refused_with_its_place(path, value, problem):
    """What is no task of this schema is named with the place and the reason."""
    with pytest.raises(RecordError) as refused:
        observations_of(_spoiled(TASK, path, value), CONTRACT, "details/t.json")

    assert str(refused.value).startswith("details/t.json")
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("read", "path", "value"),
    [
        (contract_of, ("schema_version",), "agentcompass.run_info.v1"),
        (contract_of, ("metric_contract",), KeyError),
        (contract_of, ("metric_contract",), []),
        (contract_of, ("metric_contract", "primary", "kind"), "money"),
        (contract_of, ("metric_contract", "primary", "id"), "score"),
        (contract_of, ("metric_contract", "primary", "color"), "red"),
        (contract_of, ("metric_contract", "primary", "precision"), "4"),
        (contract_of, ("metric_contract", "auxiliary"), None),
        (attempt_plan_of, ("request",), KeyError),
        (attempt_plan_of, ("request", "execution", "attempts"), None),
        (attempt_plan_of, ("request", "execution", "attempts", "k"), 0),
        (attempt_plan_of, ("request", "execution", "attempts", "k"), "2"),
        (attempt_plan_of, ("request", "execution", "attempts", "k"), True),
        (attempt_plan_of, ("request", "execution", "attempts", "strategy"), "best"),
    ],
)
def test_a_malformed_run_is_refused_with_its_place(read, path, value):
    """A record that does not tell what a summary needs is named."""
    with pytest.raises(RecordError, match=r"^run_info\.json: "):
        read(_spoiled(INFO, path, value), "run_info.json")


@pytest.mark.parametrize(
    "document", [{}, {"task_id": None}, {"task_id": "t", "category": 1}, {"task_id": "t", "cluster": []}]
)
def test_a_malformed_planned_task_is_refused(document):
    """A line that names no task, or puts it into no group, is named."""
    with pytest.raises(RecordError, match=r"^tasks\.jsonl:7: "):
        planned_task(document, "tasks.jsonl:7")


def test_the_schema_is_told():
    """A refusal says which schema is there, and which is needed."""
    with pytest.raises(RecordError, match="its schema is 'a', and 'b' is needed"):
        require_schema({"schema_version": "a"}, "b", "here")
