"""Whether an attempt is executed again, how much of it, and after how long a wait: the only place that decides it.

FATAL is always retried while the budget lasts, ERROR only when a pattern matches its message or its code, WARNING
never. Failed grading alone is repeated alone where the grading does not need the sandbox that the agent ran in.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from .model.issue import Issue, IssuePhase, Severity
from .model.plan import EvaluationMode, RetryPolicy

FATAL_PATTERN = "<fatal>"  #: what a retry for a FATAL issue is said to have matched
LONGEST_RETRY_AFTER = 3600.0  #: seconds; a wish to be left alone for longer is cut


class Scope(StrEnum):
    """How much is executed again."""

    ATTEMPT = "attempt"
    EVALUATE = "evaluate"


@dataclass(frozen=True, slots=True)
class Retry:
    """The decision to execute again: *number* counts from 1, *delay* is in seconds."""

    scope: Scope
    number: int
    matched_pattern: str
    delay: float


def reason(issues: Iterable[Issue], patterns: Iterable[str]) -> str | None:
    """Return the pattern for which *issues* call for a retry, or None."""
    issues = tuple(issues)
    if any(issue.severity is Severity.FATAL for issue in issues):
        return FATAL_PATTERN
    for issue in issues:
        if issue.severity is Severity.ERROR:
            for pattern in patterns:
                if re.search(pattern, issue.message) or re.search(pattern, issue.code):
                    return pattern
    return None


def delay(number: int, policy: RetryPolicy, identity: str, retry_after: float | None = None) -> float:
    """Return the seconds to wait before retry *number*: drawn from [b/2, b], b = min(min_delay * 2^(n-1), max_delay).

    The draw is a function of *identity*, so that a run can be told again, yet attempts do not come back in step.
    What the other side asked for (*retry_after*) is a lower bound.
    """
    bound = min(policy.min_delay_seconds * 2.0 ** min(number - 1, 60), policy.max_delay_seconds)
    digest = hashlib.blake2b(f"{identity}/{number}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    drawn = bound / 2 * (1 + int.from_bytes(digest) / 2**64)
    return max(drawn, min(retry_after or 0.0, LONGEST_RETRY_AFTER))


def decide(
    issues: Iterable[Issue],
    policy: RetryPolicy,
    used: int,
    mode: EvaluationMode,
    inferred: bool,
    identity: str,
    retry_after: float | None = None,
) -> Retry | None:
    """Return what to execute again after an execution that left *issues*, or None to keep it.

    *used* retries are already spent; *inferred* says that everything before the grading succeeded.
    """
    if used >= policy.max_retries:
        return None
    issues = tuple(issues)
    earlier = [issue for issue in issues if issue.phase is not IssuePhase.EVALUATE]
    matched = reason(earlier, policy.patterns)
    scope = Scope.ATTEMPT
    if matched is None:
        matched = reason(issues, policy.patterns)
        if inferred and mode is not EvaluationMode.REUSE:
            scope = Scope.EVALUATE
    if matched is None:
        return None
    return Retry(scope, used + 1, matched, delay(used + 1, policy, identity, retry_after))
