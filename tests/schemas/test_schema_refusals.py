"""A document with a field missing, one too many, or a wrong value is refused."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from support.documents import documents, validator

from agentcompass import schemas

FREE = {
    "params",
    "analysis_params",
    "artifacts",
    "analysis_result",
    "benchmark",
    "telemetry",
    "extra",
    "arguments",
    "metadata",
}


@pytest.fixture(scope="session")
def examples(runs) -> dict[str, Any]:
    """Return the longest document of each schema, and of each event."""
    found: dict[str, Any] = {}
    for run_dir in runs.values():
        for _, name, document in documents(run_dir):
            key = f"{name} {document['event']}" if name == "event.v1" else name
            if len(str(document)) > len(str(found.get(key, ""))):
                found[key] = document
    return found


NAMES = [name for name in schemas.names() if name != "event.v1"]
EVENTS = schemas.schema("event.v1")["properties"]["event"]["enum"]
KEYS = [*NAMES, *(f"event.v1 {event}" for event in EVENTS)]


def _refused(key: str, document: Any) -> bool:
    return not validator(key.partition(" ")[0]).is_valid(document)


@pytest.mark.parametrize("key", KEYS)
def test_the_example_is_valid(examples, key):
    """What the other tests spoil is good before."""
    assert not _refused(key, examples[key])


@pytest.mark.parametrize("key", KEYS)
def test_a_required_field_may_not_be_missing(examples, key):
    """Each required field of the document itself is required indeed."""
    document = examples[key]
    required = schemas.schema(key.partition(" ")[0])["required"]
    accepted = [name for name in required if not _refused(key, {k: v for k, v in document.items() if k != name})]

    assert required
    assert [] == accepted


def _objects(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each object of *document* whose fields are ours, once for each list and table of alike ones."""
    if isinstance(document, dict):
        yield path
        alike = path[-1:] in (("resolved_execution_plans",), ("attempts",), ("categories",), ("hierarchy",))
        for key, value in list(document.items())[: 1 if alike else None]:
            if key not in FREE or not isinstance(value, dict) or "id" in value:
                yield from _objects(value, (*path, key))
    elif isinstance(document, list) and document:
        yield from _objects(document[0], (*path, 0))


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


#: Fields whose value is any JSON, or a table with names as keys.
TABLES = {"seconds", "metrics", "versions", "final_answer", "ground_truth", "telemetry", "harness", "metadata"}


@pytest.mark.parametrize("key", KEYS)
def test_no_object_takes_a_field_of_its_own(examples, key):
    """Anywhere in the document, a field that the schema does not know is an error."""
    accepted = []
    for path in _objects(examples[key]):
        spoiled = deepcopy(examples[key])
        _at(spoiled, path)["surprise!"] = {}
        if not _refused(key, spoiled) and not set(path) & TABLES:
            accepted.append(path)

    assert [] == accepted


@pytest.mark.parametrize(
    ("key", "path", "value"),
    [
        ("run_info.v3", ("schema_version",), "agentcompass.run_info.v2"),
        ("run_info.v3", ("started_at",), "2026-01-02 03:04:05"),
        ("run_info.v3", ("started_at",), "2026-01-02T03:04:05"),
        ("run_info.v3", ("status",), "running"),
        ("run_info.v3", ("status",), "completed"),  # beside an error
        ("run_info.v3", ("error",), ""),
        ("run_info.v3", ("request", "execution", "run_timeout_seconds"), None),
        ("run_info.v3", ("request", "execution", "task_concurrency"), 0),
        ("run_info.v3", ("request", "metadata"), {"config_path": ["a", "b"]}),
        ("run_info.v3", ("request", "model"), {"id": "m", "base_url": "", "api_key": "sk-1", "api_protocol": ""}),
        ("run_info.v3", ("reused_from",), {}),
        ("run_info.v3", ("rejected_items",), []),
        ("params.v1", ("output", "run_name"), ""),
        ("params.v1", ("model",), {"base_url": "http://x"}),
        ("params.v1", ("model",), {"id": "m", "api_key": ""}),
        ("progress.v1", ("status",), "created"),
        ("progress.v1", ("pending_tasks",), -1),
        ("progress.v1", ("current_phase_counts",), {"sleeping": 1}),
        ("progress.v1", ("active_tasks",), {"t": {"phase": "plan"}}),
        ("plan.v1", ("attempt",), 0),
        ("plan.v1", ("plan", "run_timeout_seconds"), 0),
        ("plan.v1", ("plan", "budgets", "run"), {"seconds": 1}),
        ("planned_task.v1", ("task_id",), ""),
        ("planned_task.v1", ("category",), 1),
        ("task.v3", ("attempts",), {}),
        ("task.v3", ("attempt_plan", "k"), 0),
        ("task.v3", ("retry_counts",), {"1": 0}),
        ("task.v3", ("attempts", "1", "issues"), None),
        ("task.v3", ("attempts", "1", "error"), "it failed"),
        ("attempt.v3", ("error",), "it failed"),
        ("attempt.v3", ("status",), "failed"),
        ("attempt.v3", ("metrics",), {"correct": "yes"}),
        ("attempt.v3", ("trajectory",), {"path": "../trajectory.json"}),
        ("attempt.v3", ("usage",), {"prompt_tokens": -1}),
        ("attempt.v3", ("seconds",), {"lunch": 1}),
        ("retry.v1", ("scope",), "task"),
        ("retry.v1", ("retry",), 0),
        ("retry.v1", ("discarded_result", "trajectory"), {"path": "trajectory.json"}),
        ("metrics.v1", ("series",), []),
        ("metrics.v1", ("strategy",), "best"),
        ("trajectory.atif-1.8", ("schema_version",), "ATIF-v2.0"),
        ("trajectory.atif-1.8", ("steps",), []),
        ("trajectory.atif-1.8", ("steps", 0, "source"), "tool"),
        ("trajectory.atif-1.8", ("steps", 0, "reasoning_content"), "a user does not reason"),
        ("trajectory.atif-1.8", ("steps", 1, "llm_call_count"), 0),  # beside metrics
        (
            "trajectory.atif-1.8",
            ("steps", 1, "message"),
            [{"type": "image", "source": {"media_type": "image/bmp", "path": "x"}}],
        ),
        ("trajectory.atif-1.8", ("subagent_trajectories",), [{"schema_version": "ATIF-v1.8"}]),
        ("event.v1 task_started", ("task_id",), None),
        ("event.v1 task_started", ("attempt",), 1),
        ("event.v1 attempt_started", ("attempt",), None),
        ("event.v1 attempt_finished", ("status",), "skipped"),
        ("event.v1 execution_plan_resolved", ("phase",), None),
        ("event.v1 phase_changed", ("phase",), "lunch"),
        ("event.v1 run_finished", ("status",), "interrupted"),
        ("event.v1 run_finished", ("payload", "error"), ""),
        ("event.v1 run_started", ("task_id",), "t"),
        ("event.v1 task_finished", ("payload", "severity"), None),
        ("event.v1 attempt_retry", ("payload", "retry_detail"), "/tmp/attempts/a/1/retries/1.json"),
    ],
)
def test_a_wrong_value_is_refused(examples, key, path, value):
    """A value that a field does not take is an error."""
    spoiled = deepcopy(examples[key])
    _at(spoiled, path[:-1])[path[-1]] = value

    assert _refused(key, spoiled)


def test_an_event_with_the_payload_of_another_is_refused(examples):
    """A payload belongs to the name of its event."""
    started, finished = examples["event.v1 run_started"], examples["event.v1 tasks_loaded"]

    assert _refused("event.v1", {**started, "payload": finished["payload"]})


@pytest.mark.seed("RR-03")
def test_reuse_loaded_is_known(examples):
    """The one event that needs an earlier run has its form too."""
    event = {**examples["event.v1 tasks_loaded"], "event": "reuse_loaded"}

    assert not _refused("event.v1", {**event, "payload": {"reused_tasks": 0, "tasks_to_run": 3}})
    assert _refused("event.v1", event)
