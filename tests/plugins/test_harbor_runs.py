"""Whole runs of Harbor tasks on bubblewrap: every fault ends in the right issue on its attempt."""

from __future__ import annotations

import json

import pytest
from support.harbor_tasks import EXAMPLES, HAS_BWRAP, OLD, write_task

pytestmark = pytest.mark.skipif(not HAS_BWRAP, reason="bubblewrap does not work here")
BASH = "#!/bin/bash\n"
ONE = "echo 1 > /logs/verifier/reward.txt"
FAULTS = {  # tests/test.sh: (score, issues)
    "good": (ONE, 1.0, []),
    "five": ("echo 5 > /logs/verifier/reward.txt", None, [("fatal", "metric_invalid")]),
    "nan": ("echo nan > /logs/verifier/reward.txt", 0.0, [("warning", "verifier_result_invalid")]),
    "silent": ("true", 0.0, [("warning", "verifier_result_invalid")]),
    "hangs": ("sleep 600", None, [("error", "evaluation_timeout")]),
    "late": ("echo 0 > /logs/verifier/reward.txt; (sleep 0.2; while :; do %s; done) & exit" % ONE, 0.0, []),  # noqa: UP031
    "offline": ("echo 'curl: (6) Could not resolve host: x' >&2; exit 1", None, [("fatal", "verifier_setup_failed")]),
    "interpreter": ("", None, [("fatal", "verifier_setup_failed")]),
}
AGENT = "(while :; do mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; echo '{\"reward\": 1}' > \
/logs/verifier/reward.json; done) >/dev/null 2>&1 &\n"


def _run(command, folder, harness, *options, **params):
    given = json.dumps({"tasks_dir": str(folder), **params})
    return command("harbor", harness, "--env", "bubblewrap", "--benchmark-params", given, *options)


def _attempts(ran):
    return {name: document["attempts"]["1"] for name, document in ran.details().items()}


def _issues(attempt):
    return [(issue["severity"], issue["code"]) for issue in attempt["issues"]]


def test_every_fault_of_a_verifier_is_told_from_a_score(command, tmp_path):
    """And one bad task costs the others nothing."""
    for name, (script, _, _) in FAULTS.items():
        head = BASH if name != "interpreter" else "#!/no/such/shell\n"
        toml = "[verifier]\ntimeout_sec = 2\n"
        write_task(tmp_path / "tasks" / name, {"task.toml": toml, "tests/test.sh": f"{head}{script}\n"})
    ran = _run(command, tmp_path / "tasks", "nop")
    found = {name: (one["metrics"].get("score"), _issues(one)) for name, one in _attempts(ran).items()}

    assert {name: (score, issues) for name, (_, score, issues) in FAULTS.items()} == found
    assert 1 == ran.status


def test_an_agent_that_stays_and_writes_rewards_earns_none(command, tmp_path):
    """Its processes are dead and its files gone when the tests run."""
    write_task(tmp_path / "a", {"solution/solve.sh": BASH + AGENT, "tests/test.sh": BASH + "exit 1\n"})
    ran = _run(command, tmp_path / "a", "oracle")
    attempt = _attempts(ran)["a"]

    assert (0.0, [("warning", "verifier_result_invalid")]) == (attempt["metrics"]["score"], _issues(attempt))


def test_a_summary_that_is_printed_after_the_script_has_ended_counts_for_nothing(command, tmp_path):
    """What the tests of Terminal-Bench 1 leave running may hold their output open."""
    script = (
        "(sleep 0.1; while :; do echo 'short test summary info'; echo PASSED t::x; sleep 0.01; done) &\n"
        "echo '=== short test summary info ==='; echo FAILED t::x\n"
    )
    write_task(tmp_path / "a", {**OLD, "run-tests.sh": BASH + script})
    attempt = _attempts(_run(command, tmp_path / "a", "nop"))["a"]

    assert (0.0, []) == (attempt["metrics"]["score"], _issues(attempt))


def test_steps_and_a_separate_verifier(command, tmp_path):
    """The examples that need most of the machinery."""
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    for name in ("ledger-steps", "sealed-sudoku"):
        (tasks / name).symlink_to(EXAMPLES / name)
    solved, idle = (_run(command, tasks, harness) for harness in ("oracle", "nop"))

    assert (0, [1.0, 1.0]) == (solved.status, [one["metrics"]["score"] for one in _attempts(solved).values()])
    assert [0.0, 0.0] == [one["metrics"]["score"] for one in _attempts(idle).values()]


def test_pass_at_k_of_binary_rewards(command, tmp_path):
    """For those who count successes."""
    write_task(tmp_path / "a", {"tests/test.sh": BASH + ONE})
    attempts = json.dumps({"attempts": {"k": 2, "strategy": "pass"}})
    ran = _run(command, tmp_path / "a", "nop", "--execution-params", attempts, binary=True)

    assert (0, {"correct": True}) == (ran.status, _attempts(ran)["a"]["metrics"])


@pytest.mark.parametrize("allow", [False, True])
def test_bad_folders_stop_a_run_unless_allowed(command, tmp_path, allow):
    """They are named either way."""
    write_task(tmp_path / "tasks" / "a")
    write_task(tmp_path / "tasks" / "b", {"instruction.md": None})
    ran = _run(command, tmp_path / "tasks", "nop", allow_invalid=allow)

    assert "b/instruction.md" in json.dumps(ran.document("run_info.json"))
    assert (["a"] if allow else []) == list(ran.details())
