"""Agents that do not play fair, in real sandboxes: each scores what its work is worth, and harms nobody."""

from __future__ import annotations

import json

import pytest
from support.docker import docker_daemon, slice_image
from support.shell_agent import ENTRY_POINTS
from support.toys import install

__all__ = ["docker_daemon", "slice_image"]

#: Right if /app/answer says 42, nothing stands beside the tests, and the agent's heart has stopped.
TEST = """#!/bin/bash
count() { wc -c </app/heart 2>/dev/null || echo 0; }
before=$(count); sleep 0.4; after=$(count)
if [ "$(cat /app/answer)" = 42 ] && [ ! -e /tests/planted ] && [ "$before" = "$after" ]; then
    echo 1 >/logs/verifier/reward.txt
else
    echo 0 >/logs/verifier/reward.txt
fi
"""
BEAT = "while :; do echo >>/app/heart; sleep 0.02; done"
WORK = "echo 42 >/app/answer"
WRITER = (
    "while :; do mkdir -p /logs/verifier; echo 1 >/logs/verifier/reward.txt; "
    "echo '{\"reward\": 1}' >/logs/verifier/reward.json; done"
)
PLANT = "mkdir -p /tests /logs/verifier; echo 'exit 0' >/tests/planted; echo 'echo 1' >/tests/test.sh"
LINKS = (
    "rm -rf /tests /logs/verifier; mkdir -p /app/mine; ln -s /app/mine /tests; ln -s /app/mine /logs/verifier; "
    "echo 1 >/app/mine/reward.txt"
)
AGENTS = {
    "background-heart": f"{WORK}; (setsid sh -c '{BEAT}' &)",
    "reward-writer": f"(setsid sh -c '{WRITER}' &)",
    "planted-files": PLANT,
    "planted-links": LINKS,
    "writer-and-work": f"{WORK}; {PLANT}; {LINKS}; (setsid nohup sh -c '{WRITER}' >/dev/null 2>&1 &)",
    "fork-storm": f"{WORK}; (sh -c 'while :; do sleep 60 & done' &) ; sleep 0.3",
}
WORTH = {"background-heart": 1, "writer-and-work": 1, "fork-storm": 1}


@pytest.fixture(params=["bubblewrap", "docker"])
def sandbox(request, slice_image):
    """The words that choose a sandbox with a private root."""
    limits = {"pids": 200}
    return request.param, {"resources": limits} if request.param == "docker" else {}


@pytest.fixture
def run(tmp_path, monkeypatch, command, sandbox):
    """Return a function that runs one task, shared or separate, with an agent that runs a script."""
    install(tmp_path / "site", monkeypatch, "shell_agent", ENTRY_POINTS)
    name, params = sandbox

    def run(script, mode="shared", execution=None, test=TEST):
        _write_task(tmp_path / "tasks" / "trap", mode, test)
        words = {
            "--benchmark-params": {"tasks_dir": str(tmp_path / "tasks")},
            "--harness-params": {"script": script},
            "--env-params": params,
            "--execution-params": execution or {},
        }
        options = [word for option, value in words.items() for word in (option, json.dumps(value))]
        return command("harbor", "shell_agent", "--env", name, *options)

    return run


def _write_task(folder, mode, test):
    (folder / "environment").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "environment" / "Dockerfile").write_text("FROM debian:12-slim\nWORKDIR /app\n")
    (folder / "tests" / "test.sh").write_text(test)
    (folder / "instruction.md").write_text("Write 42 to /app/answer.\n")
    artifacts = 'artifacts = ["/app"]\n' if mode == "separate" else ""
    (folder / "task.toml").write_text(
        f'schema_version = "1.4"\n{artifacts}[task]\nname = "test/trap"\n[agent]\ntimeout_sec = 30.0\n'
        f'[verifier]\ntimeout_sec = 30.0\nenvironment_mode = "{mode}"\n[environment]\n'
    )


def _attempt(ran):
    (task,) = ran.details().values()
    return task["attempts"]["1"]


@pytest.mark.parametrize("mode", ["shared", "separate"])
@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_scores_what_its_work_is_worth(run, agent, mode):
    """Whatever it plants, and whatever goes on running after it."""
    attempt = _attempt(run(AGENTS[agent], mode))

    assert {"score": WORTH.get(agent, 0)} == attempt["metrics"]
    assert "fatal" not in [issue["severity"] for issue in attempt["issues"]]


@pytest.mark.seed("TO-10")
@pytest.mark.parametrize("mode", ["shared", "separate"])
def test_an_agent_that_times_out_is_dead_before_it_is_graded(run, sandbox, mode):
    """Its heart stands still, its work counts, and the time-out stays an ERROR; the image is on record."""
    name, _ = sandbox
    attempt = _attempt(run(f"{WORK}; (setsid sh -c '{BEAT}' &); {BEAT}", mode, {"run_timeout_seconds": 1}))

    assert {"score": 1} == attempt["metrics"]
    sandboxes = attempt["meta"]["benchmark"].get("sandboxes", {})
    assert all(facts["image"].startswith("sha256:") for facts in sandboxes.values())
    assert bool(sandboxes) is (name == "docker")
    assert ["error"] == [issue["severity"] for issue in attempt["issues"]]


@pytest.mark.parametrize(
    ("reward", "score", "severity", "code"),
    [
        ("echo nan >/logs/verifier/reward.txt", 0, "warning", "verifier_result_invalid"),
        ("true", 0, "warning", "verifier_result_invalid"),
        ("echo '{}' >/logs/verifier/reward.json", 0, "warning", "verifier_result_invalid"),
        ("echo '[1]' >/logs/verifier/reward.json", 0, "warning", "verifier_result_invalid"),
        ("echo 5 >/logs/verifier/reward.txt", None, "fatal", "metric_invalid"),
        ("kill -9 $$", 0, "warning", "verifier_result_invalid"),
        ("sleep 60", None, "error", "evaluation_timeout"),
    ],
)
def test_a_verifier_that_misbehaves_ends_in_the_right_issue(run, reward, score, severity, code):
    """Nothing is made up: no reward is a zero with a warning, an impossible one is no score."""
    ran = run("true", test=f"#!/bin/bash\n{reward}\n", execution={"evaluation_timeout_seconds": 3})
    attempt = _attempt(ran)

    assert ({} if score is None else {"score": score}) == attempt["metrics"]
    assert (severity, code) in [(issue["severity"], issue["code"]) for issue in attempt["issues"]]


def test_an_agent_that_removes_the_programs_gets_no_score_for_it(run, sandbox):
    """Where it can, nothing can be graded in place, and the attempt says so; where it cannot, it has done nothing."""
    attempt = _attempt(run("rm -rf /bin/* /usr/bin/* 2>/dev/null; true"))

    assert attempt["metrics"] in ({}, {"score": 0})
    assert bool(attempt["issues"]) is (sandbox[0] == "docker")
