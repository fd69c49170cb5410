"""A failure costs its own attempt, and is told as what it was."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.toys import ToyBenchmark, ToyHarness, ToyProvider

FAILURES = [
    ("plan", "raise", "fatal", "setup", "setup_failed", "RuntimeError: the toy's plan broke"),
    ("plan", "garbage", "fatal", "setup", "setup_failed", "TypeError: plan returned a str instead of a TaskPlan"),
    ("plan", "fatal:input_missing:no data", "fatal", "setup", "input_missing", "no data"),
    ("plan", "error:input_missing:no data", "error", "setup", "input_missing", "no data"),
    ("open", "raise", "fatal", "setup", "environment_failed", "RuntimeError: the toy's open broke"),
    ("open", "sandbox:no disk", "fatal", "setup", "environment_failed", "SandboxError: no disk"),
    ("open", "timeout", "fatal", "setup", "environment_failed", "TimeoutError: the toy gave up"),
    ("open", "cancel", "fatal", "setup", "environment_failed", "RuntimeError: the work cancelled itself"),
    ("prepare", "raise", "fatal", "setup", "setup_failed", "RuntimeError: the toy's prepare broke"),
    ("prepare", "garbage", "fatal", "setup", "setup_failed", "prepare_task returned a str instead of a PreparedTask"),
    ("prepare", "sandbox", "fatal", "setup", "environment_failed", "SandboxError: the toy's sandbox broke"),
    ("prepare", "fatal:workspace_failed:full", "fatal", "setup", "workspace_failed", "full"),
    ("start", "raise", "fatal", "setup", "harness_setup_failed", "RuntimeError: the toy's start broke"),
    ("start", "error:tool_setup_failed:no node", "error", "setup", "tool_setup_failed", "no node"),
    ("run", "raise", "fatal", "run", "harness_failed", "RuntimeError: the toy's run broke"),
    ("run", "sandbox", "fatal", "run", "environment_failed", "SandboxError: the toy's sandbox broke"),
    ("run", "cancel", "fatal", "run", "harness_failed", "RuntimeError: the work cancelled itself"),
    ("run", "fatal:model_failed:HTTP 402", "fatal", "run", "model_failed", "HTTP 402"),
    ("kill", "raise", "fatal", "run", "environment_failed", "RuntimeError: the toy's kill broke"),
    ("collect", "raise", "fatal", "collect", "result_collect_failed", "RuntimeError: the toy's collect broke"),
    ("collect", "garbage", "fatal", "collect", "result_collect_failed", "returned a dict instead of a HarnessResult"),
    ("collect", "error:diagnostic_read_failed:no", "error", "collect", "diagnostic_read_failed", "no"),
    ("collect", "returns:fatal:output_missing:none", "fatal", "collect", "output_missing", "none"),
    ("evaluate", "raise", "error", "evaluate", "evaluate_failed", "RuntimeError: the toy's evaluate broke"),
    ("evaluate", "garbage", "error", "evaluate", "evaluate_failed", "evaluate returned a dict instead of a Verdict"),
    ("evaluate", "cancel", "error", "evaluate", "evaluate_failed", "RuntimeError: the work cancelled itself"),
    ("evaluate", "sandbox", "fatal", "evaluate", "environment_failed", "SandboxError: the toy's sandbox broke"),
    ("evaluate", "fatal:judge_failed:no JSON", "fatal", "evaluate", "judge_failed", "no JSON"),
]
MODES = ["none", "reuse", "fresh"]


def _attempt(ran, task="a", number="1"):
    return ran.details()[task]["attempts"][number]


@pytest.mark.seed("ER-01", "ER-02", "ER-03")
@pytest.mark.parametrize(
    ("mode", "step", "word", "severity", "phase", "code", "message"),
    [(mode, *failure) for failure in FAILURES for mode in (MODES if failure[0] == "evaluate" else ["fresh"])],
)
def test_a_failure_costs_its_attempt_only(toys, mode, step, word, severity, phase, code, message):
    """It becomes one issue with severity, phase, code and reason; nothing is scored; the other task is right."""
    ran = toys.run({"a": {step: word}, "b": {}}, mode=mode)

    failed = _attempt(ran)
    counts = ran.document("metrics.json")["series"][0]["counts"]
    assert [(severity, phase, code)] == [(i["severity"], i["phase"], i["code"]) for i in failed["issues"]]
    assert message in failed["issues"][0]["message"]
    assert ({}, {"correct": True}) == (failed["metrics"], _attempt(ran, "b")["metrics"])
    assert (1 if severity == "fatal" else 0, 1) == (counts["invalidated"], counts["error"])
    assert 2 == counts["evaluated"] + counts["unavailable"] + counts["invalidated"]
    assert (1, []) == (ran.status, toys.board.open) if severity == "fatal" else [] == toys.board.open
    assert "Traceback" not in ran.err + ran.out


@pytest.mark.seed("ER-02", "ER-03")
@pytest.mark.parametrize(
    ("step", "word", "severity", "code"),
    [
        ("run", "timeout", "error", "harness_timeout"),
        ("run", "error:model_empty_output", "error", "model_empty_output"),
        ("run", "warning:harness_stuck", "warning", "harness_stuck"),
        ("collect", "returns:error:harness_limit_reached", "error", "harness_limit_reached"),
        ("evaluate", "returns:warning:verifier_result_invalid", "warning", "verifier_result_invalid"),
        ("evaluate", "returns:error:submission_invalid", "error", "submission_invalid"),
        ("finish", "raise", "warning", "harness_cleanup_failed"),
        ("close", "raise", "warning", "environment_failed"),
        ("close", "sandbox", "warning", "environment_failed"),
        ("close", "timeout", "warning", "environment_failed"),
    ],
)
def test_what_is_not_fatal_leaves_the_score(toys, step, word, severity, code):
    """An ERROR and a WARNING stand beside a valid value, which counts; the run is completed."""
    ran = toys.run({"a": {step: word}}, mode="reuse")

    attempt = _attempt(ran)
    assert [(severity, code)] == [(issue["severity"], issue["code"]) for issue in attempt["issues"]]
    assert (0, {"correct": True}) == (ran.status, attempt["metrics"])
    assert 1.0 == ran.document("metrics.json")["series"][0]["value"]


@pytest.mark.seed("ER-01")
def test_clean_up_that_fails_is_a_warning_of_the_phase_cleanup(toys):
    """Both the agent's and the sandbox's failed end are told, each with its phase."""
    ran = toys.run({"a": {"finish": "raise:stuck", "close": "raise:busy"}})

    assert [
        {
            "severity": "warning",
            "phase": "cleanup",
            "code": "harness_cleanup_failed",
            "message": "RuntimeError: stuck",
        },
        {"severity": "warning", "phase": "cleanup", "code": "environment_failed", "message": "RuntimeError: busy"},
    ] == _attempt(ran)["issues"]


@pytest.mark.seed("ER-01")
def test_tracebacks_stand_in_the_diagnostics_only(toys):
    """The issue is one line; the whole traceback and a component's own log are in execution_diagnostics."""
    ran = toys.run({"a": {"run": "error", "close": "raise:busy\nand more"}})

    attempt = _attempt(ran)
    diagnostics = attempt["artifacts"].pop("execution_diagnostics")
    assert "log of the toy's run\nTraceback (most recent call last):" in diagnostics
    assert diagnostics.rstrip().endswith("RuntimeError: busy\nand more")
    assert "Traceback" not in json.dumps(attempt)
    assert ["error by the toy", "RuntimeError: busy"] == [issue["message"] for issue in attempt["issues"]]


@pytest.mark.parametrize(
    ("scalar", "value", "problem"),
    [
        (False, 1, "1 is not a boolean"),
        (False, "yes", "'yes' is not a boolean"),
        (False, None, "None is not a boolean"),
        (False, {"correct": True, "speed": 1}, "metric 'speed': 1 belongs to no declared metric"),
        (True, "nan", "nan is not finite"),
        (True, "inf", "inf is not finite"),
        (True, True, "True is not a number"),
        (True, "0.5", "'0.5' is not a number"),
        (True, 1.5, "1.5 is out of range"),
        (True, -0.1, "-0.1 is out of range"),
        (True, [[0.5]], "[0.5] is not a number"),
    ],
)
def test_an_invalid_value_is_fatal_and_never_counts(toys, scalar, value, problem):
    """A grader's value that its metric does not take invalidates its task, and names metric, value and mend."""
    ran = toys.run({"a": {"verdict": {"1": value}}, "b": {"verdict": 1.0 if scalar else True}}, scalar=scalar)

    issue = _attempt(ran)["issues"][0]
    assert ("fatal", "evaluate", "metric_invalid") == (issue["severity"], issue["phase"], issue["code"])
    assert problem in issue["message"]
    assert {} == _attempt(ran)["metrics"]
    assert (1, 1.0) == (ran.status, ran.document("metrics.json")["series"][0]["reference_value"])


def test_a_value_that_is_missing_is_unavailable(toys):
    """A verdict without a value is no zero and no failure: the task is unavailable."""
    ran = toys.run({"a": {"verdict": {"1": {}}}, "b": {}})

    counts = ran.document("metrics.json")["series"][0]["counts"]
    assert {"total": 2, "evaluated": 1, "error": 0, "unavailable": 1, "invalidated": 0} == counts


@pytest.mark.parametrize("step", ["open", "prepare", "run", "collect", "evaluate"])
def test_a_task_may_break_all_its_attempts(toys, step):
    """Every attempt of a task is executed and kept, whatever became of the one before."""
    ran = toys.run({"a": {step: "raise"}}, "--k", "3")

    assert {"1", "2", "3"} == set(ran.details()["a"]["attempts"])
    assert 3 == toys.board.times(step, "a")


@pytest.mark.parametrize(
    ("load", "problem"),
    [
        ("usage", "toy data: is not there; make some"),
        ("raise:row 7 is odd", "loading the tasks: RuntimeError: row 7 is odd"),
        ("garbage", "loading the tasks: TypeError: load_tasks returned a list instead of a LoadedTasks"),
    ],
)
def test_data_that_cannot_be_loaded_fail_the_run(toys, load, problem):
    """The run ends failed, in order: final state, event, one line, no traceback."""
    ran = toys.run({"a": {}}, load=load)

    assert (1, "failed", "failed") == (
        ran.status,
        ran.document("run_info.json")["status"],
        ran.document("progress.json")["status"],
    )
    assert problem in ran.document("run_info.json")["error"]
    assert ("run_finished", problem) == (
        ran.events()[-1]["event"],
        ran.events()[-1]["payload"]["error"][-len(problem) :],
    )
    assert 1 == ran.out.count(problem)
    assert "Traceback" not in ran.out + ran.err


def test_items_that_are_no_tasks_fail_the_run_after_it_was_done(toys):
    """Rejected items are named in the record and on the terminal; the good tasks are executed and reported."""
    ran = toys.run({"a": {}}, rejected=["tasks.jsonl:7"])

    info = ran.document("run_info.json")
    assert (1, "failed") == (ran.status, info["status"])
    assert [{"where": "tasks.jsonl:7", "reason": "no task"}] == info["rejected_items"]
    assert "tasks.jsonl:7: no task" in info["error"]
    assert "tasks.jsonl:7: no task" in ran.out
    assert {"correct": True} == _attempt(ran)["metrics"]


def test_work_that_ignores_its_cancellation_is_abandoned(toys, monkeypatch):
    """A component that does not end at its limit costs its attempt, and holds nobody up."""
    monkeypatch.setattr("agentcompass.adapters.engine.player.OBEDIENCE_SECONDS", 0.05)

    ran = toys.run(
        {"a": {"run": "stubborn"}, "b": {}},
        execution={"run_timeout_seconds": 0.05, "run_timer_compensation_seconds": 0.05},
    )

    assert ["run_timeout"] == [issue["code"] for issue in _attempt(ran)["issues"]]
    assert {"correct": True} == _attempt(ran, "b")["metrics"]
    assert [] == toys.board.open


def test_a_component_that_leaves_the_interpreter_costs_its_attempt(toys, monkeypatch):
    """``sys.exit`` in a harness is a failure of that harness, and no way out of the run."""

    async def leave(self, session, prepared, *, timeout):
        if session[0] == "a":
            sys.exit(3)

    monkeypatch.setattr(ToyHarness, "execute_task", leave)

    ran = toys.run({"a": {}, "b": {}})

    assert [("fatal", "harness_failed")] == [(i["severity"], i["code"]) for i in _attempt(ran)["issues"]]
    assert {"correct": True} == _attempt(ran, "b")["metrics"]


def test_a_component_that_leaves_within_a_limit_costs_its_attempt(toys, monkeypatch):
    """The same under a budget, where the work is a task of its own."""

    async def leave(self, task, prepared, result, environment):
        sys.exit("enough")

    monkeypatch.setattr(ToyBenchmark, "evaluate", leave)

    ran = toys.run({"a": {}}, execution={"evaluation_timeout_seconds": 30})

    assert ["RuntimeError: the work left the process: SystemExit: enough"] == [
        issue["message"] for issue in _attempt(ran)["issues"]
    ]


def test_the_solution_is_shown_to_nobody_who_does_not_need_it(toys):
    """A harness gets the task without its reference solution, unless it declares that it applies it."""
    hidden = toys.run({"a": {}})
    shown = toys.run({"a": {}}, harness="oracle", harness_params=None)

    assert [] == _attempt(hidden)["issues"]  # the toy asserts it
    assert "42" == _attempt(shown)["final_answer"]


def test_an_exception_without_words_still_has_a_message(toys, monkeypatch):
    """The type stands for the missing text."""

    async def silent(self, spec, record):
        raise NotImplementedError

    monkeypatch.setattr(ToyProvider, "open", silent)

    assert ["NotImplementedError"] == [issue["message"] for issue in _attempt(toys.run({"a": {}}))["issues"]]


DEAF = """
import asyncio, sys, time
import support.toys as toys
from agentcompass.adapters.cli.main import main
from agentcompass.adapters.engine import loops, player
loops.OBEDIENCE_SECONDS = player.OBEDIENCE_SECONDS = 0.05
async def deaf(self, session, prepared, *, timeout):
    while True:
        try:
            await WAIT
        except asyncio.CancelledError:
            pass
toys.ToyHarness.execute_task = deaf
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("wait", ["asyncio.sleep(3600)", "asyncio.to_thread(time.sleep, 3600)"])
def test_work_that_never_ends_does_not_keep_the_command_from_ending(tmp_path, toys, wait):
    """After the result is printed and saved, the process ends, whatever a component still does."""
    rules = {"run_timeout_seconds": 0.05, "run_timer_compensation_seconds": 0.05}
    words = ["run", *toys.words({"a": {}}, execution=rules), "--results-dir", str(tmp_path / "deaf")]
    done = subprocess.run(
        [sys.executable, "-c", DEAF.replace("WAIT", wait), *words],
        env={"PYTHONPATH": f"{tmp_path / 'site'}:{Path(__file__).parents[1]}"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert 0 == done.returncode, done.stderr
    assert "status   completed" in done.stdout
    assert "left behind" in done.stderr
    assert "Traceback" not in done.stderr
