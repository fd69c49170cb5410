"""Contracts: which metrics a benchmark may declare, and which values pass."""

from __future__ import annotations

import math

import pytest

from agentcompass.core.errors import UsageError
from agentcompass.core.metrics.contract import (
    MetricContract,
    MetricInvalidError,
    MetricKind,
    MetricSpec,
    binary_contract,
    check,
    require_strategy,
    scalar_contract,
)
from agentcompass.core.model.request import AttemptPlan, Strategy

STEPS = MetricSpec("steps", MetricKind.SCALAR, minimum=0, maximum=50)
BINARY = binary_contract(STEPS, MetricSpec("safe", MetricKind.BINARY_SUCCESS))


def test_primary_metrics_have_the_reserved_names():
    """A binary contract is headed by correct, a scalar one by score."""
    assert ("correct", MetricKind.BINARY_SUCCESS) == (BINARY.primary.id, BINARY.primary.kind)
    assert ("score", MetricKind.SCALAR) == (scalar_contract().primary.id, scalar_contract().primary.kind)


@pytest.mark.parametrize(
    ("kind", "name"), [(MetricKind.BINARY_SUCCESS, "score"), (MetricKind.SCALAR, "correct"), (MetricKind.SCALAR, "acc")]
)
def test_a_misnamed_primary_metric_is_refused(kind, name):
    """The primary metric is named for its kind, and the error says which name is right."""
    with pytest.raises(UsageError, match="correct|score") as caught:
        MetricContract(MetricSpec(name, kind))

    assert "metrics.primary" == caught.value.field


@pytest.mark.parametrize("reserved", ["correct", "score"])
def test_reserved_names_are_refused_for_auxiliary_metrics(reserved):
    """Both primary names are reserved, whatever the primary kind."""
    with pytest.raises(UsageError, match="reserved"):
        binary_contract(MetricSpec(reserved, MetricKind.SCALAR))


def test_two_metrics_of_one_name_are_refused():
    """Ids are unique within a contract."""
    with pytest.raises(UsageError, match="twice"):
        binary_contract(STEPS, STEPS)


@pytest.mark.parametrize("name", ["", " steps", "steps ", "1st", "_x", "a b", "a@3", "größe", "a\n", "-a"])
def test_a_name_that_is_no_id_is_refused(name):
    """An id is an ASCII letter, then letters, digits, underscore, point or hyphen."""
    with pytest.raises(UsageError, match="not a metric id"):
        MetricSpec(name, MetricKind.SCALAR)


def test_names_may_use_all_allowed_characters():
    """Underscore, point, hyphen, digits and capitals are allowed after the first letter."""
    assert "F1_score.macro-2" == MetricSpec("F1_score.macro-2", MetricKind.SCALAR).id


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "scalar"},
        {"precision": -1},
        {"minimum": math.nan},
        {"maximum": math.inf},
        {"minimum": 1.0, "maximum": 1.0},
        {"kind": MetricKind.BINARY_SUCCESS, "maximum": 1.0},
    ],
)
def test_a_metric_that_makes_no_sense_is_refused(wrong):
    """Kind, precision and range are checked when the metric is declared."""
    with pytest.raises(UsageError, match=r"metrics\.m"):
        MetricSpec(**{"id": "m", "kind": MetricKind.SCALAR, **wrong})


def test_right_values_pass_unchanged_in_declared_order():
    """Booleans stay booleans, whole numbers stay whole, and the order is the contract's."""
    checked = check(BINARY, {"safe": False, "steps": 7, "correct": True})

    assert [("correct", True), ("steps", 7), ("safe", False)] == list(checked.items())
    assert [bool, int, bool] == [type(value) for value in checked.values()]


def test_metrics_may_be_absent():
    """A grader may leave any metric out; nothing is invented for it."""
    assert {} == check(BINARY, {})


@pytest.mark.parametrize("value", [0, 1, 1.0, "true", None, [True]])
def test_a_binary_metric_takes_only_booleans(value):
    """Numbers, text and null are no verdicts, even if they look like one."""
    with pytest.raises(MetricInvalidError, match="'correct'.*give true or false") as caught:
        check(BINARY, {"correct": value})

    assert value == caught.value.value


@pytest.mark.parametrize("value", [True, "3", None, math.nan, math.inf, -math.inf, 10**400, 1j])
def test_a_scalar_metric_takes_only_finite_numbers(value):
    """Booleans, text, NaN, infinity and numbers beyond any float are refused."""
    with pytest.raises(MetricInvalidError, match="'score'.*give a finite real number"):
        check(scalar_contract(), {"score": value})


@pytest.mark.parametrize(("value", "mend"), [(-0.001, "0 or more"), (50.001, "50 or less"), (51, "50 or less")])
def test_a_value_out_of_range_is_refused(value, mend):
    """The declared range is closed, and the error says where it ends."""
    with pytest.raises(MetricInvalidError, match=f"'steps': {value} is out of range; give {mend}"):
        check(BINARY, {"steps": value})


@pytest.mark.parametrize("value", [0, 50, 0.0, 50.0])
def test_the_ends_of_a_range_belong_to_it(value):
    """Minimum and maximum are themselves allowed."""
    assert {"steps": value} == check(BINARY, {"steps": value})


@pytest.mark.parametrize("name", ["corect", " correct", "correct ", "Correct", 3])
def test_an_undeclared_metric_is_refused(name):
    """A misspelt id is an error that names it, not a silently lost value."""
    with pytest.raises(MetricInvalidError, match=f"metric {name!r}: True belongs to no declared metric"):
        check(BINARY, {name: True})


def test_a_verdict_that_is_no_mapping_is_refused():
    """A list of values, from a careless grader, is classified like any other wrong value."""
    with pytest.raises(MetricInvalidError, match="not a mapping"):
        check(BINARY, [True])


def test_a_wrong_value_is_shown_in_short():
    """The message repeats at most the beginning of a value, and survives one that cannot be shown."""

    class Unshowable:
        def __repr__(self):
            raise RuntimeError

    with pytest.raises(MetricInvalidError) as caught:
        check(BINARY, {"correct": "x" * 10_000})
    assert 200 > len(str(caught.value))
    with pytest.raises(MetricInvalidError, match="a Unshowable is not a boolean"):
        check(BINARY, {"correct": Unshowable()})


def test_subclasses_of_numbers_become_plain():
    """A float subclass, as NumPy has, is stored as a float."""

    class Special(float):
        pass

    assert float is type(check(scalar_contract(), {"score": Special(0.5)})["score"])


@pytest.mark.parametrize("k", [1, 3])
def test_a_scalar_primary_metric_refuses_pass(k):
    """Whether any attempt succeeds has no meaning for a number."""
    with pytest.raises(UsageError, match="'score' is a scalar; give avg") as caught:
        require_strategy(scalar_contract(), AttemptPlan(k, Strategy.PASS))

    assert "execution.attempts.strategy" == caught.value.field


def test_other_strategies_are_accepted():
    """Binary contracts take both strategies, scalar ones take avg."""
    for strategy in Strategy:
        require_strategy(BINARY, AttemptPlan(3, strategy))
    require_strategy(scalar_contract(), AttemptPlan(3, Strategy.AVG))
