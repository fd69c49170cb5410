"""What a run leaves behind while it goes on: events, plans, progress, the log."""

from __future__ import annotations

import json
import logging
import re

import pytest
from support.toys import ToyBenchmark, ToyHarness

from agentcompass.ports.reporter import Reporter

FIELDS = {
    "run_id",
    "event",
    "timestamp",
    "task_id",
    "category",
    "attempt",
    "phase",
    "status",
    "payload",
    "orchestration_id",
    "request_key",
    "request_name",
    "request_index",
}
LINE = re.compile(r"\d\d:\d\d:\d\d (DEBUG|INFO|WARNING|ERROR|CRITICAL) {1,4} \S+ +\S")


def _of(ran, name):
    return [event for event in ran.events() if event["event"] == name]


def _only(ran, name):
    (event,) = _of(ran, name)
    return event


def _log(ran):
    return (ran.run_dir / "run.log").read_text("utf-8")


@pytest.mark.seed("RR-03")
def test_every_event_has_every_field(toys):
    """All fields are always there, the payload is an object, those of an orchestration are null."""
    ran = toys.run({"a": {"run": ["fatal", "ok"]}, "b": {"category": "c"}}, "--max-retries", "1", mode="fresh")

    for event in ran.events():
        assert FIELDS == set(event)
        assert isinstance(event["payload"], dict)
        assert ran.document("run_info.json")["run_id"] == event["run_id"]
        assert [None] * 4 == [event[name] for name in sorted(FIELDS) if name.startswith(("orchestration", "request_"))]
    moments = [event["timestamp"] for event in ran.events()]
    assert sorted(moments) == moments


@pytest.mark.seed("RR-03")
def test_the_events_of_one_task_in_order(toys):
    """From the start of the run to its end, each event and phase of the tables stands in its place."""
    ran = toys.run({"a": {"category": "c"}}, mode="fresh")

    assert [
        ("run_started", None),
        ("tasks_loaded", None),
        ("task_started", None),
        ("attempt_started", None),
        ("phase_changed", "plan"),
        ("execution_plan_resolved", "plan"),
        ("phase_changed", "open_environment"),
        ("phase_changed", "prepare_task"),
        ("phase_changed", "start_harness"),
        ("phase_changed", "run_harness"),
        ("phase_changed", "collect_harness_result"),
        ("phase_changed", "evaluate_environment"),
        ("phase_changed", "evaluate"),
        ("attempt_finished", None),
        ("phase_changed", "save_partial"),
        ("partial_saved", None),
        ("task_finished", None),
        ("summary_started", None),
        ("run_finished", None),
    ] == [(event["event"], event["phase"]) for event in ran.events()]


@pytest.mark.seed("RR-03")
def test_the_phases_without_a_harness_and_without_a_sandbox_for_grading(toys):
    """The benchmark runs the task itself; no session is opened, nothing is collected from one."""
    ran = toys.run({"a": {}}, harness="none", harness_params={}, runs_itself=True)

    phases = ["plan", "open_environment", "prepare_task", "run_task", "evaluate", "save_partial"]
    assert phases == [event["phase"] for event in _of(ran, "phase_changed")]


@pytest.mark.seed("RR-03")
def test_what_each_event_carries(toys):
    """Task, category, attempt, status and payload are those of the table of events."""
    ran = toys.run({"a": {"category": "c"}, "b": {"run": "fatal"}}, "--k", "2", "--task-concurrency", "1")

    def identity(event):
        return tuple(event[name] for name in ("task_id", "category", "attempt", "status"))

    started, finished = _of(ran, "task_started"), _of(ran, "task_finished")
    assert {"model": None, "benchmark": "toy", "harness": "toy", "environment": "toy"} == _only(ran, "run_started")[
        "payload"
    ]
    assert {"total_tasks": 2} == _only(ran, "tasks_loaded")["payload"]
    assert [("a", "c", None, None), ("b", None, None, None)] == [identity(event) for event in started]
    assert [{"index": 0, "total": 2}, {"index": 1, "total": 2}] == [event["payload"] for event in started]
    assert [("a", "c", None, "completed"), ("b", None, None, "failed")] == [identity(event) for event in finished]
    assert [(0, 2), (1, 2)] == [(event["payload"]["index"], event["payload"]["total"]) for event in finished]
    assert [("a", "c", 1, None), ("a", "c", 2, None)] == [identity(event) for event in _of(ran, "attempt_started")[:2]]
    assert ["completed", "completed", "failed", "failed"] == [event["status"] for event in _of(ran, "attempt_finished")]
    assert [("a", "c", None, None), ("b", None, None, None)] == [identity(event) for event in _of(ran, "partial_saved")]
    assert (None, None, None, None, {}) == (
        *identity(_only(ran, "summary_started")),
        _only(ran, "summary_started")["payload"],
    )
    assert "failed" == _only(ran, "run_finished")["status"]
    assert "1 of 2 tasks ended with FATAL issues" in _only(ran, "run_finished")["payload"]["error"]
    assert {1, 2} == {event["attempt"] for event in _of(ran, "phase_changed") if event["phase"] == "run_harness"}


@pytest.mark.seed("RR-03")
def test_a_run_that_ends_well_has_no_error_to_tell(toys):
    """The payload of the last event is empty."""
    assert ("completed", {}) == tuple(
        _only(toys.run({"a": {}}), "run_finished")[name] for name in ("status", "payload")
    )


@pytest.mark.seed("RR-02")
def test_the_plan_is_written_before_the_sandbox_opens(toys, monkeypatch):
    """When opening fails, the plan is there: in the event, in plans.jsonl and in the run's record."""
    ran = toys.run({"a": {"open": "raise"}}, "--k", "2", plan={"run_timeout_seconds": 5})

    plans = ran.document("run_info.json")["resolved_execution_plans"]["a"]["attempts"]
    lines = [json.loads(line) for line in (ran.run_dir / "plans.jsonl").read_text().splitlines()]
    assert {"1", "2"} == set(plans)
    assert plans["1"] == _of(ran, "execution_plan_resolved")[0]["payload"] == lines[0]["plan"]
    assert [("a", 1), ("a", 2)] == sorted((line["task_id"], line["attempt"]) for line in lines)
    assert ("toy", "public") == (
        plans["1"]["environment"]["id"],
        plans["1"]["environment"]["network_policy"]["network_mode"],
    )
    assert {"seconds": 5, "base": 5, "multiplier": 1.0, "source": "benchmark toy"} == plans["1"]["budgets"]["run"]


@pytest.mark.seed("RR-04")
def test_the_snapshot_at_the_end(toys):
    """The counts are those of the events; nothing is active any more; pending holds what did not finish."""
    tasks = {"a": {}, "b": {"run": "error"}, "c": {"run": "fatal"}, "d": {"close": "raise"}}
    ran = toys.run(tasks, "--k", "2")

    progress = ran.document("progress.json")
    wanted = {
        "status": "failed",
        "total_tasks": 4,
        "finished_tasks": 4,
        "completed_tasks": 2,
        "failed_tasks": 2,
        "pending_tasks": 0,
        "running_tasks": 0,
        "reused_tasks": 0,
        "skipped_tasks": 0,
        "attempts_started": 8,
        "attempts_finished": 8,
        "partials_saved": 4,
        "current_phase_counts": {},
        "active_tasks": {},
    }
    assert wanted == {name: progress[name] for name in wanted}


@pytest.mark.seed("RR-04")
def test_the_snapshot_in_the_middle_shows_what_runs(toys, monkeypatch):
    """Phase, attempt and category of each active task are there while it is active."""
    seen = []

    class Watcher(Reporter):
        def on_event(self, event, progress):
            if event.phase == "evaluate":
                seen.append(progress.document())

    monkeypatch.setattr("agentcompass.adapters.cli.cmd_run.terminal_reporters", lambda mode, stream: (Watcher(),))
    toys.run({"a": {"category": "c"}})

    active = seen[0]["active_tasks"]["a"]
    assert ("c", "evaluate", 1) == tuple(active[name] for name in ("category", "phase", "attempt"))
    assert ({"evaluate": 1}, 1, 0) == tuple(
        seen[0][name] for name in ("current_phase_counts", "running_tasks", "pending_tasks")
    )


@pytest.mark.seed("RR-05")
@pytest.mark.parametrize("method", ["append_events", "append_plan", "save_progress"])
def test_progress_that_cannot_be_written_only_warns(toys, monkeypatch, method):
    """The evaluation goes on and is complete; one line says what is missing."""

    def full(*_):
        raise OSError(28, "No space left on device")

    async def full_later(*_):
        full()

    name = f"agentcompass.adapters.stores.json_files.JsonRunStore.{method}"
    monkeypatch.setattr(name, full_later if method.startswith("save") else full)
    ran = toys.run({"a": {}, "b": {}}, quiet=False)

    warnings = [line for line in ran.err.splitlines() if " WARNING " in line]
    assert (0, 1.0) == (ran.status, ran.document("metrics.json")["series"][0]["value"])
    assert 1 == len(warnings)
    assert "could not be written: [Errno 28] No space left on device" in warnings[0]


@pytest.mark.seed("RR-06")
def test_lines_of_the_log(toys):
    """Each line has time, level, logger and message; the folder has one file, run.log leads to it."""
    ran = toys.run({"a": {"run": "fatal"}, "b": {"close": "raise"}})

    lines = _log(ran).splitlines()
    (file,) = (ran.run_dir / "logs").iterdir()
    assert [] == [line for line in lines if not LINE.match(line)]
    assert any(" WARNING  attempt " in line and "a attempt 1: fatal toy_fatal" in line for line in lines)
    assert any(" DEBUG    attempt " in line and "environment_failed" in line for line in lines)
    assert re.fullmatch(r"\d{8}_\d{6}\.log", file.name)
    assert file.samefile(ran.run_dir / "run.log")


@pytest.mark.seed("RR-06")
def test_levels_of_log_and_terminal_are_independent(toys):
    """The file keeps what the terminal does not show, and the other way round."""
    tasks = {"a": {"close": "raise", "run": "error"}}
    loud = toys.run(tasks, "--log-level", "DEBUG", "--file-log-level", "ERROR", quiet=False)
    soft = toys.run(tasks, "--log-level", "CRITICAL", "--file-log-level", "DEBUG", quiet=False)

    assert ("", True) == (_log(loud), "environment_failed" in loud.err)
    assert ("", True) == (soft.err, "environment_failed" in _log(soft))


@pytest.mark.seed("RR-06")
def test_other_libraries_are_heard_from_warning_up(toys, monkeypatch):
    """Their chatter is filtered, their warnings are kept with their names."""

    async def chatty(self, session, prepared, *, timeout):
        logging.getLogger("otherlib.deep").debug("chatter")
        logging.getLogger("otherlib.deep").info("chatter")
        logging.getLogger("otherlib.deep").warning("take care")

    monkeypatch.setattr(logging.getLogger("otherlib"), "level", logging.DEBUG)
    monkeypatch.setattr(ToyHarness, "execute_task", chatty)
    ran = toys.run({"a": {}})

    assert "chatter" not in _log(ran)
    assert re.search(r"WARNING  otherlib\.deep +take care", _log(ran))


@pytest.mark.seed("RR-06")
def test_what_is_logged_while_tasks_are_loaded_is_kept(toys, monkeypatch):
    """Although that happens in a thread of its own."""
    original = ToyBenchmark.load_tasks

    def telling(self):
        logging.getLogger("agentcompass.toy").info("reading the data")
        return original(self)

    monkeypatch.setattr(ToyBenchmark, "load_tasks", telling)

    assert "reading the data" in _log(toys.run({"a": {}}))


def test_a_traceback_of_a_component_does_not_clutter_the_terminal(toys):
    """The terminal gets one line for an attempt that failed."""
    ran = toys.run({"a": {"run": "raise"}}, quiet=False)

    warnings = [line for line in ran.err.splitlines() if "WARNING" in line]
    assert 1 == len(warnings)
    assert "RuntimeError: the toy's run broke" in warnings[0]
    assert "Traceback" not in ran.err


def test_parameters_that_begin_with_an_underscore_are_not_recorded(toys):
    """They are of the moment; run_info and params leave them out, and nulls and empty containers too."""
    ran = toys.run({"a": {"_now": 1, "answer": None, "artifacts": {}, "ground_truth": 3}})

    for name in ("run_info.json", "params.json"):
        document = ran.document(name)
        tasks = document.get("request", document)["benchmark"]["params"]["tasks"]
        assert {"a": {"ground_truth": 3}} == tasks
