"""When there is an official score, and what stands in its place when there is none."""

from __future__ import annotations

import itertools

import pytest

NEVER = {"run": "fatal"}
WRONG = {"verdict": False}


def _series(ran, name=None):
    series = ran.document("metrics.json")["series"]
    return next(entry for entry in series if name in (None, entry["series_id"]))


@pytest.mark.seed("ER-07", "CL-07")
def test_one_fatal_attempt_invalidates_its_task_in_every_metric(toys):
    """Another attempt's success does not save it: official values are null, the valid tasks give the reference."""
    ran = toys.run({"a": {"run": {"2": "fatal"}}, "b": WRONG, "c": {}}, "--k", "3")

    metrics = ran.document("metrics.json")
    assert (1, True, "failed") == (ran.status, metrics["evaluation_failed"], ran.document("run_info.json")["status"])
    assert {None} == {entry["value"] for entry in metrics["series"]}
    assert [0.5, 0.5] == [entry["reference_value"] for entry in metrics["series"]]
    assert {1} == {entry["counts"]["invalidated"] for entry in metrics["series"]}
    assert {"1", "2", "3"} == set(ran.details()["a"]["attempts"])
    assert "(reference)" in ran.out


@pytest.mark.seed("ER-07")
def test_without_a_valid_task_both_values_are_null(toys):
    """Nothing is made up."""
    ran = toys.run({"a": NEVER, "b": NEVER})

    assert (None, None) == (_series(ran)["value"], _series(ran)["reference_value"])
    assert {"total": 2, "evaluated": 0, "error": 2, "unavailable": 0, "invalidated": 2} == _series(ran)["counts"]
    assert 1 == ran.status
    assert "nan" not in ran.out.lower()


@pytest.mark.seed("ER-07", "ER-03")
def test_reference_scores_leave_invalid_tasks_out_of_their_weights(toys):
    """With categories alike, the category whose only task is invalid does not count as zero."""
    tasks = {"a": {**NEVER, "category": "x"}, "b": {"category": "y"}, "c": {**WRONG, "category": "z"}}
    ran = toys.run(tasks, aggregation_mode="category_mean")

    assert (None, 0.5) == (_series(ran)["value"], _series(ran)["reference_value"])


@pytest.mark.seed("ER-08")
def test_counts_add_up_whatever_happens(toys):
    """Right, wrong, without a value, with an ERROR, with a FATAL: each task is in one count, an ERROR beside it."""
    tasks = {
        "right": {},
        "wrong": WRONG,
        "none": {"verdict": {"1": {}}},
        "error": {"run": "error"},
        "ungraded": {"evaluate": "raise"},
        "fatal": NEVER,
    }
    ran = toys.run(tasks)

    counts = _series(ran)["counts"]
    assert {"total": 6, "evaluated": 3, "unavailable": 2, "invalidated": 1, "error": 3} == counts
    assert "6 tasks = 3 evaluated + 2 unavailable + 1 invalidated" in ran.out


@pytest.mark.seed("ER-08")
def test_an_attempt_counts_once_however_many_issues_it_has(toys):
    """Two ERRORs and a WARNING in one attempt are one failed attempt; a resolved retry is none."""
    tasks = {
        "a": {"run": "error:x", "collect": "returns:error:y", "close": "raise"},
        "b": {"close": "raise"},
        "c": {"run": ["fatal", "ok"]},
    }
    ran = toys.run(tasks, "--max-retries", "1")

    assert 1 == _series(ran)["counts"]["error"]
    assert "1 of 3 finished attempts ended with ERROR or FATAL" in ran.out


@pytest.mark.seed("ER-03")
@pytest.mark.parametrize(("verdict", "value"), [(True, 1.0), (False, 0.0)])
def test_an_error_does_not_override_a_valid_score(toys, verdict, value):
    """The value stands as the grader gave it."""
    ran = toys.run({"a": {"run": "error", "verdict": verdict}})

    assert (0, value) == (ran.status, _series(ran)["value"])


@pytest.mark.seed("ER-03", "ER-08")
def test_no_value_is_no_zero(toys):
    """A task that could not be graded is unavailable; the mean is over the others, and says so."""
    ran = toys.run({"a": {"evaluate": "raise"}, "b": {}})

    assert {"total": 2, "evaluated": 1, "unavailable": 1, "invalidated": 0, "error": 1} == _series(ran)["counts"]
    assert {} == ran.details()["a"]["attempts"]["1"]["metrics"]


def test_the_files_of_failed_tasks_have_a_prefix(toys):
    """A final FATAL or ERROR is ``_error_<task>.json``, a WARNING is not."""
    ran = toys.run({"a": NEVER, "b": {"run": "error"}, "c": {"close": "raise"}, "d": {}})

    assert ["_error_a.json", "_error_b.json", "c.json", "d.json"] == sorted(
        path.name for path in (ran.run_dir / "details").iterdir()
    )


@pytest.mark.seed("ER-08")
def test_the_strategy_pass_stops_at_the_first_success(toys):
    """What was not needed is no missing attempt: the task is evaluated, and nothing more is executed."""
    ran = toys.run({"a": {"verdict": {"1": False, "2": True}}, "b": WRONG}, "--k", "4", "--attempt-strategy", "pass")

    assert (2, 4) == (toys.board.times("run", "a"), toys.board.times("run", "b"))
    assert (0, 0.5) == (ran.status, _series(ran)["value"])
    assert {"total": 2, "evaluated": 2, "unavailable": 0, "invalidated": 0, "error": 0} == _series(ran)["counts"]
    assert ({"1", "2"}, 4) == (set(ran.details()["a"]["attempts"]), ran.details()["a"]["attempt_plan"]["k"])


def test_the_strategy_pass_is_serial(toys):
    """An attempt starts when the one before has failed, so that no success is paid for twice."""
    toys.run({"a": WRONG}, "--k", "4", "--attempt-strategy", "pass")

    assert 1 == toys.board.peak["run"]


@pytest.mark.seed("ER-07")
def test_a_success_after_a_fatal_attempt_does_not_stop_or_save(toys):
    """With pass, an attempt that ended FATAL invalidates the task although a later one succeeds."""
    ran = toys.run({"a": {"run": {"1": "fatal"}}}, "--k", "3", "--attempt-strategy", "pass")

    assert (1, None, 1) == (ran.status, _series(ran)["value"], _series(ran)["counts"]["invalidated"])


def test_speculative_attempts_run_ahead(toys):
    """With speculative they start together; what had started when one succeeded is kept, the rest is withdrawn."""
    ran = toys.run(
        {"a": {"run": "crowd:2"}},
        *("--k", "4", "--attempt-strategy", "pass", "--task-concurrency", "2"),
        execution={"speculative": True},
    )

    assert (0, 2, 2) == (ran.status, toys.board.peak["run"], toys.board.times("run", "a"))
    assert ({"1", "2"}, 1.0) == (set(ran.details()["a"]["attempts"]), _series(ran)["value"])


def test_a_speculative_run_of_failures_is_complete(toys):
    """Without any success all k attempts are executed and counted."""
    ran = toys.run({"a": WRONG}, "--k", "3", "--attempt-strategy", "pass", execution={"speculative": True})

    assert ({"1", "2", "3"}, 0.0) == (set(ran.details()["a"]["attempts"]), _series(ran)["value"])


@pytest.mark.parametrize("fates", list(itertools.product(("ok", "error", "fatal"), repeat=2)))
def test_the_exit_code_tells_whether_there_is_an_official_score(toys, fates):
    """0 exactly when no task is invalid; then the first series has a value."""
    ran = toys.run({name: {"run": fate} for name, fate in zip("ab", fates, strict=True)})

    assert (1 if "fatal" in fates else 0) == ran.status
    assert ("fatal" in fates) == (_series(ran)["value"] is None)


def test_a_scalar_metric_refuses_pass_before_anything_starts(toys):
    """There is no such thing as any success of a number."""
    ran = toys.run({"a": {}}, "--k", "2", "--attempt-strategy", "pass", scalar=True)

    assert (2, None) == (ran.status, ran.run_dir)
    assert ran.err.startswith("error: execution.attempts.strategy: pass needs a binary primary metric")
    assert 1 == ran.err.count("\n")


def test_a_run_without_any_value_is_no_success(toys):
    """When every grading fails, no zero is invented, and the exit code does not say that there is a score."""
    ran = toys.run({"a": {"evaluate": "raise"}, "b": {"evaluate": "raise"}})

    series = ran.document("metrics.json")["series"][0]
    assert (1, "failed", None) == (ran.status, ran.document("run_info.json")["status"], series["value"])
    assert (2, 0) == (series["counts"]["unavailable"], series["counts"]["invalidated"])
    assert "no task has a value" in ran.out
