"""The life of an attempt, told as a straight line of effects.

One call of `run_attempt` is one execution: it ends with the attempt saved (`Kept`), to be executed again after a wait
that holds nothing (`Again`), or given up because the run is being stopped (`GivenUp`). Before anything is collected
or graded, the agent's whole process tree is dead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .. import retry
from ..errors import PhaseFailed
from ..model.issue import Severity
from ..model.plan import EvaluationMode, Plan, RetryPolicy
from ..model.result import Usage
from ..model.task import Task
from .effects import (
    Announce,
    Cancelled,
    EnvironmentHandle,
    OpenEnvironment,
    ResolvePlan,
    SaveAttempt,
    SaveCheckpoint,
    SaveRetry,
    SaveTask,
)
from .grading import combine, grade
from .inference import infer, prepare
from .notes import Notes
from .phases import Phase
from .script import close, enter, timed


@dataclass(frozen=True, slots=True)
class Job:
    """One execution to be done: of which attempt, after how many retries, and what is already known.

    *opens_task* says that it is the first of its task, *first* that it is the first of its attempt in this run (and may
    be a retry of an earlier run's). *notes* holds what came before the grading when only that is
    to be repeated. *discarded* is what executions that retries replaced have consumed.
    """

    task: Task
    attempt: int
    index: int
    total: int
    policy: RetryPolicy
    identity: str
    opens_task: bool = False
    first: bool = True
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
    if job.first:
        await Announce("attempt_started")
    notes = job.notes or Notes()
    plan = job.plan
    try:
        if plan is None:
            await enter(Phase.PLAN)
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
    if plan and plan.steps > 1:  # the sandbox has gone on since a step was graded
        mode = EvaluationMode.REUSE
    again = retry.decide(notes.issues, policy, job.retries, mode, notes.inferred, job.identity, notes.retry_after)
    if again:
        return await _retry(job, plan, notes, again, policy.max_retries)
    result = notes.result()
    finished = await SaveAttempt(plan, result, job.retries, job.discarded)
    failed = result.severity is Severity.FATAL
    await Announce("attempt_finished", status="failed" if failed else "completed")
    if finished:
        await enter(Phase.SAVE_PARTIAL)
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
    following = replace(
        job, opens_task=False, first=False, retries=again.number, plan=plan, notes=kept, discarded=spent
    )
    return Again(following, again.delay)


async def _execute(plan: Plan, notes: Notes, graded_only: bool) -> None:
    if graded_only:
        await grade(plan, notes, None)
        return
    await enter(Phase.OPEN_ENVIRONMENT)
    opening = OpenEnvironment(plan.provider, plan.environment, "run", plan.build_seconds)
    env = await timed(notes, Phase.OPEN_ENVIRONMENT, opening)
    in_place = plan.evaluation_mode is EvaluationMode.REUSE or plan.steps > 1
    try:
        await _work(plan, notes, env, in_place)
    finally:
        await close(plan, notes, env)
    if notes.gradeable and not in_place:
        assert notes.prepared is not None
        await SaveCheckpoint(plan, notes.prepared, notes.result())
        await grade(plan, notes, None)


async def _work(plan: Plan, notes: Notes, env: EnvironmentHandle, in_place: bool) -> None:
    """Go through the steps, of which most tasks have one; what needs this sandbox is graded *in_place*."""
    while await prepare(plan, notes, env):
        await infer(plan, notes, env)
        graded = len(notes.verdicts)
        if notes.gradeable and in_place:
            await grade(plan, notes, env)
        if len(notes.verdicts) == graded:  # the only step, or one that could not be graded
            return
    await combine(plan, notes)
