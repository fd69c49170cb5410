"""Layers of configuration lie over each other."""

from __future__ import annotations

import pytest

from agentcompass.core.config.layers import mapping, merge, stack
from agentcompass.core.errors import UsageError

pytestmark = pytest.mark.seed("CL-06")


@pytest.mark.parametrize(
    ("lower", "upper", "merged"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"x": 1, "y": {"z": 1}}}, {"a": {"y": {"w": 2}}}, {"a": {"x": 1, "y": {"z": 1, "w": 2}}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": [1]}, {"a": []}, {"a": []}),
        ({"a": {"x": 1}}, {"a": None}, {"a": None}),
        ({"a": None}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": {"x": 1}}, {"a": "text"}, {"a": "text"}),
        ({"a": "text"}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": {"x": 1}}, {"a": {}}, {"a": {"x": 1}}),
        ({"a": {"x": 1}}, {"a": {"x": None}}, {"a": {"x": None}}),
        ({"a": 1}, {"a": 0}, {"a": 0}),
    ],
)
def test_mappings_merge_and_all_else_replaces(lower, upper, merged):
    """Mappings merge at any depth; lists, texts, numbers and null take the place of what is below."""
    assert merged == merge(lower, upper)


def test_merging_changes_no_layer():
    """A layer can be used again."""
    lower, upper = {"a": {"x": [1]}}, {"a": {"y": 2}}
    merge(lower, upper)["a"]["z"] = 3

    assert ({"a": {"x": [1]}}, {"a": {"y": 2}}) == (lower, upper)


def test_the_last_layer_is_on_top():
    """Layers count from the lowest."""
    assert {"a": 3, "b": {"x": 1, "y": 2}} == stack([{"a": 1, "b": {"x": 1}}, {"a": 2, "b": {"y": 2}}, {"a": 3}])
    assert {} == stack([])


@pytest.mark.parametrize("value", [[], "x", 1, True])
def test_what_is_no_mapping_is_refused(value):
    """The error names the place and the value."""
    with pytest.raises(UsageError, match=r"^execution: .* is not a mapping"):
        mapping(value, "execution")


def test_keys_are_text():
    """YAML makes numbers, dates and flags of unquoted keys; they are refused, since nobody would find them."""
    with pytest.raises(UsageError, match=r"^a: the key 1 is not text; quote it"):
        mapping({1: 2}, "a")


def test_an_empty_section_is_an_empty_mapping():
    """A heading with nothing below it says nothing."""
    assert {} == mapping(None, "execution")
