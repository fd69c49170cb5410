"""References to environment variables are whole fields."""

from __future__ import annotations

import pytest

from agentcompass.core.config.references import reference, resolve
from agentcompass.core.errors import UsageError

pytestmark = pytest.mark.seed("LA-02")
ENV = {"KEY": "value", "EMPTY": "", "A_1": "one", "DOLLAR": "${KEY}"}


def test_whole_fields_are_replaced_at_any_depth():
    """Values in mappings and lists are resolved, keys are not, and other values stay as they are."""
    value = {"a": "${KEY}", "b": [{"c": "${A_1}"}, 1, None], "t": ("${KEY}",), "${KEY}": "plain", "d": "$KEY"}
    resolved, used = resolve(value, ENV)

    assert {
        "a": "value", "b": [{"c": "one"}, 1, None], "t": ["value"], "${KEY}": "plain", "d": "$KEY",
    } == resolved  # fmt: skip
    assert {"KEY": "value", "A_1": "one"} == used


def test_a_value_is_not_resolved_again():
    """What a variable holds is taken as it is, whatever it looks like."""
    assert ("${KEY}", {"DOLLAR": "${KEY}"}) == resolve("${DOLLAR}", ENV)


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        ("${MISSING}", "model.api_key", "the environment variable MISSING is not set; export MISSING=..."),
        ("${EMPTY}", "model.api_key", "the environment variable EMPTY is empty; export EMPTY=..."),
        ("a${KEY}", "x", "has a reference inside text; a reference must be the whole field"),
        ("${KEY}${KEY}", "x", "has a reference inside text"),
        ("${KEY:-default}", "x", "has a reference inside text"),
        ("${}", "x", "has a reference inside text"),
        ("${1A}", "x", "has a reference inside text"),
        ("https://${HOST}/v1", "x", "has a reference inside text"),
    ],
)
def test_a_reference_that_cannot_be_resolved_is_refused(value, path, problem):
    """The error names the field and the variable."""
    with pytest.raises(UsageError) as refused:
        resolve(value, ENV, path)

    assert str(refused.value).startswith(f"{path}: ")
    assert problem in str(refused.value)


@pytest.mark.parametrize(("value", "path"), [({"a": [0, {"b": "${NO}"}]}, "s.a[1].b"), ({"a": "${NO}"}, "s.a")])
def test_the_way_to_the_field_is_told(value, path):
    """Mappings and lists are steps of the path."""
    with pytest.raises(UsageError) as refused:
        resolve(value, ENV, "s")

    assert path == refused.value.field


@pytest.mark.parametrize(
    ("value", "name"),
    [("${A}", "A"), (" ${A}\n", "A"), ("${a_B1}", "a_B1"), ("$A", None), ("${A", None), (1, None), (None, None)],
)
def test_what_a_reference_is(value, name):
    """Only the braced form is one; white space around it does not count."""
    assert name == reference(value)
