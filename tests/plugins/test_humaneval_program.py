"""HumanEval: the program that is tested, and the data that it is made of."""

from __future__ import annotations

import gzip
import json

import pytest
from support.humaneval import rows

from agentcompass.plugins.benchmarks.humaneval import HumanEval, assemble

PROMPT = 'from typing import List\n\n\ndef helper(x):\n    return x\n\n\ndef solve(x: int) -> int:\n    """Double."""\n'
PREAMBLE = PROMPT[: PROMPT.index("\n\ndef solve")]

PROGRAMS = {
    "a body": ("    return 2 * x\n", PROMPT + "    return 2 * x\n"),
    "a whole function": ("def solve(x):\n    return 2 * x\n", PREAMBLE + "\ndef solve(x):\n    return 2 * x\n"),
    "imports and a function": (
        "import math\ndef solve(x):\n    return math.prod((2, x))\n",
        PREAMBLE + "\nimport math\ndef solve(x):\n    return math.prod((2, x))\n",
    ),
    "the whole prompt again": (PROMPT + "    return 2 * x\n", f"{PREAMBLE}\n{PROMPT}    return 2 * x\n"),
    "an async function": ("async def solve(x):\n    return x\n", PREAMBLE + "\nasync def solve(x):\n    return x\n"),
    "another function": ("def solve_it(x):\n    return x\n", PROMPT + "def solve_it(x):\n    return x\n"),
    "its name in a comment": ("    # def solve\n    return 2 * x\n", PROMPT + "    # def solve\n    return 2 * x\n"),
    "a call": ("    return solve(x)\n", PROMPT + "    return solve(x)\n"),
    "nothing": ("", PROMPT),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_put_together(name):
    """A whole function gets what stands before it in the prompt, a mere body the whole prompt."""
    submission, program = PROGRAMS[name]

    assert program == assemble(PROMPT, "solve", submission.encode()).decode()


@pytest.mark.parametrize("raw", [b"    return '\xff'\n", b"\xef\xbb\xbf    return 1\n", b"    return 1\r\n", b"\0"])
def test_a_submission_stays_bytes(raw):
    """It is neither decoded nor stripped."""
    assert assemble(PROMPT, "solve", raw).endswith(raw)


def test_a_body_and_a_whole_function_pass_the_same_tests(command, monkeypatch):
    """For each of the first tasks, both forms of the reference solution are right."""
    from agentcompass.core.model.task import PreparedTask, Solution

    async def bodies(self, task, environment):
        return PreparedTask("", solution=Solution({"solution.py": task.data["canonical_solution"].encode()}))

    whole = command("humaneval", "oracle", "--limit", "4")
    monkeypatch.setattr(HumanEval, "prepare_task", bodies)
    body = command("humaneval", "oracle", "--limit", "4")

    assert [1.0, 1.0] == [ran.document("metrics.json")["series"][0]["value"] for ran in (whole, body)]


def test_rows_that_are_no_tasks_are_named_with_their_lines(command, monkeypatch, tmp_path):
    """File, line and reason; the others are run, and the run does not pass for complete."""
    row = rows()[0]
    lines = [json.dumps(row), "{", json.dumps({**row, "task_id": 7}), json.dumps({"task_id": "x"}), "[]"]
    path = tmp_path / "data.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    monkeypatch.setattr("agentcompass.plugins.benchmarks.humaneval.data_file", lambda: path)
    ran = command("humaneval", "oracle")

    rejected = ran.document("run_info.json")["rejected_items"]
    assert (1, {"HumanEval/0"}) == (ran.status, set(ran.details()))
    assert [f"{path}:{number}" for number in (2, 3, 4, 5)] == [item["where"] for item in rejected]
    assert "task_id is no text" in rejected[1]["reason"]


@pytest.mark.parametrize("data", [b"", b"no gzip", gzip.compress(b"{}\n" * 99)[:-20], gzip.compress(b"\xff\n")])
def test_broken_data_fail_the_run_in_one_line(command, monkeypatch, tmp_path, data):
    """An unreadable or truncated file is no empty benchmark."""
    path = tmp_path / "data.jsonl.gz"
    path.write_bytes(data)
    monkeypatch.setattr("agentcompass.plugins.benchmarks.humaneval.data_file", lambda: path)
    ran = command("humaneval", "oracle")

    assert (1, "failed") == (ran.status, ran.document("run_info.json")["status"])
    assert "Traceback" not in ran.out + ran.err


def test_an_interpreter_that_is_not_there_is_no_wrong_answer(command):
    """The grader could not work: FATAL verifier_setup_failed, and no zero."""
    ran = command("humaneval", "oracle", "--limit", "1", "--benchmark-params", '{"python": "no-such-python"}')

    attempt = ran.details()["HumanEval/0"]["attempts"]["1"]
    assert (1, [("fatal", "verifier_setup_failed")]) == (
        ran.status,
        [(issue["severity"], issue["code"]) for issue in attempt["issues"]],
    )
    assert {} == attempt["metrics"]


def test_the_evidence_of_a_verdict_is_kept(command):
    """Exit code, last output, digests of submission and tests, the limit that applied."""
    ran = command("humaneval", "oracle", "--limit", "1")

    evidence = ran.details()["HumanEval/0"]["attempts"]["1"]["meta"]["benchmark"]
    assert (0, 10.0, 64, 64) == (
        evidence["exit_code"],
        evidence["test_timeout_seconds"],
        len(evidence["submission_sha256"]),
        len(evidence["tests_sha256"]),
    )
    assert rows()[0]["canonical_solution"] in evidence["submission"]
