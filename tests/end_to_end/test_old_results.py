"""Runs of the formats v1 and v2: what they recorded as structure is read, what they told in words is not believed."""

from __future__ import annotations

import json
import shutil

import pytest
from support.toys import toys

from agentcompass.adapters.cli.main import main

__all__ = ["toys"]

pytestmark = pytest.mark.seed("RE-09")

TASKS = {"right": {}, "wrong": {"verdict": False}, "told": {"run": "error:lost:connection reset"}}
LAYOUTS = ["v1", "v2", "folders"]


def _old_attempt(attempt, layout):
    old = {
        "status": attempt["status"],
        "final_answer": attempt["final_answer"],
        "trajectory": {"schema_version": "ACTF_v1.0", "steps": [{"step_id": 0}]},
        "meta": {"benchmark": {"seen": True}, "harness": {}},
        "retry_count": 0,
    }
    if attempt["issues"]:
        old["error"] = "\n".join(issue["message"] for issue in attempt["issues"])
    return {**old, **(attempt["metrics"] if layout == "v1" else {"metrics": attempt["metrics"]})}


def _age(run_dir, layout):
    """Rewrite a run as a former version would have left it."""
    info = json.loads((run_dir / "run_info.json").read_text())
    version = "v1" if layout == "v1" else "v2"
    del info["metric_contract"], info["versions"]
    if layout == "v1":
        del info["request"]["execution"]["attempts"]
    info["schema_version"] = f"agentcompass.run_info.{version}"
    (run_dir / "run_info.json").write_text(json.dumps(info))
    for path in sorted((run_dir / "details").glob("*.json")):
        task = json.loads(path.read_text())
        attempts = {n: _old_attempt(attempt, layout) for n, attempt in task["attempts"].items()}
        old = {"task_id": task["task_id"], "category": task["category"], "ground_truth": task["ground_truth"]}
        if layout == "v1":
            path.write_text(json.dumps({**old, **attempts["1"]}))
        elif layout == "v2":
            path.write_text(json.dumps({**old, "schema_version": "agentcompass.task.v2", "attempts": attempts}))
        else:
            path.unlink()
            folder = run_dir / "details" / path.stem
            for number, attempt in attempts.items():
                (folder / f"attempt-{number}").mkdir(parents=True)
                (folder / f"attempt-{number}" / "result.json").write_text(json.dumps(attempt))
            names = {number: f"attempt-{number}" for number in attempts}
            old |= {"schema_version": "agentcompass.task.v2", "attempts": names}
            (folder / "task.json").write_text(json.dumps(old))
    shutil.rmtree(run_dir / "attempts")
    for name in ("tasks.jsonl", "plans.jsonl", "metrics.json", "summary.md"):
        (run_dir / name).unlink()


@pytest.fixture
def aged(toys):
    """Return a function that makes an old run of some tasks."""

    def make(tasks, layout, **more):
        ran = toys.run(tasks, **more)
        _age(ran.run_dir, layout)
        toys.board.did.clear()
        return ran.run_dir

    return make


def _edit(run_dir, layout, task, change):
    folder = run_dir / "details"
    (path,) = folder.glob(f"*{task}*/attempt-1/result.json" if layout == "folders" else f"*{task}*.json")
    document = json.loads(path.read_text())
    change(document["attempts"]["1"] if layout == "v2" else document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_summary_shows_what_was_classified(aged, layout, capsys):
    """Right and wrong answers count, a failure in words has no value, and one line says so."""
    run_dir = aged(TASKS, layout)

    assert 0 == main(["summary", str(run_dir), "--output", "json"])
    shown = capsys.readouterr()
    counts = json.loads(shown.out)["series"][0]["counts"]
    assert {"total": 3, "evaluated": 2, "unavailable": 1, "invalidated": 0, "error": 1} == counts
    assert "1 attempts of a former format failed for a reason in words only" in shown.err


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_what_was_told_in_words_runs_again(toys, aged, layout):
    """The rest stands in the present format, and the reason is written down; the source stays as it was."""
    run_dir = aged(TASKS, layout)
    before = {path: path.read_bytes() for path in run_dir.rglob("*.json")}
    ran = toys.run({name: {} for name in TASKS}, "--reuse")

    assert ["told"] == [task for step, task in toys.board.did if step == "run"]
    (refused,) = ran.document("run_info.json")["reused_from"]["refused"]
    assert ("told", 1) == (refused["task_id"], refused["attempt"])
    assert "told it in words only: connection reset" in refused["reason"]
    assert {"right": True, "wrong": False, "told": True} == {
        name: task["attempts"]["1"]["metrics"]["correct"] for name, task in ran.details().items()
    }
    kept = ran.document("attempts/right/1/result.json")
    assert ("agentcompass.attempt.v3", []) == (kept["schema_version"], kept["issues"])
    assert [{"step_id": 0}] == kept["artifacts"]["trajectory"]["steps"]
    assert f"agentcompass.task.{'v1' if layout == 'v1' else 'v2'}" == kept["meta"]["benchmark"]["converted_from"]
    assert before == {path: path.read_bytes() for path in run_dir.rglob("*.json")}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_was_converted_can_be_continued_again(toys, aged, layout):
    """The new run is a run like any other."""
    aged(TASKS, layout)
    toys.run(TASKS, "--reuse")
    toys.board.did.clear()
    ran = toys.run(TASKS, "--reuse")

    assert [] == [task for step, task in toys.board.did if step == "run"]
    assert 3 == ran.document("run_info.json")["reused_from"]["attempts"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("evidence", "runs"),
    [
        ({"issues": [{"severity": "error", "phase": "run", "code": "lost", "message": "reset"}]}, False),
        ({"issues": [{"severity": "fatal", "phase": "run", "code": "down", "message": "quota"}]}, True),
        ({"issues": [{"severity": "error", "phase": "run", "code": "busy", "message": "m"}]}, True),
        ({"error": {"severity": "warning", "phase": "collect", "code": "w", "message": "m"}}, False),
        ({"issues": [], "error": "boom"}, True),
        ({"error": {"text": "boom"}}, True),
        ({"status": "run_error"}, True),
        ({"meta": {"status": "error"}, "status": None}, True),
    ],
)
def test_structure_is_judged_by_the_policy_of_now(toys, aged, layout, evidence, runs):
    """Issues, and errors with the fields of one, are; all other failures have no classification."""
    run_dir = aged({"right": {}}, layout)
    _edit(run_dir, layout, "right", lambda attempt: attempt.update(evidence))
    toys.run({"right": {}}, "--reuse", execution={"max_retries": 1, "retry_pattern_list": ["busy"]})

    assert (["right"] if runs else []) == [task for step, task in toys.board.did if step == "run"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_old_and_new_are_compared(toys, aged, layout, capsys):
    """Task by task, as two runs of the present."""
    old = aged({"a": {}, "b": {"verdict": False}, "c": {}}, layout)
    new = toys.run({"a": {}, "b": {}, "c": {}}).run_dir

    assert 0 == main(["compare", str(old), str(new), "--output", "json"])
    assert ["b"] == json.loads(capsys.readouterr().out)["comparisons"][0]["flips"]["second"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rescoring_keeps_what_has_no_saved_work(aged, layout, capsys):
    """No old run has inputs of its grading; what was classified stays, what was not cannot be graded."""
    run_dir = aged(TASKS, layout)
    status = main(["rescore", str(run_dir), "--output", "json"])
    shown = capsys.readouterr()

    assert 1 == status
    assert "told it in words only" in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_record_that_cannot_be_read_costs_itself_only(toys, aged, layout, capsys):
    """It is named, and its task runs again."""
    run_dir = aged({"a": {}, "b": {}}, layout)
    (path,) = run_dir.glob("details/a/attempt-1/result.json" if layout == "folders" else "details/a.json")
    path.write_text('{"task_id": "a", ')
    assert 0 == main(["summary", str(run_dir)])
    assert f"left out: {path}: not JSON" in capsys.readouterr().err
    toys.run({"a": {}, "b": {}}, "--reuse")

    assert ["a"] == [task for step, task in toys.board.did if step == "run"]


@pytest.mark.parametrize("words", [("summary",), ("rescore",), ("compare", "new")])
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"schema_version": "agentcompass.run_info.v9"}, "its schema is 'agentcompass.run_info.v9'"),
        ({"request": {}}, ""),
        ({"request": None}, ""),
        ({"request": {"benchmark": {"id": "toy", "params": {"k": "three"}}}}, ""),
    ],
)
def test_a_run_that_is_no_run_is_refused_in_one_line(toys, aged, words, change, problem, capsys):
    """Another schema, or a record that lacks what makes a run, is a mistake of the request."""
    run_dir = aged({"a": {}}, "v2")
    info = json.loads((run_dir / "run_info.json").read_text())
    (run_dir / "run_info.json").write_text(json.dumps({**info, **change}))
    new = toys.run({"a": {}}).run_dir
    capsys.readouterr()
    words = [str(new) if word == "new" else word for word in words]

    assert 2 == main([words[0], str(run_dir), *words[1:]])
    shown = capsys.readouterr()
    assert 1 == len(shown.err.strip().splitlines()), shown.err
    assert problem in shown.err
