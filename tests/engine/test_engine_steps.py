"""Tasks of several steps: the agent is asked again in the same sandbox, each step graded before the next."""

from __future__ import annotations

import pytest


def _attempt(ran):
    return ran.details()["a"]["attempts"]["1"]


def _run(toys, script, **more):
    return toys.run({"a": script}, scalar=True, **{"steps": 3, "mode": "reuse", **more})


def test_each_step_is_run_and_graded_in_turn(toys):
    """One sandbox, three sessions, three verdicts, one score, and what all of it used."""
    ran = _run(toys, {"verdict": [1.0, 0.5, 0.0], "usage": {"model_calls": 2}})
    attempt = _attempt(ran)

    assert 0 == ran.status
    assert 0.5 == attempt["metrics"]["score"]
    assert [1.0, 0.5, 0.0] == attempt["meta"]["benchmark"]["steps"]
    assert 6 == attempt["usage"]["model_calls"]
    assert "open public|run|grade|next|run|grade|next|run|grade|next".split("|") == toys.board.networks
    assert [1, 3, 3] == [toys.board.times(step, "a") for step in ("open", "run", "finish")]
    assert ["", "step 2", "step 3"] == toys.board.prompts


def test_a_benchmark_may_end_early(toys):
    """Steps that are not reached count for nothing."""
    ran = _run(toys, {"next": ["ok", "end"], "verdict": 1.0})

    assert 2 / 3 == pytest.approx(_attempt(ran)["metrics"]["score"])
    assert 2 == toys.board.times("run", "a")


def test_a_fresh_verifier_for_each_step(toys):
    """The agent's sandbox stays open meanwhile."""
    ran = _run(toys, {"verdict": 1.0}, mode="fresh")

    assert 1.0 == _attempt(ran)["metrics"]["score"]
    assert 4 == toys.board.times("open", "a")
    assert [] == toys.board.open


@pytest.mark.seed("ER-05")
@pytest.mark.parametrize("mode", ["reuse", "fresh", "none"])
def test_a_retry_begins_with_the_first_step(toys, mode):
    """The sandbox has gone on since: a failed grading cannot be repeated alone."""
    script = {"evaluate": ["ok", "fatal:x:y", "ok"], "verdict": 1.0}
    ran = _run(toys, script, mode=mode, execution={"max_retries": 1})

    assert 1.0 == _attempt(ran)["metrics"]["score"]
    assert 2 + 3 == toys.board.times("run", "a")


def test_a_step_that_times_out_is_graded_and_the_next_is_asked(toys):
    """An ERROR does not end the attempt, and stays."""
    ran = _run(toys, {"run": ["timeout", "ok"], "verdict": 1.0})

    assert ["harness_timeout"] == [issue["code"] for issue in _attempt(ran)["issues"]]
    assert 1.0 == _attempt(ran)["metrics"]["score"]


@pytest.mark.parametrize("step", ["run", "evaluate", "next"])
def test_a_fatal_step_ends_the_attempt_without_a_score(toys, step):
    """Wherever it happens, what was graded before is no score."""
    ran = _run(toys, {step: ["ok", "fatal:toy:no"], "verdict": 1.0})

    assert {} == _attempt(ran)["metrics"]
    assert "fatal" in [issue["severity"] for issue in _attempt(ran)["issues"]]
    assert [] == toys.board.open
