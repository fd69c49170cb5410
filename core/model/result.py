"""Results: what a harness brings back, what a grader says of it, and what is kept of an attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from .artifact import Manifest
from .issue import Issue, Severity, worst

N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True)
class Usage:
    """What an attempt consumed: tokens (*prompt* includes *cached*), model calls, US dollars, seconds.

    None means unknown, which differs from zero.
    """

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    model_calls: int | None = None
    cost_usd: float | None = None
    model_seconds: float | None = None
    tool_seconds: float | None = None

    def plus(self, other: Usage) -> Usage:
        """Return the sum; unknown plus known is known."""
        return Usage(
            _add(self.prompt_tokens, other.prompt_tokens),
            _add(self.cached_tokens, other.cached_tokens),
            _add(self.completion_tokens, other.completion_tokens),
            _add(self.model_calls, other.model_calls),
            _add(self.cost_usd, other.cost_usd),
            _add(self.model_seconds, other.model_seconds),
            _add(self.tool_seconds, other.tool_seconds),
        )


def _add(a: N | None, b: N | None) -> N | None:
    if a is None:
        return b
    return a if b is None else a + b


@dataclass(frozen=True, slots=True)
class HarnessResult:
    """What a harness brings back from a task.

    *final_answer* is any JSON value; *trajectory* an ATIF document or None; *artifacts* and *telemetry* are the
    harness's own JSON.
    """

    final_answer: Any = None
    trajectory: Mapping[str, Any] | None = None
    usage: Usage = Usage()
    issues: tuple[Issue, ...] = ()
    artifacts: Mapping[str, Any] = field(default_factory=dict)
    telemetry: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a grader says: values of declared metrics, issues of its own, and the evidence to audit it by.

    *evidence* is JSON: the verifier's exit code and last lines, digests of tests and submission, the limits applied.
    """

    metrics: Mapping[str, Any] = field(default_factory=dict)
    issues: tuple[Issue, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)


class ResultStatus(StrEnum):
    """How an attempt ended, derived from its issues; it says nothing of whether the answer was right."""

    COMPLETED = "completed"
    SKIPPED = "skipped"
    RUN_ERROR = "run_error"
    EVAL_ERROR = "eval_error"
    RUN_ERROR_OR_EVAL_ERROR = "run_error_or_eval_error"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class RunResult:
    """All that is kept of one execution of an attempt.

    *killed_processes* counts what was still alive when the agent had finished; None when nobody looked.
    *seconds* is wall time by phase. *diagnostics* holds tracebacks and logs by phase. *manifest* says which artifacts
    were looked for; None when none were to be saved.
    """

    metrics: Mapping[str, Any] = field(default_factory=dict)
    issues: tuple[Issue, ...] = ()
    final_answer: Any = None
    trajectory: Mapping[str, Any] | None = None
    usage: Usage = Usage()
    artifacts: Mapping[str, Any] = field(default_factory=dict)
    telemetry: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    killed_processes: int | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    diagnostics: tuple[str, ...] = ()
    cancelled: bool = False
    manifest: Manifest | None = None

    @property
    def severity(self) -> Severity | None:
        """The gravest severity of the result's issues."""
        return worst(self.issues)

    @property
    def status(self) -> ResultStatus:
        """Derive the status from the issues; warnings do not count."""
        if self.cancelled:
            return ResultStatus.CANCELLED
        phases = {issue.phase == "evaluate" for issue in self.issues if issue.severity is not Severity.WARNING}
        if phases == {True, False}:
            return ResultStatus.RUN_ERROR_OR_EVAL_ERROR
        if phases:
            return ResultStatus.EVAL_ERROR if True in phases else ResultStatus.RUN_ERROR
        return ResultStatus.COMPLETED
