"""``agentcompass rescore``: saved work is graded again, and no agent runs."""

from __future__ import annotations

import json

import pytest

from agentcompass.adapters.cli.main import main


@pytest.fixture
def rescore(toys, capsys):
    """Return a function that rescores a run under other verdicts; gives status, new run's details, stderr."""

    def run(first, scripts, *words):
        toys.board.did.clear()
        before = set(first.run_dir.parent.iterdir())
        params = json.dumps({"tasks": scripts})
        status = main(["rescore", str(first.run_dir), "--benchmark-params", params, "--progress", "none", *words])
        err = capsys.readouterr().err
        new = [path for path in first.run_dir.parent.iterdir() if path not in before]
        details = {}
        for path in new[0].glob("details/*.json") if new else ():
            document = json.loads(path.read_text())
            details[document["task_id"]] = document["attempts"]["1"]
        return status, details, err, new[0] if new else None

    return run


@pytest.mark.parametrize("mode", ["none", "fresh"])
def test_saved_work_gets_the_verdict_of_now(toys, rescore, mode):
    """A new run beside the source, which names it; the agent does not run."""
    first = toys.run({"a": {"verdict": False, "answer": "x"}, "b": {"verdict": True}}, mode=mode)
    status, details, _, new = rescore(first, {"a": {"verdict": True}, "b": {"verdict": False}})
    info = json.loads((new / "run_info.json").read_text())

    assert 0 == status
    assert {"a": True, "b": False} == {task: attempt["metrics"]["correct"] for task, attempt in details.items()}
    assert "x" == details["a"]["final_answer"]
    assert [] == [step for step, _ in toys.board.did if step in ("prepare", "start", "run")]
    assert first.document("run_info.json")["run_id"] == info["reused_from"]["run_id"]
    assert "toy" == info["request"]["harness"]["id"]


def test_only_what_was_asked_for_is_graded(toys, rescore):
    """By task, and only what was not right; the rest stays as it was."""
    first = toys.run({"a": {"verdict": False}, "b": {"verdict": False}, "c": {"verdict": True}})
    now = {"a": {"verdict": True}, "b": {"verdict": True}, "c": {"verdict": False}}
    by_task = rescore(first, now, "--task", "b", "--run-id", "by-task")[1]
    failed = rescore(first, now, "--only-failed", "--run-id", "failed")[1]

    assert [False, True, True] == [by_task[task]["metrics"]["correct"] for task in "abc"]
    assert [True, True, True] == [failed[task]["metrics"]["correct"] for task in "abc"]


def test_work_that_was_not_saved_is_no_zero(toys, rescore):
    """An attempt without a checkpoint and without a result takes the official score away."""
    first = toys.run({"a": {}, "b": {}})
    for name in ("result.json", "checkpoint.json"):
        (first.run_dir / "attempts" / "a" / "1" / name).unlink()
    status, details, _, _ = rescore(first, {"a": {}, "b": {}})

    assert 1 == status
    assert ["evaluation_input_missing"] == [issue["code"] for issue in details["a"]["issues"]]
    assert [] == details["b"]["issues"]


def test_an_unknown_task_is_refused(toys, rescore):
    """In one line, with nothing made."""
    first = toys.run({"a": {}})
    status, _, err, new = rescore(first, {"a": {}}, "--task", "z")

    assert (2, None) == (status, new)
    assert "--task: 'z' is no task of" in err
