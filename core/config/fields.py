"""Known fields: each has a name, a default, a meaning and a parser that refuses what it cannot take.

A table of fields is the one place where a section's defaults are written; validation, documentation and the values
themselves are made from it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError, unknown_key
from .layers import mapping

Parser = Callable[[Any, str], Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a section: *kind* names its type for people, *parse* checks and converts a value."""

    name: str
    kind: str
    default: Any
    meaning: str
    parse: Parser


Section = tuple[Field, ...]


def parse_section(section: Section, given: Any, path: str) -> dict[str, Any]:
    """Return a value for every field of *section*, from *given* or by default.

    Raises:
        UsageError: an unknown key (with the nearest known one) or a value that its field cannot take.
    """
    known = {field.name: field for field in section}
    values = mapping(given, path)
    for key in values:
        if key not in known:
            raise unknown_key(path, key, known)
    return {
        name: field.parse(values[name], f"{path}.{name}") if name in values else field.default
        for name, field in known.items()
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _finite(value: Any) -> bool:
    try:
        return _is_number(value) and math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


def positive_seconds(value: Any, path: str) -> float:
    """Take a finite positive number of seconds."""
    if not _finite(value) or value <= 0:
        raise UsageError(path, f"{value!r} is not a finite positive number", "give seconds above 0")
    return float(value)


def positive_factor(value: Any, path: str) -> float:
    """Take a finite positive factor."""
    if not _finite(value) or value <= 0:
        raise UsageError(path, f"{value!r} is not a finite positive number", "give a factor above 0")
    return float(value)


def non_negative(value: Any, path: str) -> float:
    """Take a finite number from 0 up."""
    if not _finite(value) or value < 0:
        raise UsageError(path, f"{value!r} is not a finite number from 0 up", "0 switches the limit off")
    return float(value)


def nullable(parse: Parser) -> Parser:
    """Take None as well as what *parse* takes."""
    return lambda value, path: None if value is None else parse(value, path)


def count(minimum: int) -> Parser:
    """Take a whole number from *minimum* up."""

    def parse(value: Any, path: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
            raise UsageError(path, f"{value!r} is not a whole number from {minimum} up", f"give {minimum} or more")
        return value

    return parse


def flag(value: Any, path: str) -> bool:
    """Take true or false, and nothing that looks like it."""
    if not isinstance(value, bool):
        raise UsageError(path, f"{value!r} is neither true nor false", "give true or false")
    return value


def text(value: Any, path: str) -> str:
    """Take text."""
    if not isinstance(value, str):
        raise UsageError(path, f"{value!r} is not text", "quote it")
    return value


def choice(*words: str) -> Parser:
    """Take one of *words*, in any case."""

    def parse(value: Any, path: str) -> str:
        for word in words:
            if isinstance(value, str) and value.lower() == word.lower():
                return word
        raise UsageError(path, f"{value!r} is not a choice", f"choose from {', '.join(words)}")

    return parse


def names(value: Any, path: str) -> tuple[str, ...]:
    """Take a list of names."""
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise UsageError(path, f"{value!r} is not a list of names", "give a list")
    return tuple(value)


def patterns(value: Any, path: str) -> tuple[str, ...] | None:
    """Take a list of regular expressions, or None."""
    if value is None:
        return None
    if not isinstance(value, list):
        raise UsageError(path, f"{value!r} is not a list", "give a list of regular expressions")
    for index, pattern in enumerate(value):
        where = f"{path}[{index}]"
        if not isinstance(pattern, str):
            raise UsageError(where, f"{pattern!r} is not text", "quote it")
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as exc:
            raise UsageError(where, f"{pattern!r} is not a regular expression", str(exc)) from None
    return tuple(value)


def table(item: Parser) -> Parser:
    """Take a mapping from names to what *item* takes."""

    def parse(value: Any, path: str) -> Mapping[str, Any]:
        return {key: item(entry, f"{path}.{key}") for key, entry in mapping(value, path).items()}

    return parse


def nested(section: Section, build: Callable[..., Any]) -> Parser:
    """Take a mapping with the fields of *section*, and build a value of it."""
    return lambda value, path: build(**parse_section(section, value, path))
