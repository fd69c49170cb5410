"""The harnesses in the box: one that asks a model, one that knows the answers, one that does nothing."""

from __future__ import annotations

import json

import pytest
from support.endpoint import Reply, answer, serving

from agentcompass.core.model.task import Message, OutputFile, PreparedTask, Solution
from agentcompass.plugins.harnesses.openai_chat import last_fenced_block

FENCES = {
    "none": ("x = 1", "x = 1"),
    "one": ("So:\n```python\nx = 1\n```\nDone.", "x = 1\n"),
    "the last of two": ("```\na\n```\nbetter:\n```py\nb\n```", "b\n"),
    "no language": ("```\nx\n```", "x\n"),
    "language and more": ("```python title=a.py\nx\n```", "x\n"),
    "tildes": ("~~~python\nx\n~~~", "x\n"),
    "a longer fence around a shorter one": ("````md\n```\nx\n```\n````", "```\nx\n```\n"),
    "empty block": ("```\n```", ""),
    "never closed": ("```python\nx = 1", "```python\nx = 1"),
    "backticks within a line": ("say ```x``` now", "say ```x``` now"),
    "backticks within the code": ("```python\nx = '```'\ny = 1\n```", "x = '```'\ny = 1\n"),
    "blank lines and spaces stay": ("```python\n\n  x\n\n```", "\n  x\n\n"),
    "carriage returns": ("```python\r\nx = 1\r\n```\r\n", "x = 1\r\n"),
    "empty": ("", ""),
}


@pytest.mark.parametrize("name", FENCES)
def test_the_last_fenced_block(name):
    """A submission is what stands in the last fence, as it stands there; without one it is the whole answer."""
    text, wanted = FENCES[name]

    assert wanted == last_fenced_block(text)


def test_many_fences_take_no_time():
    """An answer made of fences does not keep the loop busy."""
    assert "x\n" == last_fenced_block("```\n" * 4000 + "~~~\n" * 4001 + "x\n" + "~~~\n")


@pytest.fixture
def asked(toys, monkeypatch, command):
    """Run a toy task through openai_chat; return the run and what the endpoint was asked."""

    def run(prepared, reply, **harness):
        async def prepare(self, task, environment):
            return prepared

        async def evaluate(self, task, shown, result, environment):
            from agentcompass.core.model.result import Verdict

            files = {path: data.decode() for path, data in environment.files.items()}
            return Verdict({"correct": True}, evidence={"files": files})

        monkeypatch.setattr("support.toys.ToyBenchmark.prepare_task", prepare)
        monkeypatch.setattr("support.toys.ToyBenchmark.evaluate", evaluate)
        with serving(lambda body: reply) as endpoint:
            ran = toys.run(
                {"a": {}},
                *("--model-base-url", endpoint.url, "--model-params", '{"max_retries": 0}'),
                harness="openai_chat",
                harness_params=harness,
                model="M",
                mode="reuse",
            )
        return ran, endpoint

    return run


def _attempt(ran):
    return ran.details()["a"]["attempts"]["1"]


def test_a_prompt_is_one_message_and_the_answer_becomes_the_file(asked):
    """The fenced block is written where the task asks for it; the answer is kept as it came."""
    prepared = PreparedTask("Write it.", outputs=(OutputFile("out/answer.py"),))
    ran, endpoint = asked(prepared, answer("Here:\n```python\nx = 1\n```"))

    assert [{"role": "user", "content": "Write it."}] == endpoint.requests[0]["messages"]
    assert {"out/answer.py": "x = 1\n"} == _attempt(ran)["meta"]["benchmark"]["files"]
    assert "Here:\n```python\nx = 1\n```" == _attempt(ran)["final_answer"]


def test_messages_are_sent_as_they_are_after_the_system_prompt(asked):
    """The harness's own comes first; without a file to write nothing is written."""
    prepared = PreparedTask((Message("user", "Hello"), Message("assistant", "Yes?"), Message("user", "1 + 1?")))
    ran, endpoint = asked(prepared, answer("2"), system_prompt="Be brief.")

    assert ["system", "user", "assistant", "user"] == [m["role"] for m in endpoint.requests[0]["messages"]]
    assert "Be brief." == endpoint.requests[0]["messages"][0]["content"]
    assert ({}, "2") == (_attempt(ran)["meta"]["benchmark"]["files"], _attempt(ran)["final_answer"])


def test_the_exchange_is_kept_as_a_trajectory(asked):
    """An ATIF document beside the result: numbered steps, reasoning, model, tokens, totals."""
    body = {
        "model": "M-2026",
        "choices": [{"message": {"content": "2", "reasoning_content": "one and one"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}},
    }
    ran, _ = asked(PreparedTask("1 + 1?"), Reply(body), system_prompt="Be brief.")

    assert {"path": "trajectory.json"} == _attempt(ran)["trajectory"]
    assert {
        "schema_version": "ATIF-v1.8",
        "agent": {"name": "openai_chat", "version": "1"},
        "steps": [
            {"step_id": 1, "source": "system", "message": "Be brief."},
            {"step_id": 2, "source": "user", "message": "1 + 1?"},
            {
                "step_id": 3,
                "source": "agent",
                "message": "2",
                "model_name": "M-2026",
                "reasoning_content": "one and one",
                "metrics": {"prompt_tokens": 9, "completion_tokens": 1, "cached_tokens": 4},
            },
        ],
        "final_metrics": {
            "total_prompt_tokens": 9,
            "total_completion_tokens": 1,
            "total_cached_tokens": 4,
            "total_steps": 3,
        },
    } == ran.document("attempts/a/1/trajectory.json")


def test_usage_is_kept_and_totalled(asked):
    """Tokens, calls and the model's time of the attempt; a total in the metrics and on the terminal."""
    ran, _ = asked(PreparedTask("1 + 1?"), answer("2", prompt_tokens_details={"cached_tokens": 4}))

    usage = _attempt(ran)["usage"]
    assert (11, 4, 7, 1) == tuple(
        usage[name] for name in ("prompt_tokens", "cached_tokens", "completion_tokens", "model_calls")
    )
    assert 0 < usage["model_seconds"] < 30
    assert "usage    11 prompt tokens, 4 cached tokens, 7 completion tokens" in ran.out


def test_without_an_answer_there_is_no_trajectory(asked):
    """A refused request leaves a result without one, and says that a call was made."""
    ran, _ = asked(PreparedTask("1 + 1?"), Reply({"error": {"message": "no"}}, 404))

    assert ({}, {"model_calls": 1}) == (_attempt(ran)["trajectory"], _attempt(ran)["usage"])
    assert not (ran.run_dir / "attempts" / "a" / "1" / "trajectory.json").exists()


def _oracle(toys, monkeypatch, solution, **options):
    async def prepare(self, task, environment):
        return PreparedTask("", solution=solution, workdir="/work")

    monkeypatch.setattr("support.toys.ToyBenchmark.prepare_task", prepare)
    return toys.run({"a": {}}, harness="oracle", mode="reuse", **options)


def test_the_oracle_refuses_a_task_without_a_solution(toys, monkeypatch):
    """There is nothing that it could apply: FATAL input_missing."""
    issue = _attempt(_oracle(toys, monkeypatch, None))["issues"][0]

    assert ("fatal", "setup", "input_missing") == (issue["severity"], issue["phase"], issue["code"])


def test_the_oracle_applies_files_and_command(toys, monkeypatch):
    """Files first, then the command in the task's folder, with the budget as its limit; the answer is brought back."""
    from support.toys import Sandbox

    from agentcompass.core.model.environment import ExecResult

    calls = []

    async def execute(self, command, *, cwd=None, timeout=None, **_):
        calls.append((command, cwd, timeout, dict(self.files)))
        return ExecResult(0, b"done", b"", 4, 0, False, 0.1)

    monkeypatch.setattr(Sandbox, "exec", execute)
    solution = Solution({"a.txt": b"A"}, "make", "42")
    ran = _oracle(toys, monkeypatch, solution, execution={"run_timeout_seconds": 9})

    assert [("make", "/work", 9.0, {"a.txt": b"A"})] == calls
    assert ("42", {"output": "done", "exit_code": 0}) == (_attempt(ran)["final_answer"], _attempt(ran)["artifacts"])


@pytest.mark.parametrize(
    ("code", "timed_out", "issue", "message"),
    [
        (3, False, "harness_failed", "the solution ended with exit code 3: no compiler"),
        (None, True, "harness_timeout", "the solution took more than 9 s"),
    ],
)
def test_a_solution_that_fails_is_an_error(toys, monkeypatch, code, timed_out, issue, message):
    """With the exit code and the last of its output."""
    from support.toys import Sandbox

    from agentcompass.core.model.environment import ExecResult

    async def execute(self, command, **_):
        return ExecResult(code, b"", b"no compiler\n", 0, 12, timed_out, 0.1)

    monkeypatch.setattr(Sandbox, "exec", execute)
    ran = _oracle(toys, monkeypatch, Solution(command="make"), execution={"run_timeout_seconds": 9})

    assert [("error", issue, message)] == [(i["severity"], i["code"], i["message"]) for i in _attempt(ran)["issues"]]


def test_the_harness_that_does_nothing(toys):
    """It leaves no answer, no trajectory and no issue."""
    attempt = _attempt(toys.run({"a": {"verdict": False}}, harness="nop"))

    assert (None, {}, [], {"correct": False}) == tuple(
        attempt[name] for name in ("final_answer", "trajectory", "issues", "metrics")
    )


@pytest.mark.parametrize("harness", ["nop", "oracle"])
def test_a_harness_that_needs_no_model_may_be_given_one(command, harness):
    """It is recorded, and nobody is called."""
    options = ("--model-base-url", "http://nowhere.invalid/v1", "--limit", "1")
    ran = command("humaneval", harness, "M", *options)

    assert (0, "M") == (ran.status, json.loads((ran.run_dir / "run_info.json").read_text())["request"]["model"]["id"])
