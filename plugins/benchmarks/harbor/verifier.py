"""Runs a task's tests in its sandbox and reads what they say. The agent is dead by then, and nothing of it survives."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentcompass.core.model.environment import ExecResult
from agentcompass.core.model.issue import Issue, IssuePhase, Severity
from agentcompass.core.model.result import Verdict
from agentcompass.ports.environment import Environment

from .reward import REWARD_FILES, RewardInvalidError, Rewards, parse, primary
from .sandbox import digest, renew_folders, run_as
from .scoring import Scoring
from .symptoms import pytest_summary, setup_failure, start_failure
from .tb1_task import RUN_TESTS
from .values import Format, HarborTask, Step

_LONGEST_REWARD = 1024 * 1024
_SHOWN = 2000
# What a test has left running may go on writing: the moment the script ends, its result is put away under a name that
# nobody knows, and its output ends with a word that nobody knows.
_RUN = """\
"$1"; code=$?
for name in reward.json reward.txt; do
    path=/logs/verifier/$name
    if [ -e "$path" ] || [ -L "$path" ]; then mv -- "$path" "$2/$name"; fi
done
printf '\\n%s\\n' "$3"; exit $code
"""
_PRESENT = """\
for name in reward.json reward.txt; do
    path=$1/$name
    if [ -L "$path" ]; then kind=link
    elif [ -f "$path" ]; then kind=file
    elif [ -e "$path" ]; then kind=other
    else continue; fi
    echo "$name $kind"
done
"""
_PASSING = ("PASSED", "SKIPPED", "XFAIL")


@dataclass(frozen=True, slots=True)
class Tests:
    """What grades *task*, or its *step*: uploads in order, and the script that they bring."""

    task: HarborTask
    step: Step | None
    env: Mapping[str, str]

    @property
    def script(self) -> str:
        """The script in the sandbox."""
        return f"/tests/{RUN_TESTS if self.task.format is Format.TERMINAL_BENCH else 'test.sh'}"

    @property
    def sources(self) -> Sequence[tuple[str, str]]:
        """The files and trees of this machine, with where they go; none if the image holds them."""
        task, found = self.task, []
        if self.baked:
            return ()
        if task.has("tests"):
            found.append((task.path("tests"), "/tests"))
        if self.step is not None and task.has("steps", self.step.name, "tests"):
            found.append((task.path("steps", self.step.name, "tests"), "/tests"))
        if task.format is Format.TERMINAL_BENCH:
            found.append((task.path(RUN_TESTS), self.script))
        return found

    @property
    def baked(self) -> bool:
        """Tell whether the image of the verifier brings the tests."""
        task, verifier = self.task, self.task.config.verifier_of(self.step)
        if not verifier.separate:
            return False
        if verifier.machine is not None and verifier.machine.image is not None:
            own = self.step is not None and task.has("steps", self.step.name, "tests", "test.sh")
            return not (own or task.has("tests", "test.sh"))
        return task.bakes_tests()


async def verify(tests: Tests, environment: Environment, scoring: Scoring, timeout: float | None) -> Verdict:
    """Run *tests* and return what they say; *timeout* is that of a step, the task's is the runtime's.

    Raises:
        PhaseFailed: the tests could not be put in place.
    """
    word = secrets.token_hex(16)
    verdict = f"/logs/verdict-{secrets.token_hex(8)}"
    await renew_folders(environment, keep_tests=tests.baked, verdict=verdict)
    for source, target in tests.sources:
        await environment.upload(source, target)
    await run_as(environment, f"chmod -R a+rX /tests; chmod a+x {tests.script}", "root")
    verifier = tests.task.config.verifier_of(tests.step)
    command = ["bash", "-c", _RUN, "bash", tests.script, verdict, word]
    ran = _until(word, await run_as(environment, command, verifier.user, env=tests.env, timeout=timeout))
    killed = await environment.kill_all()  # what a test left behind writes no verdict any more
    evidence = await asyncio.to_thread(_evidence, tests, ran, killed, timeout)
    if ran.timed_out:
        message = f"the tests were stopped after {timeout:g} s, the timeout_sec of the step's verifier"
        return _nothing(scoring, "verifier_timeout", message, evidence)
    if tests.task.format is Format.TERMINAL_BENCH:
        return _judged_by_summary(ran, scoring, evidence)
    try:
        rewards = await _rewards(environment, verdict, evidence)
    except RewardInvalidError as exc:
        return _unjudged(exc, tests, ran, scoring, evidence)
    return _judged_by_rewards(rewards, ran, scoring, evidence)


def _until(word: str, ran: ExecResult) -> ExecResult:
    """Return *ran* with what was printed before *word*."""
    before, mark, _ = ran.stdout.partition(f"\n{word}\n".encode())
    return replace(ran, stdout=before, stdout_size=ran.stdout_size - len(mark)) if mark else ran


def _unjudged(
    exc: RewardInvalidError, tests: Tests, ran: ExecResult, scoring: Scoring, evidence: dict[str, Any]
) -> Verdict:
    """Tell tests that could not start from those that wrote nothing of use."""
    if "reward_file" not in evidence:
        reason = start_failure(ran.exit_code, ran.stderr.decode("utf-8", "replace"), tests.script)
        reason = reason or setup_failure(ran.text)
        if reason:
            return broken(f"the tests could not start: {reason}", evidence)
    return _nothing(scoring, "verifier_result_invalid", _with_output(str(exc), ran), evidence)


def _judged_by_rewards(rewards: Rewards, ran: ExecResult, scoring: Scoring, evidence: dict[str, Any]) -> Verdict:
    evidence["rewards"] = dict(rewards.values)
    reward = primary(rewards, scoring.key)
    if reward is None:
        wanted = scoring.key or "reward"
        known = ", ".join(rewards.values)
        message = f"{rewards.file} has no {wanted!r}, only {known}; name one with reward_key"
        return broken(message, evidence, "verifier_result_invalid")
    return _scored(reward, ran, scoring, evidence)


def _scored(reward: float, ran: ExecResult, scoring: Scoring, evidence: dict[str, Any]) -> Verdict:
    evidence["reward"] = reward
    reason = setup_failure(ran.text) if reward <= scoring.minimum else None
    if reason:
        return broken(f"the tests could not start: {reason}", evidence)
    return Verdict(scoring.metrics(reward), (), evidence)


def _judged_by_summary(ran: ExecResult, scoring: Scoring, evidence: dict[str, Any]) -> Verdict:
    """Take pytest's own summary for the verdict: every test has to pass."""
    results = pytest_summary(ran.stdout.decode("utf-8", "replace"))
    if not results:
        reason = setup_failure(ran.text) or start_failure(ran.exit_code, ran.text, f"/tests/{RUN_TESTS}")
        if reason:
            return broken(f"the tests could not start: {reason}", evidence)
        message = _with_output("the output has no summary of pytest", ran)
        return _nothing(scoring, "verifier_result_invalid", message, evidence)
    evidence["tests"] = results
    passed = all(status in _PASSING for status in results.values()) and "PASSED" in results.values()
    return _scored(scoring.maximum if passed else scoring.minimum, ran, scoring, evidence)


async def _rewards(environment: Environment, folder: str, evidence: dict[str, Any]) -> Rewards:
    """Return what the reward file in *folder* says; a link is none, whatever it leads to."""
    listed = await run_as(environment, ["sh", "-c", _PRESENT, "sh", folder], "root")
    found = dict(line.split(" ", 1) for line in listed.stdout.decode("utf-8", "replace").splitlines() if " " in line)
    name = next((name for name in REWARD_FILES if name in found), None)
    if name is None:
        raise RewardInvalidError("the tests wrote neither reward.json nor reward.txt")
    evidence["reward_file"] = name
    if found[name] != "file":
        raise RewardInvalidError(f"{name} is no regular file")
    try:
        data = await environment.read_file(f"{folder}/{name}", limit=_LONGEST_REWARD)
    except ValueError:
        raise RewardInvalidError(f"{name} is larger than {_LONGEST_REWARD} bytes") from None
    if data is None:
        raise RewardInvalidError(f"{name} is no regular file")
    evidence["reward_text"] = data[:_SHOWN].decode("utf-8", "replace")
    return parse(name, data)


def _evidence(tests: Tests, ran: ExecResult, killed: int, timeout: float | None) -> dict[str, Any]:
    verifier = tests.task.config.verifier_of(tests.step)
    instruction = tests.step.instruction if tests.step else tests.task.instruction
    # Tests that an image brings come from the same files, which are its build context.
    folders = [source for source, _ in tests.sources] or [tests.task.path("tests")]
    found = {
        "exit_code": ran.exit_code,
        "output": ran.text[-_SHOWN:].strip(),
        "output_bytes": ran.stdout_size + ran.stderr_size,
        "seconds": round(ran.seconds, 3),
        "killed_processes": killed,
        "environment_mode": "separate" if verifier.separate else "shared",
        "tests_sha256": digest(folders),
        "instruction_sha256": hashlib.sha256(instruction.encode()).hexdigest(),
        "verifier_timeout_seconds": timeout or verifier.timeout_seconds,
        "verifier_user": verifier.user,
    }
    return found if tests.step is None else {**found, "step": tests.step.name}


def _with_output(message: str, ran: ExecResult) -> str:
    """Return *message* with how the tests ended: a verdict that says nothing helps nobody."""
    last = " | ".join(ran.text[-300:].strip().splitlines()[-3:])
    return f"{message}; exit code {ran.exit_code}{f', last output: {last}' if last else ', no output'}"


def _nothing(scoring: Scoring, code: str, message: str, evidence: dict[str, Any]) -> Verdict:
    issue = Issue(Severity.WARNING, IssuePhase.EVALUATE, code, message)
    return Verdict(scoring.nothing, (issue,), evidence)


def broken(message: str, evidence: Mapping[str, Any], code: str = "verifier_setup_failed") -> Verdict:
    """Return the verdict of a verifier that is itself at fault: no score."""
    return Verdict({}, (Issue(Severity.FATAL, IssuePhase.EVALUATE, code, message),), evidence)
