"""What real runs leave behind is what the schemas say."""

from __future__ import annotations

import json
import shutil

import pytest
from support.documents import documents, run_problems, schema_name
from support.example_runs import KINDS

from agentcompass import schemas

pytestmark = pytest.mark.seed("RR-01")


@pytest.mark.parametrize("name", [*KINDS, "humaneval"])
def test_every_file_of_a_run_is_as_its_schema_says(runs, name):
    """Whatever the run was like, each of its files is known, and valid."""
    assert [] == run_problems(runs[name])


def test_the_runs_use_every_schema(runs):
    """No schema is only valid for want of a document."""
    used = {name for run_dir in runs.values() for _, name, _ in documents(run_dir)}

    assert set(schemas.names()) == used


@pytest.mark.seed("RR-03")
def test_the_runs_have_every_event(runs):
    """All that can happen has happened in one of these."""
    events = {
        found["event"] for run_dir in runs.values() for _, name, found in documents(run_dir) if name == "event.v1"
    }
    known = schemas.schema("event.v1")["properties"]["event"]["enum"]

    assert set(known) == events


def test_the_runs_end_in_different_ways(runs):
    """The runs under test are not all alike."""
    ends = {json.loads((run_dir / "run_info.json").read_text("utf-8"))["status"] for run_dir in runs.values()}

    assert {"completed", "failed", "timed_out"} == ends


@pytest.mark.parametrize("stray", ["notes.txt", "details/a.txt", "attempts/a/0/result.json", ".run_info.json.tmp"])
def test_a_file_that_nobody_knows_is_found(runs, tmp_path, stray):
    """The walk over a run does not skip what it does not know."""
    shutil.copytree(runs["plain"], tmp_path / "run", symlinks=True)
    (tmp_path / "run" / stray).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "run" / stray).write_text("{}")

    with pytest.raises(AssertionError, match="has no schema"):
        run_problems(tmp_path / "run")


def test_params_leave_unset_fields_out(runs):
    """A run without a model has nothing to say of one."""
    params = json.loads((runs["humaneval"] / "params.json").read_text("utf-8"))

    assert {} == params["model"]
    assert {"run_id": "r"} == params["output"]


@pytest.mark.seed("RR-02")
def test_plans_are_the_same_in_all_three_places(runs):
    """The stream of plans, the events and the record of the run tell one story."""
    run_dir = runs["attempts"]
    found = list(documents(run_dir))
    lines = {(d["task_id"], str(d["attempt"])): d["plan"] for _, name, d in found if name == "plan.v1"}
    events = {
        (d["task_id"], str(d["attempt"])): d["payload"]
        for _, name, d in found
        if name == "event.v1" and d["event"] == "execution_plan_resolved"
    }
    info = next(d for _, name, d in found if name == "run_info.v3")["resolved_execution_plans"]
    folded = {(task, n): plan for task, entry in info.items() for n, plan in entry["attempts"].items()}

    assert lines == events == folded
    assert 16 == len(lines)


@pytest.mark.seed("RR-02")
def test_a_plan_is_recorded_before_the_environment_opens(runs):
    """The plan of an attempt comes before the phase in which its sandbox opens."""
    events = [d for _, name, d in documents(runs["attempts"]) if name == "event.v1"]
    for task, attempt in {(d["task_id"], d["attempt"]) for d in events if d["event"] == "execution_plan_resolved"}:
        own = [
            d["event"] if d["event"] == "execution_plan_resolved" else d["phase"]
            for d in events
            if (d["task_id"], d["attempt"]) == (task, attempt)
        ]

        assert own.index("execution_plan_resolved") < own.index("open_environment")


@pytest.mark.seed("ER-06")
def test_a_replaced_execution_is_kept_whole(runs):
    """A retry leaves the issues and the trajectory of what it replaced, under the path that the event names."""
    run_dir = runs["retries"]
    events = [d for _, name, d in documents(run_dir) if name == "event.v1" and d["event"] == "attempt_retry"]
    mended = [d["payload"] for d in events if d["task_id"] == "mended"]
    kept = [json.loads((run_dir / payload["retry_detail"]).read_text("utf-8")) for payload in mended]
    final = json.loads((run_dir / "details" / "mended.json").read_text("utf-8"))

    assert ["attempt", "evaluate"] == [payload["scope"] for payload in mended]
    assert [["fatal"], ["fatal"]] == [[issue["severity"] for issue in found["issues"]] for found in kept]
    assert ["ATIF-v1.8"] * 2 == [found["discarded_result"]["trajectory"]["schema_version"] for found in kept]
    assert (2, {"1": 2}, []) == (final["retry_count"], final["retry_counts"], final["attempts"]["1"]["issues"])


def test_names_of_tasks_and_categories_are_no_secrets(runs):
    """A task called reset-password keeps its plans, and a category called password its score."""
    attempts, hierarchy = ({name: d for _, name, d in documents(runs[run])} for run in ("attempts", "hierarchy"))
    series = hierarchy["metrics.v1"]["series"][0]

    assert {"1", "2"} == set(attempts["run_info.v3"]["resolved_execution_plans"]["reset-password"]["attempts"])
    assert 1.0 == series["categories"]["password"]["value"]
    assert 1.0 == series["hierarchy"]["/overall/token/password"]["value"]


def test_unknown_paths_have_no_schema():
    """A name that only resembles a file of a run is no file of a run."""
    assert [None] * 3 == [schema_name(name) for name in ("details/a/b.json", "xrun_info.json", "attempts/a/1/x.json")]
