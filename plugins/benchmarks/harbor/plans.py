"""What a task asks for, in the framework's terms: its task, its plan, its reference solution."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from agentcompass.core.errors import UsageError
from agentcompass.core.model.artifact import Artifact, ArtifactCommand
from agentcompass.core.model.environment import EnvironmentSpec
from agentcompass.core.model.plan import EvaluationMode, TaskPlan
from agentcompass.core.model.task import Solution, Task

from . import tb1_task
from .values import BUILD_TIMEOUT, VERIFIER_TIMEOUT, Format, HarborTask, Machine, Step
from .variables import resolved


def as_task(task: HarborTask) -> Task:
    """Return *task* as the framework's; budgets that its files leave out stay out."""
    metadata = _plain(task.config.metadata)
    category = metadata.get("category")
    return Task(
        id=task.name,
        prompt=task.instruction,
        category=category if isinstance(category, str) and category.strip() else None,
        metadata={"format": task.format.value, **metadata},
        data=task,
        run_timeout_seconds=_longest([task.config.agent_of(step).timeout_seconds for step in _steps(task)]),
        evaluation_timeout_seconds=_longest([task.config.verifier_of(step).timeout_seconds for step in _steps(task)]),
    )


def _steps(task: HarborTask) -> tuple[Step | None, ...]:
    return task.config.steps or (None,)


def _longest(seconds: list[float | None]) -> float | None:
    """Return the budget that is enough for every step; one without a limit needs none."""
    known = [value for value in seconds if value is not None]
    return max(known) if len(known) == len(seconds) else None


def _plain(value: Any) -> Any:
    """Return *value* as JSON: dates and times become text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else value


def as_plan(task: HarborTask, host: Mapping[str, str], allowed: Collection[str] | None) -> TaskPlan:
    """Return what *task* asks of a run, with variables of this machine filled in from *host*.

    Raises:
        UsageError: a variable is missing.
    """
    config = task.config
    first = _steps(task)[0]
    verifier_timeouts = [config.verifier_of(step).timeout_seconds for step in _steps(task)]
    return TaskPlan(
        run_timeout_seconds=_default_run_timeout(task),
        evaluation_timeout_seconds=_default_verifier_timeout(task, verifier_timeouts),
        environment=_spec(task, config.machine, task.build, "environment", host, allowed),
        build_timeout_seconds=config.machine.build_timeout_seconds or BUILD_TIMEOUT,
        evaluation_mode=EvaluationMode.FRESH if config.separate else EvaluationMode.REUSE,
        verifier=_verifier(task, host, allowed) if config.separate else None,
        run_network=config.agent_of(first).network,
        evaluation_network=config.verifier_of(first).network,
        artifacts=_artifacts(task),
        artifact_collect=_commands(task),
        steps=len(_steps(task)),
    )


def _default_run_timeout(task: HarborTask) -> float | None:
    is_old = task.format is Format.TERMINAL_BENCH and task.config.agent.timeout_seconds is None
    return tb1_task.AGENT_TIMEOUT if is_old else None


def _default_verifier_timeout(task: HarborTask, declared: list[float | None]) -> float | None:
    """Return the format's own budget where a task is silent; what it declares is the task's to say."""
    if None not in declared:
        return None
    usual = tb1_task.TEST_TIMEOUT if task.format is Format.TERMINAL_BENCH else VERIFIER_TIMEOUT
    return max([usual, *(value for value in declared if value is not None)])


def _spec(
    task: HarborTask,
    machine: Machine,
    build: str | None,
    table: str,
    host: Mapping[str, str],
    allowed: Collection[str] | None,
) -> EnvironmentSpec:
    return EnvironmentSpec(
        network=machine.network,
        env=resolved(machine.env, host, f"{task.path('task.toml')}: {table}.env", allowed),
        image=machine.image,
        build=build,
        workdir=machine.workdir,
        resources=machine.resources,
    )


def _verifier(task: HarborTask, host: Mapping[str, str], allowed: Collection[str] | None) -> EnvironmentSpec:
    """Return the sandbox of a separate verifier: its own image, that of the tests, or one like the agent's."""
    own = task.config.verifier_of(_steps(task)[0]).machine
    machine, table = (own, "verifier.environment") if own else (task.config.machine, "environment")
    if own is not None and own.image is not None:
        return _spec(task, machine, None, table, host, allowed)
    if task.bakes_tests():
        return _spec(task, replace(machine, image=None), task.path("tests"), table, host, allowed)
    like = replace(machine, image=task.config.machine.image, workdir=machine.workdir or task.config.machine.workdir)
    return _spec(task, like, task.build, table, host, allowed)


def _artifacts(task: HarborTask) -> tuple[Artifact, ...]:
    """Return the artifacts of the task and of all its steps, each source once."""
    every = [*task.config.artifacts, *(entry for step in task.config.steps for entry in step.artifacts)]
    return tuple({entry.source: entry for entry in every}.values())


def _commands(task: HarborTask) -> tuple[ArtifactCommand, ...]:
    every = [command for step in _steps(task) for command in task.config.verifier_of(step).collect]
    return tuple(dict.fromkeys(every))


def solution(
    task: HarborTask, step: Step | None, host: Mapping[str, str], allowed: Collection[str] | None
) -> Solution | None:
    """Return the reference solution of *step* (None: of the task), None if there is none."""
    if task.format is Format.TERMINAL_BENCH:
        return _old_solution(task)
    own = ("steps", step.name, "solution") if step is not None else ()
    folder = own if own and task.has(*own, "solve.sh") else ("solution",)
    if not task.has(*folder, "solve.sh"):
        return None
    try:
        env = resolved(task.config.solution_env, host, f"{task.path('task.toml')}: solution.env", allowed)
    except UsageError as exc:  # only who applies the solution has to know
        return Solution(command="printf '%s\\n' \"$PROBLEM\" >&2; exit 78", env={"PROBLEM": str(exc)})
    return Solution(uploads={"/solution": task.path(*folder)}, command="bash /solution/solve.sh", env=env)


def _old_solution(task: HarborTask) -> Solution | None:
    command = "bash /solution/solution.sh"
    if task.has("solution.sh"):
        return Solution(uploads={"/solution/solution.sh": task.path("solution.sh")}, command=command)
    if task.has("solution.yaml"):
        script = tb1_task.solution_script(task.folder)
        return Solution(files={"/solution/solution.sh": script.encode()}, command=command)
    return None
