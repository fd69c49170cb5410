"""Any value as strict JSON."""

from __future__ import annotations

import json
from enum import Enum, StrEnum
from fractions import Fraction

import pytest

from agentcompass.core.records.jsonable import DEEPEST, jsonable, without_empty


class _Word(StrEnum):
    A = "a"


class _Plain(Enum):
    A = 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (_Word.A, "a"),
        (_Plain.A, "_Plain.A"),
        (Fraction(1, 3), "1/3"),
        (1e308 * 10, "inf"),
        (2**4096 - 1, 2**4096 - 1),
        (2**4096, hex(2**4096)),
        ({None: 1, True: 2}, {"None": 1, "True": 2}),
        (frozenset({b"a"}), ["a"]),
    ],
)
def test_values_become_json(value, expected):
    """What JSON has a word for stays, in its plain type; anything else becomes text."""
    found = jsonable(value)

    assert expected == found
    assert found == json.loads(json.dumps(found, allow_nan=False))
    assert type(expected) is type(found)


def test_integers_that_nobody_could_read_back_are_hexadecimal():
    """Python prints no decimal integer of more than 4300 digits."""
    assert hex(-(10**6000)) == jsonable(-(10**6000))


def test_cycles_end_at_once():
    """A value that contains itself many times over is cut where it does."""
    value: dict[str, object] = {}
    value["all"] = [value] * 5

    assert {"all": ["..."] * 5} == jsonable(value)


def test_the_same_value_twice_is_no_cycle():
    """Only what contains itself is cut."""
    shared = [1]

    assert [[1], {"a": [1]}] == jsonable([shared, {"a": shared}])


def test_depth_is_bounded():
    """What is nested too deeply ends in dots."""
    value = "x"
    for _ in range(DEEPEST * 3):
        value = [value]
    found, depth = jsonable(value), 0
    while isinstance(found, list):
        found, depth = found[0], depth + 1

    assert ("...", DEEPEST + 1) == (found, depth)


@pytest.mark.seed("RR-09")
def test_nulls_and_empty_containers_are_dropped():
    """At any depth, nulls, empty mappings and lists and private keys go; empty texts, zeros and false stay."""
    value = {
        "b": {"null": None, "map": {}, "list": [], "text": "", "zero": 0, "no": False},
        "gone": {"inner": {"null": None}},
        "_private": 1,
        "a": [{"x": None, "_y": 1}, None, []],
    }

    assert {"a": [{}, None, []], "b": {"no": False, "text": "", "zero": 0}} == without_empty(value)
    assert ["a", "b"] == list(without_empty(value))
