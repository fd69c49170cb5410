"""Attempts and tasks as documents."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.documents import problems

from agentcompass.core.model.issue import Issue, IssuePhase, Severity
from agentcompass.core.model.result import RunResult, Usage
from agentcompass.core.model.task import Message, Task
from agentcompass.core.records.results import (
    attempt_document,
    issue_document,
    issue_of,
    planned_document,
    result_document,
    retry_document,
    task_digest,
    task_document,
    usage_document,
)
from agentcompass.core.runtime.ledger import AttemptRecord, FinishedTask

TASK = Task("t", category="c", cluster="k", ground_truth={"is": 42}, data=object())
ERROR = Issue(Severity.ERROR, IssuePhase.RUN, "model_timeout", "it took too long")
GRADING = Issue(Severity.FATAL, IssuePhase.EVALUATE, "judge_failed", "no answer")
WARNING = Issue(Severity.WARNING, IssuePhase.CLEANUP, "environment_failed", "still there")
STEPS = {
    "schema_version": "ATIF-v1.8",
    "agent": {"name": "a", "version": "1"},
    "steps": [{"step_id": 1, "source": "user", "message": "hi"}],
}
RESULT = RunResult(
    {"correct": False}, (ERROR, WARNING), "42", STEPS, Usage(5), diagnostics=("one", "two"), killed_processes=2
)


@pytest.mark.seed("ER-01")
def test_an_issue_can_be_read_back():
    """Severities and phases are written as the documented words."""
    assert {
        "severity": "error",
        "phase": "run",
        "code": "model_timeout",
        "message": "it took too long",
    } == issue_document(ERROR)
    assert ERROR == issue_of(issue_document(ERROR))


@pytest.mark.seed("ER-01")
@pytest.mark.parametrize(
    ("issues", "status"),
    [
        ((), "completed"),
        ((WARNING,), "completed"),
        ((ERROR, WARNING), "run_error"),
        ((GRADING,), "eval_error"),
        ((ERROR, GRADING), "run_error_or_eval_error"),
    ],
)
def test_the_status_comes_from_the_issues(issues, status):
    """There is no error field; the status says where the issues are, and a warning is none."""
    document = result_document(AttemptRecord(RunResult(issues=issues), 0, None))

    assert status == document["status"]
    assert "error" not in document


def test_what_is_unknown_is_absent():
    """Unknown usage differs from zero."""
    assert {"prompt_tokens": 0, "cost_usd": 0.0} == usage_document(Usage(prompt_tokens=0, cost_usd=0.0))


@pytest.mark.seed("ER-01")
def test_an_attempt_is_a_document():
    """The trajectory is a file beside it, and tracebacks are in the artifacts only."""
    document = attempt_document(TASK, 2, AttemptRecord(RESULT, 1, None))

    assert [] == problems("attempt.v3", document)
    assert ({"path": "trajectory.json"}, {"execution_diagnostics": "one\ntwo"}, 2, 1, {}) == tuple(
        document[key] for key in ("trajectory", "artifacts", "attempt", "retry_count", "limits")
    )


def test_an_attempt_without_anything():
    """An execution that left nothing is a document all the same."""
    document = attempt_document(Task("t"), 1, AttemptRecord(RunResult(), 0, None))

    assert [] == problems("attempt.v3", document)
    assert ({}, None, None) == tuple(document[key] for key in ("trajectory", "final_answer", "killed_processes"))


@pytest.mark.seed("ER-06")
def test_a_task_sums_its_retries():
    """The retries of a task are those of its attempts; attempts without any are not listed."""
    records = {
        1: AttemptRecord(RESULT, 2, None),
        2: AttemptRecord(RunResult(), 0, None),
        3: AttemptRecord(RunResult(), 1, None),
    }
    document = task_document(FinishedTask(TASK, 0, 1, records), 3, "avg")

    assert [] == problems("task.v3", document)
    assert (3, {"1": 2, "3": 1}, {"is": 42}) == tuple(
        document[key] for key in ("retry_count", "retry_counts", "ground_truth")
    )


@pytest.mark.seed("ER-06")
def test_a_replaced_execution_keeps_its_trajectory():
    """What a retry replaces is kept whole, since there is no other file for it."""
    details = {
        "retry": 2, "max_retries": 3, "retry_delay_seconds": 1.5, "stage": "run_harness", "scope": "attempt",
        "matched_pattern": "<fatal>",
    }  # fmt: skip
    document = retry_document(TASK, 1, RESULT, None, details)

    assert [] == problems("retry.v1", document)
    assert STEPS == document["discarded_result"]["trajectory"]
    assert 1 == document["discarded_result"]["retry_count"]
    assert [issue_document(ERROR), issue_document(WARNING)] == document["issues"]


def test_a_planned_task_is_what_a_summary_needs():
    """The benchmark's own data and the right answer are not in the plan."""
    planned = planned_document(TASK)
    assert {"task_id": "t", "category": "c", "cluster": "k", "digest": task_digest(TASK)} == planned


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "another"},
        {"prompt": (Message("user", "another"),)},
        {"ground_truth": {1, 2}},
        {"metadata": {"a": b"x"}},
        {"metadata": {1: "x", "a": "y"}, "prompt": "other"},
        {"run_timeout_seconds": 5.0},
    ],
)
def test_a_digest_tells_what_a_task_asks_and_expects(change):
    """The same in every process: neither an order of a set nor a place in memory is in it."""
    plain = Task("t", "do", ground_truth=[1], metadata={"x": object()})

    assert task_digest(plain) == task_digest(replace(plain, id="u", data=1, metadata={"x": object()}))
    assert task_digest(plain) != task_digest(replace(plain, **change))
    assert task_digest(replace(plain, ground_truth={"b", "a"})) == task_digest(replace(plain, ground_truth={"a", "b"}))
