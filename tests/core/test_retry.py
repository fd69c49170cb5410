"""Whether an attempt is executed again, how much of it, and when."""

from __future__ import annotations

import math

import pytest

from agentcompass.core.model.issue import Issue, IssuePhase, Severity
from agentcompass.core.model.plan import EvaluationMode, RetryPolicy
from agentcompass.core.retry import LONGEST_RETRY_AFTER, Scope, decide, delay, reason

NONE, REUSE, FRESH = EvaluationMode


def _issue(word, phase="run", code="model_timeout", message="connection reset by peer"):
    return Issue(Severity(word), IssuePhase(phase), code, message)


def _policy(max_retries=2, patterns=(), shortest=5.0, longest=60.0):
    return RetryPolicy(max_retries, tuple(patterns), shortest, longest)


@pytest.mark.seed("ER-04")
@pytest.mark.parametrize(
    ("issues", "patterns", "matched"),
    [
        ([], [".*"], None),
        ([_issue("fatal")], [], "<fatal>"),
        ([_issue("fatal")], ["no match"], "<fatal>"),
        ([_issue("error")], [], None),
        ([_issue("error")], ["connection.*reset"], "connection.*reset"),
        ([_issue("error")], ["(?i)CONNECTION"], "(?i)CONNECTION"),
        ([_issue("error")], ["^model_timeout$"], "^model_timeout$"),
        ([_issue("error")], ["peer$"], "peer$"),
        ([_issue("error")], ["peermodel", "peer.*model", "run", "error"], None),
        ([_issue("error")], ["nothing", "reset", "peer"], "reset"),
        ([_issue("error")], [""], ""),
        ([_issue("warning")], [".*"], None),
        ([_issue("warning"), _issue("error", message="other", code="other")], ["reset"], None),
        ([_issue("error", message="a"), _issue("error", message="b")], ["^b$"], "^b$"),
        ([_issue("error", message="a"), _issue("error", message="b")], ["a.*b"], None),
        ([_issue("error"), _issue("fatal")], ["reset"], "<fatal>"),
    ],
)
def test_what_is_retried(issues, patterns, matched):
    """FATAL always, an ERROR whose message or code matches by itself, a WARNING never."""
    assert matched == reason(issues, patterns)


@pytest.mark.seed("ER-04")
@pytest.mark.parametrize(
    ("budget", "used", "again"),
    [(0, 0, False), (1, 0, True), (1, 1, False), (2, 1, True), (2, 2, False), (2, 3, False)],
)
def test_the_budget_is_shared_and_ends(budget, used, again):
    """Whatever the reasons were, an attempt is executed again as often as the budget says."""
    decision = decide([_issue("fatal")], _policy(budget), used, NONE, False, "id")

    assert again == (decision is not None)
    assert decision is None or used + 1 == decision.number


@pytest.mark.seed("ER-04")
def test_nothing_wrong_is_kept():
    """Without issues, with warnings, or with an ERROR that nobody named, the result stays."""
    for issues in ([], [_issue("warning")], [_issue("error")]):
        assert decide(issues, _policy(), 0, NONE, True, "id") is None


GRADING = _issue("fatal", "evaluate", "judge_failed")
MATCHING = _issue("error", "evaluate", "evaluate_failed", "temporary")


@pytest.mark.seed("ER-05")
@pytest.mark.parametrize(
    ("issues", "mode", "inferred", "scope"),
    [
        ([GRADING], NONE, True, Scope.EVALUATE),
        ([GRADING], FRESH, True, Scope.EVALUATE),
        ([GRADING], REUSE, True, Scope.ATTEMPT),
        ([GRADING], NONE, False, Scope.ATTEMPT),
        ([MATCHING], FRESH, True, Scope.EVALUATE),
        ([MATCHING], REUSE, True, Scope.ATTEMPT),
        ([_issue("fatal", "setup")], FRESH, False, Scope.ATTEMPT),
        ([_issue("fatal", "run"), GRADING], FRESH, True, Scope.ATTEMPT),
        ([_issue("error", "run"), GRADING], FRESH, True, Scope.EVALUATE),
        ([_issue("error", "run", message="temporary"), GRADING], FRESH, True, Scope.ATTEMPT),
        ([_issue("warning", "cleanup"), GRADING], NONE, True, Scope.EVALUATE),
        ([_issue("error", "collect", message="temporary")], NONE, True, Scope.ATTEMPT),
    ],
)
def test_how_much_is_repeated(issues, mode, inferred, scope):
    """Only a failed grading is repeated alone, and only where it needs no sandbox of the run's."""
    assert scope is decide(issues, _policy(patterns=["temporary"]), 0, mode, inferred, "id").scope


def test_the_longest_wait_doubles_up_to_the_greatest():
    """Delay n is drawn from the upper half of min * 2^(n-1), which is at most max."""
    for number, bound in enumerate((5, 10, 20, 40, 60, 60, 60), 1):
        drawn = [delay(number, _policy(), f"run/task {n}/1") for n in range(300)]
        assert bound / 2 <= min(drawn) < bound * 0.55
        assert bound * 0.95 < max(drawn) <= bound


def test_no_number_of_retries_breaks_the_arithmetic():
    """The wait stays within its bounds for any number."""
    assert 30.0 <= delay(10**6, _policy(), "id") <= 60.0
    assert 0.5 <= delay(1, _policy(shortest=1.0, longest=1.0), "id") <= 1.0


def test_a_wait_can_be_told_again():
    """The same attempt of the same run waits the same time; another attempt, or another retry, another."""
    waits = [delay(n, _policy(shortest=5.0, longest=5.0), name) for name in ("a", "b") for n in (1, 2)]

    assert waits == [delay(n, _policy(shortest=5.0, longest=5.0), name) for name in ("a", "b") for n in (1, 2)]
    assert 4 == len(set(waits))
    assert delay(1, _policy(), "\ud800") >= 2.5


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        (0.0, 2.5, 5.0),
        (1.0, 2.5, 5.0),
        (30.0, 30.0, 30.0),
        (120.0, 120.0, 120.0),
        (1e9, LONGEST_RETRY_AFTER, LONGEST_RETRY_AFTER),
        (math.inf, LONGEST_RETRY_AFTER, LONGEST_RETRY_AFTER),
        (math.nan, 2.5, 5.0),
        (-5.0, 2.5, 5.0),
        (None, 2.5, 5.0),
    ],
)
def test_a_wish_to_be_left_alone_is_honoured(asked, least, most):
    """What the other side asks for is the least wait, within reason, also beyond our own longest."""
    assert least <= delay(1, _policy(), "id", asked) <= most
    assert least <= decide([_issue("fatal")], _policy(), 0, NONE, False, "id", asked).delay <= most
