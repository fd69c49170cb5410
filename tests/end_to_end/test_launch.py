"""``agentcompass launch``: several requests in one pool, each with its own outcome."""

from __future__ import annotations

import json

import pytest
from support.toys import toys

from agentcompass.adapters.cli.main import main

__all__ = ["toys"]

DEFAULTS = """
defaults:
  model: {id: "${MODEL_NAME}", base_url: "http://127.0.0.1:9/v1", api_key: "${MODEL_API_KEY}", params: {temperature: 1}}
  harness: {id: toy}
  environment: {id: toy}
"""


def _entry(name, tasks=None, more=""):
    return f"  - name: {name}\n    benchmark: {{id: toy, tasks: {json.dumps(tasks or {'a': {}})}}}\n{more}"


@pytest.fixture
def launch(toys, tmp_path, capsys, monkeypatch):
    """Return a function that launches a file; gives status, stdout, stderr, and the results folder."""
    monkeypatch.setenv("MODEL_NAME", "the-model")
    monkeypatch.setenv("MODEL_API_KEY", "sk-planted-secret-value")

    def run(text, *options):
        path = tmp_path / "evaluations.yaml"
        path.write_text(text)
        results = tmp_path / "results"
        words = ["launch", str(path), "--results-dir", str(results), "--progress", "none", "--log-level", "ERROR"]
        status = main([*words, *options])
        shown = capsys.readouterr()
        return status, shown.out, shown.err, results

    return run


def _two(first="", second=""):
    return f"task_concurrency: 2\n{DEFAULTS}requests:\n{_entry('one', more=first)}{_entry('two', {'b': {}}, second)}"


@pytest.mark.seed("LA-01", "LA-06", "CL-02", "RE-01")
def test_each_request_has_its_own_folder_and_outcome(launch):
    """By its name, with the same run id for all."""
    status, out, _, results = launch(_two(), "--run-id", "baseline")
    info = json.loads((results / "one" / "baseline" / "run_info.json").read_text())

    assert 0 == status
    assert (results / "two" / "baseline" / "summary.md").exists()
    assert 2 == info["request"]["execution"]["task_concurrency"]
    assert "completed: 2 of 2 completed" in out
    assert "the-model" == info["request"]["model"]["id"]
    record = json.loads((results / "launch.json").read_text())
    assert ("completed", ["completed", "completed"]) == (record["status"], [r["state"] for r in record["requests"]])


@pytest.mark.seed("LA-06", "RR-03")
def test_events_carry_the_orchestration(launch):
    """Its id, and the request's key, name and place."""
    *_, results = launch(_two(), "--run-id", "r")
    texts = [(results / name / "r" / "progress.jsonl").read_text() for name in ("one", "two")]
    events = [json.loads(line) for text in texts for line in text.splitlines()]

    assert {("one", 0, "0:one"), ("two", 1, "1:two")} == {
        (e["request_name"], e["request_index"], e["request_key"]) for e in events
    }
    assert 1 == len({event["orchestration_id"] for event in events})


@pytest.mark.seed("LA-06")
@pytest.mark.parametrize(
    ("first", "second", "status", "word"),
    [
        ("", "    execution: {max_retries: 0}\n", 0, "completed"),
        ({"a": {"run": "fatal:x:y"}}, {"b": {}}, 1, "partial_failure"),
        ({"a": {"run": "fatal:x:y"}}, {"b": {"run": "fatal:x:y"}}, 1, "failed"),
    ],
)
def test_a_failure_is_that_of_its_request(launch, first, second, status, word):
    """The other one completes."""
    text = f"{DEFAULTS}requests:\n"
    if isinstance(first, str):
        text = _two(first, second)
    else:
        text += _entry("one", first) + _entry("two", second)
    got, out, _, _ = launch(text)

    assert status == got
    assert f"{word}: " in out


@pytest.mark.seed("LA-06")
def test_a_failing_preflight_fails_its_request_alone(launch):
    """A provider that does not answer is no reason for the others not to run."""
    broken = "    environment: {id: toy, broken: its daemon sleeps}\n"
    status, out, _, results = launch(_two(broken))

    assert 1 == status
    assert "one: failed" in out
    assert "its daemon sleeps" in out
    assert "two: completed" in out
    assert not (results / "one").exists()


@pytest.mark.seed("CO-05", "CO-01")
def test_one_pool_in_the_order_of_declaration(launch, toys):
    """Earlier requests are admitted first, later ones use idle slots, and nobody has more than the whole."""
    many = {f"t{n}": {"run": "crowd:2"} for n in range(4)}
    other = {f"u{n}": {} for n in range(3)}
    text = f"task_concurrency: 2\n{DEFAULTS}requests:\n{_entry('first', many)}{_entry('second', other)}"
    status, *_ = launch(text)
    opened = [task for step, task in toys.board.did if step == "open"]

    assert 0 == status
    assert [f"t{n}" for n in range(4)] == opened[:4]
    assert 2 == toys.board.peak["run"]


@pytest.mark.seed("LA-07", "RE-02")
def test_reuse_by_default_and_not_for_one(launch, toys):
    """The latest run of each request's own folder; a request can opt out, or name its source."""
    launch(_two(), "--run-id", "before")
    toys.board.did.clear()
    launch(_two("", "    runtime: {reuse: false}\n"), "--reuse", "--run-id", "after")

    assert ["b"] == [task for step, task in toys.board.did if step == "run"]
    toys.board.did.clear()
    _, _, _, results = launch(_two("    runtime: {reuse_run_id: before}\n"), "--run-id", "named")
    info = json.loads((results / "one" / "named" / "run_info.json").read_text())
    assert "before" == info["reused_from"]["run_id"]
    assert ["b"] == [task for step, task in toys.board.did if step == "run"]


@pytest.mark.seed("LA-05", "RR-07")
def test_a_dry_run_prints_the_orchestration_and_creates_nothing(launch, toys):
    """Resolved and redacted; no task is loaded."""
    status, out, _, results = launch(_two(), "--dry-run")
    document = json.loads(out)

    assert 0 == status
    assert ["one", "two"] == [request["name"] for request in document["requests"]]
    assert 2 == document["task_concurrency"]
    assert "the-model" == document["requests"][0]["model"]["id"]
    assert "planted" not in out
    assert not results.exists()
    assert [] == toys.board.did


def test_another_component_takes_nothing_of_the_defaults(launch):
    """Parameters in the defaults are those of the component that they name."""
    text = DEFAULTS.replace("harness: {id: toy}", "harness: {id: toy, isolated: false}")
    text = f"{text}requests:\n{_entry('one')}{_entry('two', more='    harness: {id: nop}')}"
    document = json.loads(launch(text, "--dry-run")[1])

    assert {"isolated": False} == document["requests"][0]["harness"]["params"]
    assert "params" not in document["requests"][1]["harness"]


@pytest.mark.seed("LA-01", "LA-02", "LA-03", "LA-04", "CL-07")
@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("request: []", "request: unknown key; did you mean 'requests'?"),
        ("requests: []", "requests: [] is not a list of requests"),
        ("version: 9\nrequests: [{name: x}]", "version: 9 is not supported"),
        (f"{DEFAULTS}requests:\n{_entry('one', more='    atempts: 1')}", "requests[0].atempts: unknown key"),
        (f"{DEFAULTS}requests:\n{_entry('')}", "requests[0].name: None is no name"),
        (f"{DEFAULTS}requests:\n{_entry('x')}{_entry('x')}", "requests[1].name: 'x' and 'x' are one folder"),
        (f"{DEFAULTS}requests:\n{_entry('a b')}{_entry('A_b')}", "requests[1].name: 'A_b' and 'a b' are one folder"),
        (
            f"{DEFAULTS}requests:\n  - name: x\n    benchmark: {{id: toy, params: {{}}}}",
            "params: parameters need",
        ),
        (f"{DEFAULTS}requests:\n  - name: x", "requests[0].benchmark.id: is missing"),
        (
            f"{DEFAULTS}requests:\n  - name: x\n    benchmark: {{id: tou}}",
            "benchmark: 'tou' is not registered",
        ),
        (DEFAULTS.replace("${MODEL_NAME}", "a ${MODEL_NAME}") + f"requests:\n{_entry('x')}", "defaults.model.id"),
        (DEFAULTS.replace("MODEL_NAME", "NOT_SET_AT_ALL") + f"requests:\n{_entry('x')}", "NOT_SET_AT_ALL"),
        (
            f"{DEFAULTS}requests:\n{_entry('x', more='    execution: {task_concurrency: 3}')}",
            "requests[0].execution.task_concurrency: belongs to the whole orchestration",
        ),
        (
            f"{DEFAULTS}requests:\n  - name: x\n    benchmark: {{id: toy, tasks: {{}}, scalar: true}}\n"
            "    execution: {attempts: {k: 2, strategy: pass}}",
            "pass",
        ),
    ],
)
def test_each_misuse_is_refused_in_one_line(launch, text, part):
    """Exit code 2, and nothing is made."""
    status, _, err, results = launch(text)

    assert 2 == status
    assert part in err
    assert 1 == len(err.splitlines())
    assert not results.exists()


@pytest.mark.seed("LA-03")
def test_a_run_id_that_is_taken_fails_its_request(launch):
    """The others run."""
    launch(_two(), "--run-id", "r")
    again = DEFAULTS + f"requests:\n{_entry('one')}{_entry('three')}"
    status, out, _, _ = launch(again, "--run-id", "r")

    assert 1 == status
    assert "one: failed" in out
    assert "three: completed" in out


@pytest.mark.seed("LA-06", "TO-01")
def test_one_deadline_for_all(launch):
    """What is unfinished is cancelled, and each request says so."""
    text = f"{DEFAULTS}requests:\n{_entry('one', {'a': {'run': 'hang'}})}{_entry('two', {'b': {'run': 'hang'}})}"
    status, out, _, results = launch(text, "--timeout-seconds", "0.5", "--run-id", "r")

    assert 1 == status
    assert "timed_out: 0 of 2 completed" in out
    for name in ("one", "two"):
        assert "timed_out" == json.loads((results / name / "r" / "run_info.json").read_text())["status"]


@pytest.mark.seed("LA-04")
@pytest.mark.parametrize("option", ["--k", "--attempt-strategy"])
def test_attempts_are_no_options_of_launch(launch, option):
    """They belong to each request."""
    status, _, err, _ = launch(_two(), option, "2")

    assert 2 == status
    assert "unrecognized arguments" in err


@pytest.mark.seed("LA-08")
def test_nothing_is_installed_unasked(launch, monkeypatch):
    """And with the option, nothing that is there."""
    ran = []
    monkeypatch.setattr("subprocess.run", lambda *args, **more: ran.append(args))
    launch(_two())
    launch(_two(), "--auto-install-dependencies")

    assert [] == ran
