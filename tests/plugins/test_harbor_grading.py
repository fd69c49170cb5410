"""What a verifier writes is what counts, what an agent leaves behind is not; run in a sandbox of bubblewrap."""

from __future__ import annotations

import asyncio
import os

import pytest
from support.harbor_tasks import EXAMPLES, HAS_BWRAP, OLD, Bubble, attempt, write_task

from agentcompass import PhaseFailed, UsageError
from agentcompass.core.metrics.contract import MetricInvalidError, check
from agentcompass.core.model.issue import Severity
from agentcompass.plugins.benchmarks.harbor.benchmark import Harbor
from agentcompass.plugins.benchmarks.harbor.reward import RewardInvalidError, parse, primary
from agentcompass.plugins.benchmarks.harbor.symptoms import pytest_summary, setup_failure, start_failure
from agentcompass.plugins.benchmarks.harbor.variables import resolved

in_a_bubble = pytest.mark.skipif(not HAS_BWRAP, reason="bubblewrap does not work here")
BASH = "#!/bin/bash\n"

GOOD_REWARDS = {
    ("reward.txt", b"1\n"): {"reward": 1.0},
    ("reward.txt", b"\xef\xbb\xbf 0.5 "): {"reward": 0.5},
    ("reward.txt", b"5"): {"reward": 5.0},
    ("reward.txt", b"-1e0"): {"reward": -1.0},
    ("reward.json", b'{"reward": 1}'): {"reward": 1.0},
    ("reward.json", b'{"a": 0.5, "b": true, "c": false}'): {"a": 0.5, "b": 1.0, "c": 0.0},
}
BAD_REWARDS = {
    ("reward.txt", b""): "is empty",
    ("reward.txt", b" \n"): "is empty",
    ("reward.txt", b"nan"): "no finite number",
    ("reward.txt", b"inf"): "no finite number",
    ("reward.txt", b"1e999"): "no finite number",
    ("reward.txt", b"yes"): "no number",
    ("reward.txt", b"1 1"): "no number",
    ("reward.txt", b"\xff"): "no number",
    ("reward.json", b""): "is empty",
    ("reward.json", b"{}"): "holds no reward",
    ("reward.json", b"[]"): "no object of numbers",
    ("reward.json", b"1"): "no object of numbers",
    ("reward.json", b"true"): "no object of numbers",
    ("reward.json", b'"x"'): "no object of numbers",
    ("reward.json", b"null"): "no object of numbers",
    ("reward.json", b"{"): "no JSON",
    ("reward.json", b"[" * 100000): "no JSON",
    ("reward.json", b'{"reward": "1"}'): "'reward' is no number",
    ("reward.json", b'{"reward": null}'): "'reward' is no number",
    ("reward.json", b'{"reward": {"a": 1}}'): "'reward' is no number",
    ("reward.json", b'{"reward": NaN}'): "no finite number",
    ("reward.json", b'{"reward": -Infinity}'): "no finite number",
    ("reward.json", b'{"reward": 1' + b"0" * 400 + b"}"): "no finite number",
    ("reward.json", b'{"reward": 1' + b"0" * 5000 + b"}"): "no JSON",
}


@pytest.mark.parametrize("given", GOOD_REWARDS, ids=repr)
def test_rewards(given):
    """A number, or numbers by name."""
    assert GOOD_REWARDS[given] == parse(*given).values


@pytest.mark.parametrize("given", BAD_REWARDS, ids=lambda given: repr(given)[:50])
def test_what_is_no_reward(given):
    """Each with its reason."""
    with pytest.raises(RewardInvalidError, match=BAD_REWARDS[given]):
        parse(*given)


@pytest.mark.parametrize(
    ("document", "key", "score"),
    [
        (b'{"reward": 0.5, "other": 1}', None, 0.5),
        (b'{"other": 1}', None, 1.0),
        (b'{"a": 1, "b": 0}', None, None),
        (b'{"a": 1, "b": 0}', "b", 0.0),
        (b'{"reward": 1}', "b", None),
    ],
)
def test_which_reward_is_the_score(document, key, score):
    """The one that is named, else "reward", else the only one."""
    assert score == primary(parse("reward.json", document), key)


@pytest.mark.parametrize(
    ("value", "host", "wanted"),
    [
        ("plain", {}, "plain"),
        ("${A}", {"A": "x"}, "x"),
        ("${A:-d}", {}, "d"),
        ("${A:-}", {}, ""),
        ("${A:-d}", {"A": ""}, "d"),
        ("a${A}", {"A": "x"}, "a${A}"),
        ("$A", {"A": "x"}, "$A"),
        ("${A:-b}c}", {}, "b}c"),
    ],
)
def test_variables_are_filled_in(value, host, wanted):
    """Only where the whole value is one."""
    assert {"K": wanted} == resolved({"K": value}, host, "file: env")


@pytest.mark.parametrize("host", [{}, {"A": ""}])
def test_a_variable_that_is_not_there(host):
    """Unset and empty are the same."""
    with pytest.raises(UsageError, match=r"file: env\.K: A is not set"):
        resolved({"K": "${A}"}, host, "file: env")


SYMPTOMS = {
    "E: Unable to fetch some archives, maybe run apt-get update": "apt cannot fetch packages",
    "curl: (6) Could not resolve host: astral.sh": "curl cannot resolve a host",
    "curl: (7) Failed to connect to localhost port 80": None,
    "/tests/test.sh: line 9: uvx: command not found": "a tool of the verifier is missing",
    "/tests/test.sh: line 9: the-answer: command not found": None,
    "E: Failed to fetch http://x\n=== test session starts ===": None,
    "curl: (6) Could not resolve host: x\nnot ok 1 - resolves": None,
    "": None,
}


@pytest.mark.parametrize("output", SYMPTOMS)
def test_a_verifier_that_could_not_start_is_told_from_a_failed_test(output):
    """Once tests have started, whatever they print is theirs."""
    reason = setup_failure(output)

    assert SYMPTOMS[output] == (reason and reason.split(":")[0])


@pytest.mark.parametrize(
    ("code", "stderr", "failed"),
    [
        (127, "cannot start 'bash': No such file or directory", True),
        (126, "bash: line 1: /tests/test.sh: Permission denied", True),
        (127, "bash: line 1: /tests/test.sh: no-such-shell: bad interpreter: No such file", True),
        (127, "/tests/test.sh: line 3: frobnicate: command not found", False),
        (1, "bash: x", False),
        (None, "", False),
    ],
)
def test_a_script_that_could_not_start(code, stderr, failed):
    """Nobody ran, so nothing was found wrong with the agent's work."""
    assert failed == (start_failure(code, stderr, "/tests/test.sh") is not None)


def test_the_summary_of_pytest():
    """The last one counts: what is tested may print another."""
    output = (
        "short test summary info\nPASSED a::b\n=== short test summary info ===\nPASSED t.py::a\nFAILED t.py::b - x\n"
    )

    assert {"t.py::a": "PASSED", "t.py::b": "FAILED"} == pytest_summary(output)
    assert pytest_summary("PASSED a") is None


def _graded(tmp_path, script, files=None, **options):
    options.setdefault("solve", False)
    folder = write_task(tmp_path / "tasks" / "a", {"tests/test.sh": BASH + script, **(files or {})})
    return asyncio.run(attempt(folder, tmp_path, **options))


VERDICTS = {  # script: (score, issues)
    "echo 1 > /logs/verifier/reward.txt": (1.0, []),
    "echo 0.25 > /logs/verifier/reward.txt": (0.25, []),
    "echo 0 > /logs/verifier/reward.txt; exit 3": (0.0, []),
    "echo 0 > /logs/verifier/reward.txt; echo '{\"reward\": 1}' > /logs/verifier/reward.json": (1.0, []),
    "true": (0.0, [("warning", "verifier_result_invalid")]),
    "exit 127": (None, [("fatal", "verifier_setup_failed")]),
    "no-such-program": (0.0, [("warning", "verifier_result_invalid")]),
    ": > /logs/verifier/reward.txt": (0.0, [("warning", "verifier_result_invalid")]),
    "echo nan > /logs/verifier/reward.txt": (0.0, [("warning", "verifier_result_invalid")]),
    "echo 1 > /tmp/x; ln -s /tmp/x /logs/verifier/reward.txt": (0.0, [("warning", "verifier_result_invalid")]),
    "mkdir /logs/verifier/reward.json": (0.0, [("warning", "verifier_result_invalid")]),
    "mkfifo /logs/verifier/reward.json": (0.0, [("warning", "verifier_result_invalid")]),
    "head -c 2000000 /dev/zero > /logs/verifier/reward.txt": (0.0, [("warning", "verifier_result_invalid")]),
    'echo \'{"a": 1, "b": 1}\' > /logs/verifier/reward.json': (None, [("fatal", "verifier_result_invalid")]),
    "echo 'curl: (6) Could not resolve host: x'; echo 0 > /logs/verifier/reward.txt": (
        None,
        [("fatal", "verifier_setup_failed")],
    ),
    "curl() { echo 'curl: (6) Could not resolve host'; }; curl; echo 1 > /logs/verifier/reward.txt": (1.0, []),
}


@in_a_bubble
@pytest.mark.parametrize("script", VERDICTS)
def test_verdicts(tmp_path, script):
    """An ordinary fault of the tests is a valid zero; tests that could not start are no verdict at all."""
    verdict = _graded(tmp_path, script)
    issues = [(issue.severity.value, issue.code) for issue in verdict.issues]

    assert VERDICTS[script] == (verdict.metrics.get("score"), issues)


@in_a_bubble
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(("reward", "is_inside"), [("5", False), ("-1", False), ("1", True), ("0.5", True)])
def test_a_reward_out_of_range_is_left_to_the_check_of_all_values(tmp_path, binary, reward, is_inside):
    """There it is FATAL, whichever metric it is."""
    verdict = _graded(tmp_path, f"echo {reward} > /logs/verifier/reward.txt", binary=binary)
    contract = Harbor(str(tmp_path), binary=binary).metrics
    if is_inside:
        wanted = {"correct": reward == "1"} if binary else {"score": float(reward)}

        assert wanted == check(contract, verdict.metrics)
    else:
        with pytest.raises(MetricInvalidError):
            check(contract, verdict.metrics)


@in_a_bubble
def test_a_wider_range_and_another_key(tmp_path):
    """If the tasks are made that way."""
    script = 'echo \'{"points": 5, "reward": 0}\' > /logs/verifier/reward.json'

    assert {"score": 5.0} == _graded(tmp_path, script, reward_range=[0, 5], reward_key="points").metrics


def test_an_empty_range_is_refused(tmp_path):
    """It could hold no reward."""
    with pytest.raises(UsageError, match="reward_range"):
        Harbor(str(tmp_path), reward_range=[1, 1], binary=True)


FORGERIES = {
    "a reward": "echo 1 > /logs/verifier/reward.txt; echo '{\"reward\": 1}' > /logs/verifier/reward.json",
    "files beside the tests": "mkdir -p /tests && touch /tests/planted.sh",
    "a link for the folder of results": "rm -rf /logs/verifier; ln -s /app /logs/verifier; echo 1 > /app/reward.txt",
    "a link for all logs": "rm -rf /logs; mkdir -p /app/verifier; ln -s /app /logs; echo 1 > /app/verifier/reward.txt",
    "a file for all logs": "rm -rf /logs; echo 1 > /logs",
    "a link for the tests": "rm -rf /tests; ln -s /app /tests; touch /app/planted.sh",
    "a link for the script": "mkdir -p /tests; ln -s /app/forged.sh /tests/test.sh",
    "a folder for the script": "mkdir -p /tests/test.sh/x",
    "folders without permissions": "mkdir -p /tests/a/b /logs/verifier/c; chmod 000 /tests/a /logs/verifier /tests",
}


@in_a_bubble
@pytest.mark.parametrize("name", FORGERIES)
def test_nothing_of_the_agents_survives_in_the_folders_of_the_verifier(tmp_path, name):
    """Neither as a verdict nor as a part of the tests; and the honest verdict arrives."""
    script = "if [ -e /tests/planted.sh ]; then echo 1 > /logs/verifier/reward.txt; fi"
    forged = _graded(tmp_path, script, act=FORGERIES[name])
    honest = _graded(tmp_path / "again", "echo 1 > /logs/verifier/reward.txt", act=FORGERIES[name])

    assert (0.0, ["verifier_result_invalid"]) == (forged.metrics["score"], [issue.code for issue in forged.issues])
    assert (1.0, ()) == (honest.metrics["score"], honest.issues)


@in_a_bubble
def test_the_evidence_of_a_verdict(tmp_path):
    """Exit code, last output, digests and the reward file: enough to audit it."""
    script = "echo to-stdout; echo to-stderr >&2; echo 1 > /logs/verifier/reward.txt; exit 7"
    evidence = _graded(tmp_path, script).evidence

    assert 7 == evidence["exit_code"]
    assert {"to-stdout", "to-stderr"} == set(evidence["output"].split())
    assert ("reward.txt", "1\n", {"reward": 1.0}) == (
        evidence["reward_file"],
        evidence["reward_text"],
        evidence["rewards"],
    )
    assert (64, 64) == (len(evidence["tests_sha256"]), len(evidence["instruction_sha256"]))
    assert "shared" == evidence["environment_mode"]


@in_a_bubble
def test_a_verifier_that_says_nothing_is_quoted(tmp_path):
    """The issue carries the exit code and the last lines."""
    verdict = _graded(tmp_path, "echo one; echo out of paper >&2; exit 4")

    assert "exit code 4" in verdict.issues[0].message
    assert "out of paper" in verdict.issues[0].message


@in_a_bubble
def test_variables_of_the_verifier_reach_it(tmp_path, monkeypatch):
    """Those of this machine among them."""
    monkeypatch.setenv("GRADE", "0.75")
    toml = '[verifier]\nenv = {R = "${GRADE}"}\n'

    assert {"score": 0.75} == _graded(tmp_path, 'echo "$R" > /logs/verifier/reward.txt', {"task.toml": toml}).metrics


@in_a_bubble
def test_a_user_that_the_sandbox_does_not_have(tmp_path):
    """No verdict: the tests could not run as they ask to."""
    with pytest.raises(PhaseFailed) as failed:
        _graded(tmp_path, "true", {"task.toml": '[verifier]\nuser = "grader"\n'})

    assert (Severity.FATAL, "verifier_setup_failed") == (failed.value.issue.severity, failed.value.issue.code)


@in_a_bubble
def test_a_health_check_has_to_succeed(tmp_path):
    """It is repeated; what it said is kept when it never does."""
    check_ = '[environment.healthcheck]\ncommand = "%s"\ninterval_sec = 0\nretries = 3\n'
    patient = "echo x >> /app/n; [ $(wc -l < /app/n) -ge 3 ]"
    done = "echo 1 > /logs/verifier/reward.txt"

    assert {"score": 1.0} == _graded(tmp_path, done, {"task.toml": check_ % patient}).metrics
    with pytest.raises(PhaseFailed, match=r"the health check failed 3 times \(exit code 9\): not yet"):
        _graded(tmp_path / "2", done, {"task.toml": check_ % "echo not yet; exit 9"})


STEPS = """\
%s
[[steps]]
name = "one"
min_reward = 0.5
[[steps]]
name = "two"
"""


def _steps(first, second, head="", setup="true"):
    return {
        "task.toml": STEPS % head,
        "instruction.md": None,
        "steps/one/instruction.md": "First.",
        "steps/one/tests/test.sh": f"{BASH}{first}\n",
        "steps/two/instruction.md": "Second.",
        "steps/two/tests/test.sh": f"{BASH}{second}\n",
        "steps/two/workdir/setup.sh": f"{BASH}{setup}\n",
        "steps/two/workdir/data": "x",
    }


def _reward(text):
    return f"echo {text} > /logs/verifier/reward.txt"


@in_a_bubble
@pytest.mark.parametrize(
    ("first", "second", "head", "score", "graded"),
    [
        (_reward(1), _reward(0.5), "", 0.75, 2),
        (_reward(0.5), "test -e /app/data && " + _reward(1), "", 0.75, 2),
        (_reward(0.25), _reward(1), "", 0.25, 1),
        ("true", _reward(1), "", 0.0, 1),
        (_reward(1), "true", "", 0.5, 2),
        (_reward(1), _reward(0.25), 'multi_step_reward_strategy = "final"', 0.25, 2),
        (_reward(0.25), _reward(1), 'multi_step_reward_strategy = "final"', 0.0, 1),
        (_reward(5), _reward(-3), "", 5.0, 2),
    ],
)
def test_steps(tmp_path, first, second, head, score, graded):
    """Each is set up and graded in turn; a missed reward ends the attempt."""
    verdict = _graded(tmp_path, "exit 1", _steps(first, second, head))

    assert {"score": score} == verdict.metrics
    assert (graded < 2) == ("the step one asks for 0.5" in str(verdict.evidence.get("stopped")))
    assert (2, graded) == (verdict.evidence["steps_planned"], verdict.evidence["steps_graded"])


@in_a_bubble
def test_a_step_whose_tests_cannot_start_leaves_no_score(tmp_path):
    """Whatever was earned before, and nothing further is tried."""
    verdict = _graded(tmp_path, "exit 1", _steps(f"echo 'curl: (6) Could not resolve host: x'; {_reward(0)}", "exit 1"))

    assert ({}, 1) == (verdict.metrics, verdict.evidence["steps_graded"])
    assert ["verifier_setup_failed"] == [issue.code for issue in verdict.issues]


@in_a_bubble
def test_a_step_that_cannot_be_set_up(tmp_path):
    """A FATAL with the output of its script."""
    with pytest.raises(PhaseFailed, match=r"setup\.sh failed \(exit code 3\): no luck"):
        _graded(tmp_path, "exit 1", _steps(_reward(1), _reward(1), setup="echo no luck; exit 3"))


@in_a_bubble
def test_what_earlier_steps_left_does_not_grade_later_ones(tmp_path):
    """Neither their tests nor their rewards."""
    verdict = _graded(tmp_path, "exit 1", {**_steps(_reward(1), "ls /tests >&2"), "steps/one/tests/extra": ""})
    evidence = verdict.evidence["steps"]["two"]

    assert 0.5 == verdict.metrics["score"]
    assert ["test.sh"] == evidence["output"].split()


@in_a_bubble
def test_a_finished_image_gets_the_files_beside_its_missing_dockerfile(tmp_path):
    """They go into the workdir."""
    toml = '[environment]\ndocker_image = "a:1"\n'
    write_task(tmp_path / "a", {"task.toml": toml, "environment/Dockerfile": None, "environment/data/x": "1"})
    harbor, bubble = Harbor(str(tmp_path / "a")), Bubble(tmp_path / "root")
    asyncio.run(harbor.prepare_task(harbor.load_tasks().tasks[0], bubble))

    assert (tmp_path / "root/app/data/x").exists()
    assert 0o777 == os.stat(tmp_path / "root/logs/agent").st_mode & 0o777


@in_a_bubble
def test_what_harnesses_are_told(tmp_path):
    """User, servers and skills; and the solution apart from the prompt."""
    toml = (
        '[agent]\nuser = "dev"\n[environment]\nskills_dir = "/skills"\n'
        '[[environment.mcp_servers]]\nname = "m"\nurl = "http://x"\n[solution]\nenv = {A = "${NOT_SET_HERE}"}\n'
    )
    write_task(tmp_path / "a", {"task.toml": toml})
    harbor, bubble = Harbor(str(tmp_path / "a")), Bubble(tmp_path / "root")
    prepared = asyncio.run(harbor.prepare_task(harbor.load_tasks().tasks[0], bubble))

    assert ("Do it.\n", "dev", "/skills") == (prepared.prompt, prepared.user, prepared.metadata["skills_dir"])
    assert [{"name": "m", "url": "http://x", "transport": "sse"}] == prepared.metadata["mcp_servers"]
    ran = asyncio.run(bubble.exec(prepared.solution.command, env=prepared.solution.env))
    assert 78 == ran.exit_code
    assert b"NOT_SET_HERE" in ran.stderr


@in_a_bubble
@pytest.mark.parametrize("solution", ["sh", "yaml", None])
def test_terminal_bench_1_from_start_to_verdict(tmp_path, solution):
    """The summary of pytest is the verdict; a solution may be a list of commands."""
    files = dict(OLD)
    if solution == "yaml":
        files.update({"solution.sh": None, "solution.yaml": "- command: touch done\n  min_timeout_sec: 1\n"})
    folder = write_task(tmp_path / "a", files)
    verdict = asyncio.run(attempt(folder, tmp_path, solve=solution is not None))

    assert {"score": 1.0 if solution else 0.0} == verdict.metrics
    assert () == verdict.issues


@in_a_bubble
def test_terminal_bench_1_without_a_summary(tmp_path):
    """A valid zero, with the output that says why."""
    folder = write_task(tmp_path / "a", {**OLD, "run-tests.sh": "echo oh no\n"})
    verdict = asyncio.run(attempt(folder, tmp_path))

    assert ({"score": 0.0}, "verifier_result_invalid") == (verdict.metrics, verdict.issues[0].code)
    assert "oh no" in verdict.issues[0].message


@in_a_bubble
@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()))
def test_the_examples_are_solved_by_their_solutions_alone(tmp_path, name):
    """The solution earns 1, doing nothing earns less, both without any fault."""
    solved = asyncio.run(attempt(EXAMPLES / name, tmp_path / "1"))
    idle = asyncio.run(attempt(EXAMPLES / name, tmp_path / "2", solve=False))

    assert ({"score": 1.0}, ()) == (solved.metrics, solved.issues), solved.evidence
    assert ({"score": 0.0}, ()) == (idle.metrics, idle.issues), idle.evidence
