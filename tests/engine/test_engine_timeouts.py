"""Time limits: which one applies, who set it, what it stops, and what is told of it."""

from __future__ import annotations

import pytest

SHORT = 0.05


def _attempt(ran, task="a"):
    return ran.details()[task]["attempts"]["1"]


def _issues(ran, task="a"):
    return [(issue["severity"], issue["phase"], issue["code"]) for issue in _attempt(ran, task)["issues"]]


def _message(ran, number=0):
    return _attempt(ran)["issues"][number]["message"]


def _plan(ran):
    return next(event["payload"] for event in ran.events() if event["event"] == "execution_plan_resolved")


TASK = {"run_timeout_seconds": 30, "evaluation_timeout_seconds": 31}
PLAN = {"run_timeout_seconds": 20, "evaluation_timeout_seconds": 21}
GIVEN = {"run_timeout_seconds": 10, "evaluation_timeout_seconds": 11}
NULL = {"run_timeout_seconds": None, "evaluation_timeout_seconds": None}
HARNESS = {"default_run_timeout_seconds": 40}


@pytest.mark.seed("TO-03")
@pytest.mark.parametrize(
    ("execution", "plan", "task", "harness", "run", "evaluation"),
    [
        (
            GIVEN,
            PLAN,
            TASK,
            HARNESS,
            (10, "execution.run_timeout_seconds"),
            (11, "execution.evaluation_timeout_seconds"),
        ),
        (NULL, PLAN, TASK, HARNESS, (20, "benchmark toy"), (21, "benchmark toy")),
        ({}, PLAN, TASK, HARNESS, (20, "benchmark toy"), (21, "benchmark toy")),
        (NULL, {}, TASK, HARNESS, (30, "task a"), (31, "task a")),
        (NULL, {}, {}, HARNESS, (40, "harness toy"), None),
        (NULL, {}, {}, {}, None, None),
    ],
)
def test_a_budget_is_inherited_in_order(toys, execution, plan, task, harness, run, evaluation):
    """Request, benchmark, task, for the run the harness; null inherits; the plan names the source."""
    ran = toys.run({"a": task}, execution=execution, plan=plan, harness_params=harness)

    budgets = _plan(ran)["budgets"]
    found = [budget and (budget["seconds"], budget["source"]) for budget in (budgets["run"], budgets["evaluation"])]
    assert [run, evaluation] == found
    assert [run and run[0]] == toys.board.timeouts


@pytest.mark.seed("TO-03", "TO-06")
def test_a_harness_default_is_nothing_for_a_benchmark_that_runs_itself(toys):
    """Without a harness there is no such source, and no budget is no deadline."""
    ran = toys.run({"a": {}}, harness="none", harness_params={}, runs_itself=True)

    assert (None, 0) == (_plan(ran)["budgets"]["run"], ran.status)
    assert None is _attempt(ran)["limits"]["run_outer_seconds"]


@pytest.mark.seed("TO-04")
@pytest.mark.parametrize(
    ("factors", "run", "evaluation"),
    [
        ({}, 10, 11),
        ({"timeout_multiplier": 2}, 20, 22),
        ({"timeout_multiplier": 2, "run_timeout_multiplier": 3}, 30, 22),
        ({"timeout_multiplier": 2, "evaluation_timeout_multiplier": 0.5}, 20, 5.5),
        ({"run_timeout_multiplier": 3, "evaluation_timeout_multiplier": None}, 30, 11),
    ],
)
def test_multipliers_stretch_budgets_and_nothing_else(toys, factors, run, evaluation):
    """The phase's own replaces the common one; explicit budgets are stretched; other limits are not."""
    ran = toys.run({"a": {}}, execution={**GIVEN, **factors}, env_params={"setup": {"build_timeout_seconds": 9}})

    limits = _attempt(ran)["limits"]
    assert (run, evaluation) == (limits["run"]["seconds"], limits["evaluation"]["seconds"])
    assert ([run], run + 120) == (toys.board.timeouts, limits["run_outer_seconds"])
    assert (60, 9) == (limits["runresult_collect_timeout_seconds"], limits["build_timeout_seconds"])


@pytest.mark.seed("TO-04")
def test_a_multiplier_makes_no_deadline(toys):
    """Without a base there is none."""
    ran = toys.run({"a": {}}, execution={"timeout_multiplier": 2, "run_timeout_multiplier": 3})

    assert ({"run": None, "evaluation": None}, [None]) == (_plan(ran)["budgets"], toys.board.timeouts)


@pytest.mark.seed("TO-06", "TO-10")
def test_a_harness_gets_its_budget_and_the_compensation(toys):
    """It is told T; the outer limit is T and the compensation, and the issue says both and who set T."""
    rules = {"run_timeout_seconds": 0.02, "run_timeout_multiplier": 2, "run_timer_compensation_seconds": SHORT}
    ran = toys.run({"a": {"run": "hang", "answer": "part", "verdict": False}}, execution=rules)

    attempt = _attempt(ran)
    assert [0.04] == toys.board.timeouts
    assert [("error", "run", "run_timeout")] == _issues(ran)
    assert (
        "stopped after 0.09 s, the limit execution.run_timeout_seconds "
        "(0.04 s = 0.02 s x 2, set by execution.run_timeout_seconds) + 0.05 s compensation" == _message(ran)
    )
    assert ("part", {"correct": False}) == (attempt["final_answer"], attempt["metrics"])
    assert 0.09 <= attempt["seconds"]["run_harness"]
    assert [("run", "a")] == toys.board.cancelled
    assert 0 == ran.status


@pytest.mark.seed("TO-06")
def test_a_benchmark_that_runs_itself_gets_exactly_its_budget(toys):
    """No compensation is added, and none is named."""
    ran = toys.run(
        {"a": {"run": "hang", "run_timeout_seconds": SHORT}}, harness="none", harness_params={}, runs_itself=True
    )

    assert [("error", "run", "run_timeout")] == _issues(ran)[:1]
    assert "stopped after 0.05 s, the limit execution.run_timeout_seconds (0.05 s, set by task a)" == _message(ran)
    assert SHORT == _attempt(ran)["limits"]["run_outer_seconds"]


@pytest.mark.seed("TO-10")
def test_a_timeout_does_not_keep_a_right_answer_from_counting(toys):
    """The ERROR stays beside the value: a partial answer clears nothing, and is graded as it is."""
    rules = {"run_timeout_seconds": 0.01, "run_timer_compensation_seconds": SHORT}
    ran = toys.run({"a": {"run": "hang"}}, execution=rules)

    assert ([("error", "run", "run_timeout")], {"correct": True}) == (_issues(ran), _attempt(ran)["metrics"])
    assert [("run", "a"), ("kill", "a"), ("collect", "a"), ("finish", "a"), ("close", "a")] == toys.board.did[3:8]


@pytest.mark.seed("TO-03", "TO-10")
@pytest.mark.parametrize("mode", ["none", "reuse", "fresh"])
def test_a_grading_that_takes_too_long(toys, mode):
    """It is an ERROR evaluation_timeout with the limit, its value and who set it; nothing is scored."""
    ran = toys.run({"a": {"evaluate": "hang"}}, execution={"evaluation_timeout_seconds": SHORT}, mode=mode)

    assert [("error", "evaluate", "evaluation_timeout")] == _issues(ran)
    assert (
        "stopped after 0.05 s, the limit execution.evaluation_timeout_seconds "
        "(0.05 s, set by execution.evaluation_timeout_seconds)" == _message(ran)
    )
    assert ({}, []) == (_attempt(ran)["metrics"], toys.board.open)


@pytest.mark.seed("TO-05")
@pytest.mark.parametrize("run", ["error:slow:first", "ok"])
def test_a_collection_that_takes_too_long_is_told_beside_the_error_before(toys, run):
    """ERROR result_collect_failed, with its own limit; the error of the run stays, and nothing is scored."""
    ran = toys.run({"a": {"run": run, "collect": "hang"}}, execution={"runresult_collect_timeout_seconds": SHORT})

    first = [("error", "run", "slow")] if run != "ok" else []
    assert [*first, ("error", "collect", "result_collect_failed")] == _issues(ran)
    assert ({}, []) == (_attempt(ran)["metrics"], toys.board.open)
    assert "stopped after 0.05 s, the limit execution.runresult_collect_timeout_seconds" == _message(ran, -1)


@pytest.mark.seed("TO-05")
@pytest.mark.parametrize("run", ["ok", "error", "fatal", "raise", "hang", "timeout"])
def test_results_are_collected_however_the_run_ended(toys, run):
    """After success, error and timeout alike, and after the agent's processes are dead."""
    rules = {"run_timeout_seconds": 0.01, "run_timer_compensation_seconds": SHORT} if run == "hang" else {}
    ran = toys.run({"a": {"run": run, "answer": "kept"}}, execution=rules)

    steps = [step for step, _ in toys.board.did]
    assert "kept" == _attempt(ran)["final_answer"]
    assert ["run", "kill", "collect", "finish"] == steps[steps.index("run") :][:4]


@pytest.mark.seed("TO-05")
def test_the_former_name_of_the_collection_budget(toys):
    """It is still read, with a warning; with another value under the new name it is refused."""
    old = {"harness_result_timeout_seconds": 7}
    ran = toys.run({"a": {}}, execution=old)
    both = toys.run({"a": {}}, execution={**old, "runresult_collect_timeout_seconds": 8})

    assert 7 == _attempt(ran)["limits"]["runresult_collect_timeout_seconds"]
    assert "harness_result_timeout_seconds is deprecated" in ran.err
    assert (2, None, 1) == (both.status, both.run_dir, both.err.count("\n"))


@pytest.mark.seed("TO-02")
@pytest.mark.parametrize(("script", "phase"), [("hang", "setup"), (["ok", "hang"], "evaluate")])
def test_a_sandbox_that_takes_too_long_to_open(toys, script, phase):
    """Only that creation fails: FATAL environment_failed naming the limit; the other task is not concerned."""
    setup = {"setup": {"build_timeout_seconds": SHORT}}
    ran = toys.run({"a": {"open": script}, "b": {}}, env_params=setup, mode="fresh")

    assert [("fatal", phase, "environment_failed")] == _issues(ran)
    assert "stopped after 0.05 s, the limit setup.build_timeout_seconds" == _message(ran)
    assert [] == _issues(ran, "b")


@pytest.mark.seed("TO-02")
def test_the_time_to_open_does_not_limit_what_follows(toys):
    """Work in an open sandbox may take longer than its creation."""
    setup = {"setup": {"build_timeout_seconds": SHORT}}
    ran = toys.run({"a": {"run": "crowd:2"}}, env_params=setup)

    assert (0, []) == (ran.status, _issues(ran))
    assert SHORT < _attempt(ran)["seconds"]["run_harness"]


@pytest.mark.seed("TO-09")
def test_every_execution_starts_its_clocks_anew(toys):
    """Three executions that together use more than the budget are each within it, and so is the grading after them."""
    rules = {"run_timeout_seconds": 0.8, "evaluation_timeout_seconds": 0.8, "run_timer_compensation_seconds": 0.001}
    script = {"run": "crowd:2", "collect": ["fatal", "fatal", "ok"]}
    ran = toys.run({"a": script}, "--max-retries", "2", execution=rules)

    assert (0, [0.8, 0.8, 0.8], 3) == (ran.status, toys.board.timeouts, toys.board.times("run", "a"))
    assert [] == _issues(ran)


@pytest.mark.seed("TO-09")
def test_the_grading_clock_starts_when_the_verifier_is_ready(toys):
    """A verifier that opens slowly costs the grading nothing of its budget."""
    ran = toys.run({"a": {"open": ["ok", "crowd:2"]}}, execution={"evaluation_timeout_seconds": 0.2}, mode="fresh")

    assert ([], 0.25) == (_issues(ran), min(0.25, _attempt(ran)["seconds"]["evaluate_environment"]))


@pytest.mark.seed("TO-08")
@pytest.mark.parametrize("value", [0, -1, "NaN", "Infinity", '"x"', "true", "[]"])
@pytest.mark.parametrize(
    "field",
    [
        "run_timeout_seconds",
        "evaluation_timeout_seconds",
        "timeout_multiplier",
        "run_timeout_multiplier",
        "evaluation_timeout_multiplier",
        "run_timer_compensation_seconds",
        "runresult_collect_timeout_seconds",
    ],
)
def test_limits_take_finite_positive_numbers_only(toys, command, field, value):
    """Everything else is refused before anything starts, naming the field and the value."""
    ran = command("humaneval", "nop", "--execution-params", f'{{"{field}": {value}}}')

    assert (2, None, "") == (ran.status, ran.run_dir, ran.out)
    assert ran.err.startswith(f"error: execution.{field}: ")
    assert 1 == ran.err.count("\n")


@pytest.mark.seed("TO-08")
@pytest.mark.parametrize("value", [0, -1, "NaN", "Infinity", '"x"'])
def test_the_limit_of_an_opening_likewise(command, value):
    """The environment's own limit is checked alike."""
    ran = command("humaneval", "nop", "--env-params", f'{{"setup": {{"build_timeout_seconds": {value}}}}}')

    assert (2, None) == (ran.status, ran.run_dir)
    assert ran.err.startswith("error: environments.host_process.setup.build_timeout_seconds: ")


@pytest.mark.seed("TO-01")
def test_the_deadline_of_the_run_may_be_switched_off(toys):
    """0 is no deadline; the default is a hundred hours."""
    from agentcompass.core.config.sections import parse_runtime

    assert (0, 360000.0) == (toys.run({"a": {}}, "--timeout-seconds", "0").status, parse_runtime({}).timeout_seconds)


@pytest.mark.seed("TO-01")
@pytest.mark.parametrize("step", ["open", "prepare", "start", "run", "evaluate"])
def test_the_deadline_of_the_run_ends_whatever_is_under_way(toys, step):
    """Unfinished work is cancelled and tidied up; the state, the exit code and the summary say so."""
    tasks = {"done": {}, "late": {step: "hang"}, "never": {}}
    ran = toys.run(tasks, "--timeout-seconds", "0.8", "--task-concurrency", "1", mode="reuse")

    info, counts = ran.document("run_info.json"), ran.document("metrics.json")["series"][0]["counts"]
    assert (1, "timed_out") == (ran.status, info["status"])
    assert "the whole run was stopped after 0.8 s, the limit runtime.timeout_seconds" == info["error"]
    assert (1, 2, 0) == (counts["evaluated"], counts["unavailable"], counts["invalidated"])
    assert ([(step, "late")], []) == (toys.board.cancelled, toys.board.open)
    assert 0 == toys.board.times("run", "never")
    assert "timed_out" in (ran.run_dir / "summary.md").read_text()


@pytest.mark.seed("TO-01")
def test_the_deadline_covers_the_loading_of_tasks(toys, monkeypatch):
    """A benchmark that is stuck in its data is left behind."""
    from threading import Event

    from support.toys import ToyBenchmark

    over = Event()
    monkeypatch.setattr(ToyBenchmark, "load_tasks", lambda self: over.wait(30))
    ran = toys.run({"a": {}}, "--timeout-seconds", "0.1")
    over.set()

    assert (1, "timed_out") == (ran.status, ran.document("run_info.json")["status"])


@pytest.mark.seed("TO-01", "TO-10")
def test_a_deadline_still_collects_what_the_agent_did(toys):
    """What is there when the run is stopped is collected within the grace, and kept as cancelled."""
    ran = toys.run({"a": {"run": "hang", "answer": "half"}}, "--timeout-seconds", "0.6")

    attempt = ran.document("attempts/a/1/result.json")
    assert ("cancelled", "half") == (attempt["status"], attempt["final_answer"])
