"""The grader's part of an attempt: in the agent's sandbox, in a fresh one, or in none."""

from __future__ import annotations

from dataclasses import replace

from ..errors import PhaseFailed
from ..metrics.contract import MetricInvalidError, check
from ..model.issue import Issue, IssuePhase, Severity
from ..model.plan import EvaluationMode, Plan
from ..model.result import Verdict
from .artifacts import restore_artifacts
from .effects import (
    CombineSteps,
    EnvironmentHandle,
    Evaluate,
    OpenEnvironment,
    PaceOpening,
    SwitchGradingNetwork,
)
from .notes import Notes
from .phases import Phase
from .script import close, enter, evaluation_limit, timed


async def grade(plan: Plan, notes: Notes, env: EnvironmentHandle | None) -> None:
    """Grade in the plan's mode; *env* is the agent's sandbox, where it is still open."""
    if plan.evaluation_mode is EvaluationMode.FRESH:
        await _grade_afresh(plan, notes)
    elif plan.evaluation_mode is EvaluationMode.REUSE:
        assert env is not None
        if plan.evaluation_network != plan.run_network:
            await SwitchGradingNetwork(env, plan.evaluation_network)
        await _grade(plan, notes, env)
    else:
        await _grade(plan, notes, None)


async def _grade_afresh(plan: Plan, notes: Notes) -> None:
    await enter(Phase.EVALUATE_ENVIRONMENT)
    await PaceOpening(plan.provider)
    spec = plan.verifier or plan.environment
    opening = OpenEnvironment(plan.provider, spec, "verifier", plan.build_seconds)
    try:
        env = await timed(notes, Phase.EVALUATE_ENVIRONMENT, opening)
    except PhaseFailed as failure:  # the agent's work is done and stays: only the grading is to be repeated
        moved = Issue(failure.issue.severity, IssuePhase.EVALUATE, failure.issue.code, failure.issue.message)
        raise PhaseFailed(moved, failure.diagnostics, failure.retry_after) from failure
    try:
        if plan.artifacts is not None:
            await restore_artifacts(plan.artifacts, notes, env)
        if plan.evaluation_network != spec.network:
            await SwitchGradingNetwork(env, plan.evaluation_network)
        await _grade(plan, notes, env)
    finally:
        await close(plan, notes, env)


async def _grade(plan: Plan, notes: Notes, env: EnvironmentHandle | None) -> None:
    assert notes.prepared is not None
    await enter(Phase.EVALUATE)
    within = plan.evaluation.seconds if plan.evaluation else None
    try:
        grading = Evaluate(env, notes.prepared, notes.result(), within, evaluation_limit(plan))
        verdict = await timed(notes, Phase.EVALUATE, grading)
    except PhaseFailed as failure:
        notes.fail(failure)
        return
    if plan.steps > 1:
        notes.verdicts.append(verdict)
    else:
        _judge(plan, notes, verdict)


async def combine(plan: Plan, notes: Notes) -> None:
    """Make one verdict of those of the steps."""
    if notes.verdicts and notes.gradeable:
        _judge(plan, notes, await CombineSteps(tuple(notes.verdicts)))


def _judge(plan: Plan, notes: Notes, verdict: Verdict) -> None:
    try:
        checked = check(plan.metrics, verdict.metrics)
    except MetricInvalidError as invalid:
        notes.judge(replace(verdict, metrics={}))
        notes.fail(PhaseFailed(Issue(Severity.FATAL, IssuePhase.EVALUATE, "metric_invalid", str(invalid))))
    else:
        notes.judge(replace(verdict, metrics=checked))
