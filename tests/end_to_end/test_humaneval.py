"""A real benchmark through a real sandbox, with harnesses that solve it, do nothing, or ask a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from threading import Lock

import pytest
from support.endpoint import Reply, answer, serving
from support.humaneval import asked, code, right, rows
from support.processes import Mark

KEY = "sk-test-0123456789abcdef"


def _model(endpoint):
    return ("humaneval", "openai_chat", "M", "--model-base-url", endpoint.url, "--model-api-key", KEY)


def _outcomes(ran):
    return {name: task["attempts"]["1"]["metrics"].get("correct") for name, task in ran.details().items()}


def test_doing_nothing_is_a_valid_zero(command):
    """No submission is a WARNING and a score of 0, and every task is evaluated."""
    ran = command("humaneval", "nop", "--limit", "5")

    assert 0 == ran.status
    assert {"total": 5, "evaluated": 5, "error": 0, "unavailable": 0, "invalidated": 0} == ran.document("metrics.json")[
        "series"
    ][0]["counts"]
    assert 0.0 == ran.document("metrics.json")["series"][0]["value"]
    assert {"output_missing"} == {
        issue["code"] for task in ran.details().values() for issue in task["attempts"]["1"]["issues"]
    }


@pytest.mark.seed("CO-04", "CL-01")
def test_three_attempts_give_avg_pass_and_both_curves(command):
    """A model that is right on the first of three calls per task gives the values that arithmetic says."""
    calls, lock = Counter(), Lock()

    def script(body):
        number, row = asked(body)
        with lock:
            calls[number] += 1
            first = calls[number] == 1
        return right(row) if first else code("pass")

    with serving(script) as endpoint:
        ran = command(*_model(endpoint), "--k", "3", "--attempt-strategy", "avg", "--limit", "4")

    series = {entry["series_id"]: entry["value"] for entry in ran.document("metrics.json")["series"]}
    curves = {
        curve["curve_id"]: [round(point["value"], 6) for point in curve["points"]]
        for curve in ran.document("metrics.json")["curves"]
    }
    assert 0 == ran.status
    assert {"correct.avg@3": pytest.approx(1 / 3), "correct.pass@3": 1.0} == series
    assert {"correct.pass@j": [0.333333, 0.666667], "correct.pass^j": [0.333333, 0.0, 0.0]} == curves
    assert {"1", "2", "3"} == set(ran.details()["HumanEval/0"]["attempts"])


def test_a_model_that_solves_half_gets_half(command):
    """The score is right, usage is totalled, and the key is nowhere."""

    def script(body):
        number, row = asked(body)
        return right(row) if number % 2 == 0 else code(row["prompt"] + "    return None")

    with serving(script) as endpoint:
        ran = command(*_model(endpoint), "--limit", "6", quiet=False)

    resources = {entry["id"]: entry["total"] for entry in ran.document("metrics.json")["resources"]["quantities"]}
    assert {f"HumanEval/{number}": number % 2 == 0 for number in range(6)} == _outcomes(ran)
    assert (66, 42) == (resources["prompt_tokens"], resources["completion_tokens"])
    assert {f"Bearer {KEY}"} == set(endpoint.keys)
    assert b"" == subprocess.run(["grep", "-rl", KEY, str(ran.run_dir)], capture_output=True, check=False).stdout
    assert KEY not in ran.out + ran.err


@pytest.mark.seed("ER-02", "ER-07", "CL-07", "ER-08")
def test_a_quota_error_is_no_zero(command):
    """Tasks that the endpoint refused with 429 invalidate the score; the rest is shown as a reference."""

    def script(body):
        number, row = asked(body)
        return Reply({"error": {"message": "slow down"}}, 429) if number % 3 == 0 else right(row)

    with serving(script) as endpoint:
        ran = command(*_model(endpoint), "--limit", "6", "--model-params", '{"max_retries": 0}')

    metrics = ran.document("metrics.json")
    assert 1 == ran.status
    assert (True, None, 1.0) == (
        metrics["evaluation_failed"],
        metrics["series"][0]["value"],
        metrics["series"][0]["reference_value"],
    )
    assert {"total": 6, "evaluated": 4, "error": 2, "unavailable": 0, "invalidated": 2} == metrics["series"][0][
        "counts"
    ]
    assert "failed" == ran.document("run_info.json")["status"]
    assert "_error_HumanEval%2F0~11.json" not in os.listdir(ran.run_dir / "details")
    assert 2 == sum(name.startswith("_error_") for name in os.listdir(ran.run_dir / "details"))


@pytest.mark.seed("ER-04", "ER-06")
def test_retries_make_a_quota_error_good(command):
    """With a budget for retries the score is full; discarded executions stay, and the final issues are clean."""
    calls, lock = Counter(), Lock()

    def script(body):
        number, row = asked(body)
        with lock:
            calls[number] += 1
            refused = number % 3 == 0 and calls[number] <= 2
        return Reply({"error": {"message": "slow down"}}, 429) if refused else right(row)

    with serving(script) as endpoint:
        ran = command(
            *_model(endpoint),
            *("--limit", "4", "--max-retries", "3", "--model-params", '{"max_retries": 0}'),
            *("--execution-params", '{"retry_min_delay_seconds": 0.01, "retry_max_delay_seconds": 0.02}'),
        )

    task = ran.details()["HumanEval/3"]
    retries = [event for event in ran.events() if event["event"] == "attempt_retry"]
    assert 0 == ran.status
    assert 1.0 == ran.document("metrics.json")["series"][0]["value"]
    assert (2, {"1": 2}, []) == (task["retry_count"], task["retry_counts"], task["attempts"]["1"]["issues"])
    assert [1, 2] == [event["payload"]["retry"] for event in retries if event["task_id"] == "HumanEval/3"]
    for event in retries:
        discarded = ran.document(event["payload"]["retry_detail"])
        assert ["model_failed"] == [issue["code"] for issue in discarded["issues"]]


HOSTILE = {
    "forks": """
import os, time
for _ in range(40):
    if os.fork() == 0:
        os.setsid()
        time.sleep(1000)
""",
    "ignores TERM": """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    pass
""",
    "prints without end": """
while True:
    print("x" * 100000)
""",
    "leaves early": """
import os
os._exit(0)
""",
    "leaves a daemon behind": """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)
""",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_code_fails_alone(command, kind):
    """Code under test that fights its end is stopped at its limit, leaves nothing behind, and costs its task only."""
    mark = Mark()

    def script(body):
        number, row = asked(body)
        return right(row) if number else code(f"{HOSTILE[kind]}\n{row['prompt']}    return 1")

    with serving(script) as endpoint:
        ran = command(
            *_model(endpoint), *mark.option, "--limit", "2", "--benchmark-params", '{"test_timeout_seconds": 3}'
        )

    assert 0 == ran.status
    assert {"HumanEval/0": False, "HumanEval/1": True} == _outcomes(ran)
    assert [] == mark.alive()


def test_an_empty_answer_is_an_error_and_a_zero(command):
    """The attempt keeps the ERROR; the missing file is graded as it is."""
    with serving(lambda body: answer("")) as endpoint:
        ran = command(*_model(endpoint), "--limit", "1")

    attempt = ran.details()["HumanEval/0"]["attempts"]["1"]
    assert ["model_empty_output", "output_missing"] == [issue["code"] for issue in attempt["issues"]]
    assert {"correct": False} == attempt["metrics"]
    assert 0 == ran.status


def test_a_dry_run_lists_what_would_run(command):
    """Nothing is created, and every selected task is named."""
    ran = command("humaneval", "nop", "--sample-ids", "HumanEval/7,HumanEval/5", "--dry-run", "--output", "json")

    assert (0, None) == (ran.status, ran.run_dir)
    assert ["HumanEval/5", "HumanEval/7"] == [task["id"] for task in json.loads(ran.out)["tasks"]]


def test_all_of_the_benchmark_is_there(command):
    """The 164 tasks of the public data set are loaded, none is rejected."""
    ran = command("humaneval", "nop", "--dry-run", "--output", "json")

    listed = json.loads(ran.out)
    assert (164, []) == (len(listed["tasks"]), listed["rejected_items"])
    assert [row["task_id"] for row in rows()] == [task["id"] for task in listed["tasks"]]


@pytest.mark.seed("AR-01", "EV-01")
def test_a_fresh_verifier_scores_the_same(command):
    """The submission alone goes to another sandbox, and is right there too."""
    fresh = (
        '{"evaluation_environment_mode": "fresh", "evaluation_environment_env_variables": {"VERIFIER_MODE": "offline"}}'
    )
    ran = command("humaneval", "oracle", "--limit", "3", "--env-params", fresh)

    assert 0 == ran.status
    for task in ran.details().values():
        attempt = task["attempts"]["1"]
        assert attempt["metrics"]["correct"]
        assert ["collected"] == [entry["status"] for entry in attempt["artifact_manifest"]["entries"]]
