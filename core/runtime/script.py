"""What the parts of an attempt's script share: phases that are told and timed, limits that are described."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from ..budgets import describe
from ..errors import PhaseFailed
from ..model.plan import Plan
from .effects import Announce, CloseEnvironment, CloseHarness, EnvironmentHandle, ReadStopwatch
from .notes import Notes
from .phases import Phase

T = TypeVar("T")


async def enter(phase: Phase) -> None:
    """Tell that the attempt is in *phase* now."""
    await Announce("phase_changed", phase=phase)


async def timed(notes: Notes, phase: Phase, effect: Awaitable[T]) -> T:
    """Return what *effect* gives; its time counts for *phase*."""
    notes.phase = phase
    began = await ReadStopwatch()
    try:
        return await effect
    finally:
        ended = await ReadStopwatch()
        notes.seconds[phase] = round(notes.seconds.get(phase, 0.0) + ended - began, 6)


async def close(plan: Plan, notes: Notes, env: EnvironmentHandle) -> None:
    """Release a sandbox, unless it is to stay."""
    if not plan.keep_environment:
        await quietly(notes, CloseEnvironment(env))


async def quietly(notes: Notes, effect: CloseHarness | CloseEnvironment) -> None:
    """Tidy up; a failure is noted."""
    try:
        await effect
    except PhaseFailed as failure:
        notes.fail(failure)


def run_limit(plan: Plan) -> str:
    """Describe the outer limit of the agent's run."""
    if plan.run is None:
        return ""
    grace = f" + {plan.run_compensation_seconds:g} s compensation" if plan.has_harness else ""
    return f"execution.run_timeout_seconds ({describe(plan.run)}){grace}"


def evaluation_limit(plan: Plan) -> str:
    """Describe the limit of the grading."""
    return "execution.evaluation_timeout_seconds" + (f" ({describe(plan.evaluation)})" if plan.evaluation else "")
