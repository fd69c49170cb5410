"""Continuing an earlier run: what is finished stands, what is missing runs, and why is written down."""

from __future__ import annotations

import json
import shutil

import pytest
from support.toys import toys

__all__ = ["toys"]

MIXED = {
    "right": {},
    "warned": {"run": "warning:w:odd"},
    "reset": {"run": "error:lost:connection reset"},
    "other": {"run": "error:wrong:no"},
    "fatal": {"run": "fatal:down:quota"},
}
MENDED = {task: {} for task in MIXED}


def _again(toys, tasks, *options, **more):
    toys.board.did.clear()
    ran = toys.run(tasks, "--reuse", *options, **more)
    return ran, [task for step, task in toys.board.did if step == "run"]


@pytest.mark.seed("RE-02", "RE-04")
@pytest.mark.parametrize(
    ("policy", "reran", "failed"),
    [
        ({}, [], ["fatal"]),
        ({"max_retries": 1}, ["fatal"], []),
        ({"max_retries": 1, "retry_pattern_list": ["reset"]}, ["reset", "fatal"], []),
        ({"max_retries": 1, "retry_pattern_list": ["^wrong$"]}, ["other", "fatal"], []),
        ({"retry_pattern_list": ["reset"]}, [], ["fatal"]),
    ],
)
def test_what_calls_for_a_retry_runs_again_while_there_is_a_budget(toys, policy, reran, failed):
    """FATAL and matching ERROR under the policy of now; other ERROR and WARNING stand; no budget makes no success."""
    first = toys.run(MIXED)
    ran, seen = _again(toys, MENDED, execution=policy)
    issues = {task: [i["severity"] for i in d["attempts"]["1"]["issues"]] for task, d in ran.details().items()}

    assert reran == seen
    assert failed == [task for task, found in issues.items() if "fatal" in found]
    assert first.document("run_info.json")["run_id"] == ran.document("run_info.json")["reused_from"]["run_id"]
    assert 5 == ran.document("metrics.json")["series"][0]["counts"]["total"]


@pytest.mark.seed("RE-02", "RR-03")
def test_everything_stands_of_a_complete_run(toys):
    """No task is executed; documents, counters and the score are those of the source, which is not touched."""
    tasks = {"a": {"verdict": True}, "b": {"verdict": False}}
    first = toys.run(tasks, "--k", "2")
    before = {path: path.read_bytes() for path in first.run_dir.rglob("*") if path.is_file()}
    ran, seen = _again(toys, tasks, "--k", "2")
    progress = ran.document("progress.json")

    assert [] == seen
    assert first.details() == ran.details()
    assert first.document("metrics.json") == ran.document("metrics.json")
    assert (2, 2, 0) == tuple(progress[name] for name in ("reused_tasks", "completed_tasks", "attempts_started"))
    (event,) = [event for event in ran.events() if event["event"] == "reuse_loaded"]
    assert {"reused_tasks": 2, "tasks_to_run": 0} == event["payload"]
    assert before == {path: path.read_bytes() for path in first.run_dir.rglob("*") if path.is_file()}
    assert "resolved_execution_plans" not in ran.document("run_info.json")


@pytest.mark.seed("RE-05")
def test_an_interrupted_task_keeps_its_final_attempts(toys):
    """Only the attempts that are missing run, whatever their numbers."""
    first = toys.run({"a": {}}, "--k", "3")
    shutil.rmtree(first.run_dir / "attempts" / "a" / "2")
    (first.run_dir / "details" / "a.json").unlink()
    ran, seen = _again(toys, {"a": {}}, "--k", "3")

    assert ["a"] == seen
    assert {"1", "2", "3"} == set(ran.details()["a"]["attempts"])
    assert 2 == ran.document("run_info.json")["reused_from"]["attempts"]


@pytest.mark.seed("RE-05")
def test_a_success_that_stands_ends_the_attempts(toys):
    """With strategy pass nothing more is tried."""
    tasks = {"a": {"verdict": {"1": False, "2": True}}, "b": {"verdict": False}}
    strategy = ("--k", "4", "--attempt-strategy", "pass")
    first = toys.run(tasks, *strategy)
    shutil.rmtree(first.run_dir / "details")
    shutil.rmtree(first.run_dir / "attempts" / "b" / "4")
    ran, seen = _again(toys, tasks, *strategy)

    assert ["b"] == seen
    assert [2, 4] == [len(ran.details()[task]["attempts"]) for task in ("a", "b")]


def test_a_plan_that_grew_runs_the_new_tasks(toys):
    """More tasks than the source had."""
    toys.run({"a": {}})
    ran, seen = _again(toys, {"a": {}, "b": {}})

    assert ["b"] == seen
    assert {"a", "b"} == set(ran.details())


@pytest.mark.seed("RE-02")
def test_a_source_can_be_named(toys):
    """By its id; the latest otherwise."""
    toys.run({"a": {"answer": "first"}}, "--run-id", "one")
    toys.run({"a": {"answer": "second"}}, "--run-id", "two")
    named = toys.run({"a": {}}, "--reuse", "one")

    assert "first" == named.details()["a"]["attempts"]["1"]["final_answer"]
    assert "one" == named.document("run_info.json")["reused_from"]["run_id"]


@pytest.mark.seed("RE-03")
@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--reuse", "nowhere"], "--reuse: there is no run 'nowhere' in"),
        (["--reuse", "one", "--k", "2"], "has k=1 and strategy avg, this run k=2 and avg; use the same attempt plan"),
        (["--reuse", "broken"], "cannot be read"),
    ],
)
def test_a_named_source_that_does_not_fit_is_refused(toys, options, part):
    """In one line, before anything is made."""
    first = toys.run({"a": {}}, "--run-id", "one")
    (first.run_dir.parent / "broken").mkdir()
    (first.run_dir.parent / "broken" / "run_info.json").write_text('{"schema_version": 1}')
    ran = toys.run({"a": {}}, *options)

    assert (2, None) == (ran.status, ran.run_dir)
    assert part in ran.err


@pytest.mark.seed("RE-03")
def test_the_latest_that_fits_is_continued(toys):
    """One with another attempt plan is passed over, and told."""
    toys.run({"a": {}}, "--run-id", "one")
    toys.run({"a": {}}, "--run-id", "two", "--k", "2")
    ran = toys.run({"a": {}}, "--reuse", quiet=False)

    assert "one" == ran.document("run_info.json")["reused_from"]["run_id"]
    assert "passed over: --reuse:" in ran.err


def test_nothing_to_continue_is_no_error(toys):
    """The run is simply the first."""
    ran = toys.run({"a": {}}, "--reuse")

    assert 0 == ran.status
    assert "reused_from" not in ran.document("run_info.json")


@pytest.mark.seed("RE-09")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d.pop("issues"), "it has no issues"),
        (lambda d: d.update(error="x"), "it has an error beside its issues"),
        (lambda d: d.update(schema_version="agentcompass.attempt.v2"), "its schema is 'agentcompass.attempt.v2'"),
        (lambda d: d.update(metrics={"correct": "yes"}), "malformed"),
    ],
)
def test_one_record_that_cannot_be_used_costs_itself_only(toys, change, reason):
    """It is executed again, and the run's record says why."""
    first = toys.run({"a": {}, "b": {}})
    path = first.run_dir / "attempts" / "a" / "1" / "result.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    ran, seen = _again(toys, {"a": {}, "b": {}})
    (refused,) = ran.document("run_info.json")["reused_from"]["refused"]

    assert ["a"] == seen
    assert ("a", 1) == (refused["task_id"], refused["attempt"])
    assert reason in refused["reason"]


@pytest.mark.parametrize("cut", [0, 1, 50, -1])
def test_a_torn_record_costs_itself_only(toys, cut):
    """Whatever of it is on disk."""
    first = toys.run({"a": {}, "b": {}}, mode="reuse")
    path = first.run_dir / "attempts" / "a" / "1" / "result.json"
    path.write_bytes(path.read_bytes()[:cut])
    ran, seen = _again(toys, {"a": {}, "b": {}}, mode="reuse")

    assert (0, ["a"]) == (ran.status, seen)


def _checkpoint(ran, task="a"):
    return ran.run_dir / "attempts" / task / "1" / "checkpoint.json"


def _cut_before_grading(ran, task="a"):
    """Leave what a kill leaves while the grader works."""
    shutil.rmtree(ran.run_dir / "details")
    (ran.run_dir / "attempts" / task / "1" / "result.json").unlink()


@pytest.mark.seed("RE-06")
@pytest.mark.parametrize("mode", ["none", "fresh"])
def test_work_that_was_not_graded_is_graded_alone(toys, mode):
    """The agent does not run again, and what it brought back is graded."""
    first = toys.run({"a": {"answer": "first", "usage": {"model_calls": 3}}}, mode=mode)
    _cut_before_grading(first)
    ran, seen = _again(toys, {"a": {"answer": "second"}}, mode=mode)
    attempt = ran.details()["a"]["attempts"]["1"]

    assert ([], 0) == (seen, ran.status)
    assert ("first", 3, True) == (
        attempt["final_answer"],
        attempt["usage"]["model_calls"],
        attempt["metrics"]["correct"],
    )
    assert _checkpoint(ran).exists()
    assert ["evaluate" if mode == "none" else "evaluate_environment"] == [
        event["phase"] for event in ran.events() if event["event"] == "phase_changed" and event["phase"] != "plan"
    ][:1]


@pytest.mark.seed("RE-06")
def test_without_the_sandbox_the_attempt_runs_again(toys):
    """Mode reuse saves no checkpoint."""
    first = toys.run({"a": {}}, mode="reuse")
    assert not _checkpoint(first).exists()
    _cut_before_grading(first)

    assert ["a"] == _again(toys, {"a": {}}, mode="reuse")[1]


@pytest.mark.seed("RE-08")
def test_checkpoints_can_be_left_alone(toys):
    """Finished work still stands, and new checkpoints are saved."""
    first = toys.run({"a": {}, "b": {}})
    _cut_before_grading(first)
    ran, seen = _again(toys, {"a": {}, "b": {}}, "--no-checkpoint-resume")

    assert ["a"] == seen
    assert _checkpoint(ran).exists()


@pytest.mark.seed("RE-04", "RE-06", "ER-05")
def test_a_grading_that_failed_is_repeated_alone(toys):
    """Under the budget of now; without one the failure stays."""
    toys.run({"a": {"evaluate": "fatal:judge_failed:x"}})
    none, nothing = _again(toys, {"a": {}})
    ran, seen = _again(toys, {"a": {}}, execution={"max_retries": 1})

    assert ([], []) == (nothing, seen)
    assert 1 == none.status
    assert (0, 1) == (ran.status, ran.details()["a"]["attempts"]["1"]["retry_count"])


@pytest.mark.seed("RE-07")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d.update(schema_version="agentcompass.evaluation_checkpoint.v3"), "its schema is"),
        (lambda d: d.update(attempt=2), "it is of 'a', attempt 2"),
        (lambda d: d.update(source_evaluation_mode="fresh"), "it was to be graded with 'fresh', not 'none'"),
        (
            lambda d: d["network_policy"].update(network_mode="no-network"),
            "network policy of the grading is another",
        ),
        (lambda d: d.pop("run_result"), "malformed"),
        (lambda d: d.clear(), "it is of None"),
    ],
)
def test_a_checkpoint_that_cannot_be_used_is_explained(toys, change, reason):
    """And the attempt runs as usual."""
    first = toys.run({"a": {}})
    _cut_before_grading(first)
    document = json.loads(_checkpoint(first).read_text())
    change(document)
    _checkpoint(first).write_text(json.dumps(document))
    ran, seen = _again(toys, {"a": {}})
    (refused,) = ran.document("run_info.json")["reused_from"]["refused"]

    assert (0, ["a"]) == (ran.status, seen)
    assert refused["reason"].startswith("its checkpoint cannot be used: ")
    assert reason in refused["reason"]


@pytest.mark.seed("RE-07")
def test_a_torn_checkpoint_is_no_checkpoint(toys):
    """Wherever it is torn: the attempt runs again, and nothing breaks."""
    first = toys.run({"a": {}})
    _cut_before_grading(first)
    whole = _checkpoint(first).read_bytes()
    for cut in (0, 1, *range(7, len(whole) - 1, len(whole) // 12)):
        _checkpoint(first).write_bytes(whole[:cut])
        toys.board.did.clear()
        ran = toys.run({"a": {}}, "--reuse", first.run_dir.name)

        assert 0 == ran.status
        assert 1 == toys.board.times("run", "a")


@pytest.mark.seed("RE-07")
@pytest.mark.parametrize("script", [{"telemetry": {"key": "sk-planted-secret-value"}}])
def test_what_holds_a_secret_has_no_checkpoint(toys, script, monkeypatch):
    """It could not be graded from what may be written."""
    monkeypatch.setenv("PLANTED_API_KEY", "sk-planted-secret-value")

    assert not _checkpoint(toys.run({"a": script})).exists()


def test_totals_carry_over_in_chains(toys):
    """What was spent stays spent; links do not grow."""
    tasks = {"a": {"usage": {"model_calls": 2}}, "b": {"usage": {"model_calls": 3}}}
    toys.run({**tasks, "a": {**tasks["a"], "collect": "returns:fatal:x:y"}})
    second, seen = _again(toys, tasks, execution={"max_retries": 1})
    third, nothing = _again(toys, tasks, execution={"max_retries": 1})
    attempt = third.details()["a"]["attempts"]["1"]

    assert (["a"], []) == (seen, nothing)
    assert (2, 2, 1) == (
        attempt["usage"]["model_calls"],
        attempt["discarded_usage"]["model_calls"],
        attempt["retry_count"],
    )
    assert second.document("metrics.json") == third.document("metrics.json")


@pytest.mark.seed("RE-03")
def test_what_a_success_makes_needless_is_not_begun_again(toys):
    """With early stop, an attempt that was cut short beside one that succeeded is neither resumed nor refused."""
    options = ("--k", "3", "--attempt-strategy", "pass")
    first = toys.run({"a": {"verdict": True}}, *options)
    shutil.copytree(first.run_dir / "attempts" / "a" / "1", first.run_dir / "attempts" / "a" / "2")
    path = first.run_dir / "attempts" / "a" / "2" / "result.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "attempt": 2, "status": "cancelled"}))
    ran, seen = _again(toys, {"a": {"verdict": True}}, *options)
    reused = ran.document("run_info.json")["reused_from"]

    assert [] == seen
    assert (1, []) == (reused["attempts"], reused["refused"])


def test_a_task_tells_what_stands_of_it(toys):
    """A failure that a success makes needless is neither repeated nor told any more."""
    options = ("--k", "2", "--attempt-strategy", "pass")
    first = toys.run({"a": {"verdict": True}}, *options)
    (path,) = (first.run_dir / "details").glob("*.json")
    task = json.loads(path.read_text())
    fatal = {"severity": "fatal", "phase": "run", "code": "x", "message": "y"}
    failed = {**task["attempts"]["1"], "issues": [fatal], "metrics": {}, "status": "run_error"}
    path.write_text(json.dumps({**task, "attempts": {**task["attempts"], "2": failed}}))
    result = json.loads((first.run_dir / "attempts/a/1/result.json").read_text())
    (first.run_dir / "attempts/a/2").mkdir()
    (first.run_dir / "attempts/a/2/result.json").write_text(json.dumps({**result, **failed, "attempt": 2}))
    ran, seen = _again(toys, {"a": {"verdict": True}}, *options, execution={"max_retries": 1})

    assert [] == seen
    assert ["1"] == list(ran.details()["a"]["attempts"])
    assert 0 == ran.status


@pytest.mark.seed("RE-03")
def test_what_differs_is_shown(toys):
    """Settings and tasks may differ; their results are used, and the difference is told and recorded."""
    toys.run({"a": {}, "b": {}}, "--limit", "2")
    ran = toys.run({"a": {}, "b": {"ground_truth": "another"}, "c": {}}, "--limit", "3", "--reuse", quiet=False)
    reused = ran.document("run_info.json")["reused_from"]
    again = toys.run({"a": {}, "b": {"ground_truth": "another"}, "c": {}}, "--limit", "3", "--reuse")

    assert (2, ["b"]) == (reused["attempts"], reused["changed_tasks"])
    assert {"field": "benchmark.params.limit", "before": 2, "now": 3} in reused["differences"]
    assert "although benchmark.params.limit was 2 there and is 3 now" in ran.err
    assert "although these tasks ask or expect something else now: b" in ran.err
    assert not {"differences", "changed_tasks"} & again.document("run_info.json")["reused_from"].keys()


def _spent_only(ran):
    """Leave what a kill leaves before anything is executed again."""
    shutil.rmtree(ran.run_dir / "details")
    for name in ("result.json", "checkpoint.json"):
        (ran.run_dir / "attempts" / "a" / "1" / name).unlink(missing_ok=True)


def test_what_was_spent_is_known_after_two_kills(toys):
    """The second run dies before it has executed anything of what it was to execute again."""
    script = {"usage": {"model_calls": 2}}
    toys.run({"a": {**script, "collect": "returns:fatal:x:y"}})
    second, _ = _again(toys, {"a": script}, execution={"max_retries": 1})
    _spent_only(second)
    third, seen = _again(toys, {"a": script}, execution={"max_retries": 1})
    attempt = third.details()["a"]["attempts"]["1"]

    assert ["a"] == seen
    assert (2, 2) == (attempt["usage"]["model_calls"], attempt["discarded_usage"]["model_calls"])


def test_work_that_cannot_be_graded_any_more_was_paid_for(toys):
    """Its checkpoint is refused, and tells what it has cost all the same."""
    first = toys.run({"a": {"usage": {"model_calls": 3}}}, mode="fresh")
    _cut_before_grading(first)
    checkpoint = json.loads(_checkpoint(first).read_text())
    _checkpoint(first).write_text(json.dumps({**checkpoint, "source_evaluation_mode": "none"}))
    ran, seen = _again(toys, {"a": {"usage": {"model_calls": 5}}}, mode="fresh")
    attempt = ran.details()["a"]["attempts"]["1"]

    assert ["a"] == seen
    assert (5, 3) == (attempt["usage"]["model_calls"], attempt["discarded_usage"]["model_calls"])


@pytest.mark.parametrize(("told", "spent"), [(False, 3), (True, 2)])
def test_a_kill_between_a_retry_and_its_record_costs_nothing_twice(toys, told, spent):
    """The checkpoint of a replaced execution tells its cost as long as its record does not."""
    failing = {"usage": {"model_calls": 2}, "collect": "returns:fatal:x:y"}
    first = toys.run({"a": failing if told else {"usage": {"model_calls": 3}}}, execution={"max_retries": 1})
    folder = first.run_dir / "attempts" / "a" / "1"
    (folder / "retries").mkdir(exist_ok=True)
    other = toys.run({"a": {"usage": {"model_calls": 3}}}, "--run-id", "other")
    shutil.copy(_checkpoint(other), folder / "retries" / "1.checkpoint.json")
    shutil.rmtree(other.run_dir)
    _spent_only(first)
    second, seen = _again(toys, {"a": {"usage": {"model_calls": 5}}})
    attempt = second.details()["a"]["attempts"]["1"]

    assert ["a"] == seen
    assert (5, spent) == (attempt["usage"]["model_calls"], attempt["discarded_usage"]["model_calls"])


def test_what_a_retry_replaced_was_spent_though_the_run_was_killed(toys):
    """Its record is all that there is of the attempt; the budget is a new one."""
    failing = {"usage": {"model_calls": 2}, "collect": "returns:fatal:x:y"}
    first = toys.run({"a": failing}, execution={"max_retries": 1})
    assert 1 == len(list(first.run_dir.glob("attempts/a/1/retries/*.json")))
    _spent_only(first)
    second, seen = _again(toys, {"a": {"usage": {"model_calls": 5}}}, execution={"max_retries": 1})
    attempt = second.details()["a"]["attempts"]["1"]

    assert ["a"] == seen
    assert (5, 2, 0) == (
        attempt["usage"]["model_calls"],
        attempt["discarded_usage"]["model_calls"],
        attempt["retry_count"],
    )


def test_a_source_that_died_while_copying_is_no_worse_than_its_own(toys):
    """What it had not taken over yet is found behind it."""
    tasks = {"a": {}, "b": {}}
    toys.run(tasks, "--run-id", "one")
    second = toys.run(tasks, "--reuse", "one", "--run-id", "two")
    info = second.document("run_info.json")
    info["reused_from"] = {"run_id": "one", "path": info["reused_from"]["path"], "complete": False}
    (second.run_dir / "run_info.json").write_text(json.dumps(info))
    shutil.rmtree(second.run_dir / "attempts" / "b")
    (second.run_dir / "details" / "b.json").unlink()
    ran, seen = _again(toys, tasks, "--run-id", "three")

    assert [] == seen
    assert "two" == ran.document("run_info.json")["reused_from"]["run_id"]
    assert {"a", "b"} == set(ran.details())


def test_failures_that_stay_are_told_with_the_mend(toys):
    """One line says how many, and how they are executed again."""
    toys.run({"a": {"run": "fatal:x:y"}})
    ran = toys.run({"a": {}}, "--reuse", quiet=False)

    assert 1 == ran.status
    assert "1 attempts stay failed, since max_retries is 0; --max-retries 1 executes them again" in ran.err
