"""What the watch knows of its own of the rules: which issues call for a retry, what wins, what is no metric."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from agentcompass.core.model.issue import Issue, Severity
from agentcompass.core.model.result import RunResult

from .office import Sandbox
from .settings import Order


def sandbox_of(effect: Any) -> Sandbox | None:
    """Return the sandbox that *effect* works in."""
    env = getattr(effect, "env", None)
    session = getattr(effect, "session", None)
    return session.sandbox if session is not None else env


def has(issues: Iterable[Issue], severity: Severity) -> bool:
    """Tell whether one of *issues* is of *severity*."""
    return any(issue.severity is severity for issue in issues)


def has_code(issues: Iterable[Issue], code: str) -> bool:
    """Tell whether one of *issues* has *code*."""
    return any(issue.code == code for issue in issues)


def calls(issues: Iterable[Issue], order: Order) -> bool:
    """Tell whether *issues* call for a retry."""
    issues = tuple(issues)
    errors = [issue for issue in issues if issue.severity is Severity.ERROR]
    found = (re.search(p, text) for issue in errors for text in (issue.message, issue.code) for p in order.patterns)
    return has(issues, Severity.FATAL) or any(found)


def wins(result: RunResult, order: Order) -> bool:
    """Tell whether *result* is a success."""
    return not order.scalar and result.metrics.get("correct") is True and not has(result.issues, Severity.FATAL)


def bad(metrics: Any, order: Order) -> bool:
    """Tell whether *metrics* are nothing that the contract allows."""
    if not isinstance(metrics, dict) or set(metrics) - {"score" if order.scalar else "correct"}:
        return True
    value = metrics.get("score" if order.scalar else "correct")
    if value is None:
        return bool(metrics)
    return isinstance(value, bool) is order.scalar or (
        order.scalar and not (isinstance(value, float) and 0 <= value <= 1)
    )
