"""The life of an attempt, told as a straight line of effects.

One call of `run_attempt` is one execution: it ends with the attempt saved (`Kept`), to be executed again after a wait
that holds nothing (`Again`), or given up because the run is being stopped (`GivenUp`). Before anything is collected
or graded, the agent's whole process tree is dead.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import TypeVar

from .. import retry
from ..budgets import describe
from ..errors import PhaseFailed
from ..metrics.contract import MetricInvalidError, check
from ..model.issue import Issue, IssuePhase, Severity
from ..model.plan import EvaluationMode, Plan, RetryPolicy
from ..model.result import Usage
from ..model.task import Task
from .effects import (
    Announce,
    Cancelled,
    CloseEnvironment,
    CloseHarness,
    CollectResult,
    EnvironmentHandle,
    Evaluate,
    KillProcesses,
    OpenEnvironment,
    PaceOpening,
    PrepareTask,
    ReadStopwatch,
    ResolvePlan,
    RunHarness,
    RunTask,
    SaveAttempt,
    SaveRetry,
    SaveTask,
    SessionHandle,
    StartHarness,
)
from .notes import Notes
from .phases import Phase

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Job:
    """One execution to be done: of which attempt, after how many retries, and what is already known.

    *opens_task* says that it is the first of its task. *notes* holds what came before the grading when only that is
    to be repeated. *discarded* is what executions that retries replaced have consumed.
    """

    task: Task
    attempt: int
    index: int
    total: int
    policy: RetryPolicy
    identity: str
    opens_task: bool = False
    retries: int = 0
    plan: Plan | None = None
    notes: Notes | None = None
    discarded: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Kept:
    """The attempt is final and saved."""


@dataclass(frozen=True, slots=True)
class Again:
    """The attempt is to be executed again: *job*, after *delay* seconds."""

    job: Job
    delay: float


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The run is being stopped; what was there is saved, and does not count."""


Step = Kept | Again | GivenUp


async def run_attempt(job: Job) -> Step:
    """Execute *job* once and see to what follows from it."""
    if job.opens_task:
        await Announce("task_started", payload={"index": job.index, "total": job.total})
    if job.retries == 0:
        await Announce("attempt_started")
    notes = job.notes or Notes()
    plan = job.plan
    try:
        if plan is None:
            await _enter(Phase.PLAN)
            plan = await ResolvePlan()
        await _execute(plan, notes, graded_only=job.notes is not None)
    except PhaseFailed as failure:
        notes.fail(failure)
    except Cancelled:
        notes.cancelled = True
    if notes.cancelled:  # whatever failed while tidying up
        await SaveAttempt(plan, notes.result(), job.retries, job.discarded)
        return GivenUp()
    return await _conclude(job, plan, notes)


async def _conclude(job: Job, plan: Plan | None, notes: Notes) -> Step:
    policy = plan.retry if plan else job.policy
    mode = plan.evaluation_mode if plan else EvaluationMode.NONE
    again = retry.decide(notes.issues, policy, job.retries, mode, notes.inferred, job.identity, notes.retry_after)
    if again:
        return await _retry(job, plan, notes, again, policy.max_retries)
    result = notes.result()
    finished = await SaveAttempt(plan, result, job.retries, job.discarded)
    failed = result.severity is Severity.FATAL
    await Announce("attempt_finished", status="failed" if failed else "completed")
    if finished:
        await _enter(Phase.SAVE_PARTIAL)
        await SaveTask(finished)
        await Announce("partial_saved")
        await Announce("task_finished", status=finished.status, payload=finished.payload)
    return Kept()


async def _retry(job: Job, plan: Plan | None, notes: Notes, again: retry.Retry, max_retries: int) -> Again:
    stage = notes.failed_in or notes.phase
    details = {
        "retry": again.number,
        "max_retries": max_retries,
        "retry_delay_seconds": round(again.delay, 3),
        "stage": stage,
        "scope": again.scope.value,
        "matched_pattern": again.matched_pattern,
    }
    where = await SaveRetry(notes.result(), again.number, stage, details)
    await Announce("attempt_retry", payload={**details, "retry_detail": where})
    await Announce(
        "phase_changed", phase=Phase.RETRY_WAIT, payload={"retry_delay_seconds": details["retry_delay_seconds"]}
    )
    kept = notes.without_grading() if again.scope is retry.Scope.EVALUATE else None
    spent = job.discarded if kept else job.discarded.plus(notes.collected.usage)  # money spent stays spent
    following = replace(job, opens_task=False, retries=again.number, plan=plan, notes=kept, discarded=spent)
    return Again(following, again.delay)


async def _execute(plan: Plan, notes: Notes, graded_only: bool) -> None:
    if not graded_only:
        await _enter(Phase.OPEN_ENVIRONMENT)
        opening = OpenEnvironment(plan.provider, plan.environment, "run", plan.build_seconds)
        env = await _timed(notes, Phase.OPEN_ENVIRONMENT, opening)
        try:
            await _infer(plan, notes, env)
            if notes.gradeable and plan.evaluation_mode is EvaluationMode.REUSE:
                await _grade(plan, notes, env)
        finally:
            await _close(plan, notes, env)
    if notes.gradeable and plan.evaluation_mode is EvaluationMode.NONE:
        await _grade(plan, notes, None)
    if notes.gradeable and plan.evaluation_mode is EvaluationMode.FRESH:
        await _grade_afresh(plan, notes)


async def _infer(plan: Plan, notes: Notes, env: EnvironmentHandle) -> None:
    await _enter(Phase.PREPARE_TASK)
    notes.prepared = await _timed(notes, Phase.PREPARE_TASK, PrepareTask(env))
    if plan.has_harness:
        await _enter(Phase.START_HARNESS)
        session = await _timed(notes, Phase.START_HARNESS, StartHarness(env, notes.prepared))
        try:
            await _run_harness(plan, notes, env, session)
            await _enter(Phase.COLLECT_HARNESS_RESULT)
            collecting = CollectResult(session, notes.prepared, plan.collect_seconds)
            notes.collect(await _timed(notes, Phase.COLLECT_HARNESS_RESULT, collecting))
        finally:
            await _quietly(notes, CloseHarness(session))
    else:
        await _run_task(plan, notes, env)
    if notes.cancelled:
        raise Cancelled
    notes.inferred = True


async def _run_harness(plan: Plan, notes: Notes, env: EnvironmentHandle, session: SessionHandle) -> None:
    assert notes.prepared is not None
    budget = plan.run.seconds if plan.run else None
    running = RunHarness(session, notes.prepared, budget, plan.run_outer_seconds, _run_limit(plan))
    await _enter(Phase.RUN_HARNESS)
    try:
        await _timed(notes, Phase.RUN_HARNESS, running)
    except PhaseFailed as failure:
        notes.fail(failure)
    except Cancelled:  # what the agent has done so far is still collected, within the grace
        notes.cancelled = True
    notes.killed = await KillProcesses(env)


async def _run_task(plan: Plan, notes: Notes, env: EnvironmentHandle) -> None:
    assert notes.prepared is not None
    await _enter(Phase.RUN_TASK)
    running = RunTask(env, notes.prepared, plan.run_outer_seconds, _run_limit(plan))
    try:
        notes.collect(await _timed(notes, Phase.RUN_TASK, running))
    except PhaseFailed as failure:
        notes.fail(failure)
    except Cancelled:
        notes.cancelled = True
    notes.killed = await KillProcesses(env)


async def _grade_afresh(plan: Plan, notes: Notes) -> None:
    await _enter(Phase.EVALUATE_ENVIRONMENT)
    await PaceOpening(plan.provider)
    opening = OpenEnvironment(plan.provider, plan.verifier or plan.environment, "verifier", plan.build_seconds)
    try:
        env = await _timed(notes, Phase.EVALUATE_ENVIRONMENT, opening)
    except PhaseFailed as failure:  # the agent's work is done and stays: only the grading is to be repeated
        moved = Issue(failure.issue.severity, IssuePhase.EVALUATE, failure.issue.code, failure.issue.message)
        raise PhaseFailed(moved, failure.diagnostics, failure.retry_after) from failure
    try:
        await _grade(plan, notes, env)
    finally:
        await _close(plan, notes, env)


async def _grade(plan: Plan, notes: Notes, env: EnvironmentHandle | None) -> None:
    assert notes.prepared is not None
    await _enter(Phase.EVALUATE)
    limit = "execution.evaluation_timeout_seconds" + (f" ({describe(plan.evaluation)})" if plan.evaluation else "")
    within = plan.evaluation.seconds if plan.evaluation else None
    try:
        grading = Evaluate(env, notes.prepared, notes.result(), within, limit)
        verdict = await _timed(notes, Phase.EVALUATE, grading)
    except PhaseFailed as failure:
        notes.fail(failure)
        return
    try:
        checked = check(plan.metrics, verdict.metrics)
    except MetricInvalidError as invalid:
        notes.judge(replace(verdict, metrics={}))
        notes.fail(PhaseFailed(Issue(Severity.FATAL, IssuePhase.EVALUATE, "metric_invalid", str(invalid))))
    else:
        notes.judge(replace(verdict, metrics=checked))


async def _close(plan: Plan, notes: Notes, env: EnvironmentHandle) -> None:
    if not plan.keep_environment:
        await _quietly(notes, CloseEnvironment(env))


async def _quietly(notes: Notes, effect: CloseHarness | CloseEnvironment) -> None:
    try:
        await effect
    except PhaseFailed as failure:
        notes.fail(failure)


async def _enter(phase: Phase) -> None:
    await Announce("phase_changed", phase=phase)


async def _timed(notes: Notes, phase: Phase, effect: Awaitable[T]) -> T:
    notes.phase = phase
    began = await ReadStopwatch()
    try:
        return await effect
    finally:
        ended = await ReadStopwatch()
        notes.seconds[phase] = round(notes.seconds.get(phase, 0.0) + ended - began, 6)


def _run_limit(plan: Plan) -> str:
    if plan.run is None:
        return ""
    grace = f" + {plan.run_compensation_seconds:g} s compensation" if plan.has_harness else ""
    return f"execution.run_timeout_seconds ({describe(plan.run)}){grace}"
