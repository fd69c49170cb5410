"""The agent's part of an attempt, up to what it left behind. It is dead before anything is collected."""

from __future__ import annotations

from ..errors import PhaseFailed
from ..model.plan import Plan
from .artifacts import keep_artifacts
from .effects import (
    Cancelled,
    CloseHarness,
    CollectResult,
    EnvironmentHandle,
    KillProcesses,
    NextStep,
    PrepareTask,
    RunHarness,
    RunTask,
    SessionHandle,
    StartHarness,
    SwitchNetwork,
)
from .notes import Notes
from .phases import Phase
from .script import enter, quietly, run_limit, timed


async def prepare(plan: Plan, notes: Notes, env: EnvironmentHandle) -> bool:
    """Make the task, or its next step, ready; return False if there is no further one."""
    await enter(Phase.PREPARE_TASK)
    if notes.prepared is None:
        notes.prepared = await timed(notes, Phase.PREPARE_TASK, PrepareTask(env))
        return True
    if plan.run_network != plan.environment.network:
        await SwitchNetwork(env, plan.environment.network)
    following = await timed(notes, Phase.PREPARE_TASK, NextStep(env, notes.prepared, tuple(notes.verdicts)))
    if following is None:
        return False
    notes.begin_step(following)
    return True


async def infer(plan: Plan, notes: Notes, env: EnvironmentHandle) -> None:
    """Let the agent work on what is prepared, and collect what it left."""
    assert notes.prepared is not None
    if plan.has_harness:
        await enter(Phase.START_HARNESS)
        session = await timed(notes, Phase.START_HARNESS, StartHarness(env, notes.prepared))
        try:
            await _run_harness(plan, notes, env, session)
            await enter(Phase.COLLECT_HARNESS_RESULT)
            collecting = CollectResult(session, notes.prepared, plan.collect_seconds)
            notes.collect(await timed(notes, Phase.COLLECT_HARNESS_RESULT, collecting))
        finally:
            await quietly(notes, CloseHarness(session))
    else:
        await _run_task(plan, notes, env)
    if notes.cancelled:
        raise Cancelled
    if plan.artifacts is not None and not notes.fatal:
        await keep_artifacts(plan, plan.artifacts, notes, env)
    notes.inferred = True


async def _run_harness(plan: Plan, notes: Notes, env: EnvironmentHandle, session: SessionHandle) -> None:
    assert notes.prepared is not None
    await _open_network(plan, env)
    budget = plan.run.seconds if plan.run else None
    running = RunHarness(session, notes.prepared, budget, plan.run_outer_seconds, run_limit(plan))
    await enter(Phase.RUN_HARNESS)
    try:
        await timed(notes, Phase.RUN_HARNESS, running)
    except PhaseFailed as failure:
        notes.fail(failure)
    except Cancelled:  # what the agent has done so far is still collected, within the grace
        notes.cancelled = True
    notes.count_killed(await KillProcesses(env))


async def _run_task(plan: Plan, notes: Notes, env: EnvironmentHandle) -> None:
    assert notes.prepared is not None
    await _open_network(plan, env)
    await enter(Phase.RUN_TASK)
    running = RunTask(env, notes.prepared, plan.run_outer_seconds, run_limit(plan))
    try:
        notes.collect(await timed(notes, Phase.RUN_TASK, running))
    except PhaseFailed as failure:
        notes.fail(failure)
    except Cancelled:
        notes.cancelled = True
    notes.count_killed(await KillProcesses(env))


async def _open_network(plan: Plan, env: EnvironmentHandle) -> None:
    if plan.run_network != plan.environment.network:
        await SwitchNetwork(env, plan.run_network)
