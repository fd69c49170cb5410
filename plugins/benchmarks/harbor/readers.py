"""Readers of single values: each returns the value, or raises ValueError with what is wrong with it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from agentcompass.core.model.environment import VARIABLE_NAME
from agentcompass.core.network_rules import parse_target

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG])(?:i?B)?", re.IGNORECASE)
_MIB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0}
_STEP = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?")
_TASK = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{p}{n}" for p in ("com", "lpt") for n in range(10))})


def any_value(value: Any) -> Any:
    """Take anything."""
    return value


def text(value: Any) -> str:
    """Take text."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")  # noqa: TRY004  (readers have one way to refuse)
    if "\0" in value:
        raise ValueError("has a null byte")
    return value


def words(value: Any) -> str:
    """Take text that says something."""
    if not text(value).strip():
        raise ValueError("is empty")
    return str(value)


def flag(value: Any) -> bool:
    """Take true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")  # noqa: TRY004
    return value


def number(value: Any) -> float:
    """Take a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise ValueError(f"{value!r} is no finite number")
    return float(value)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


def positive(value: Any) -> float:
    """Take a finite number above 0."""
    if number(value) <= 0:
        raise ValueError(f"{value!r} is not above 0")
    return float(value)


def from_zero(value: Any) -> float:
    """Take a finite number from 0 up."""
    if number(value) < 0:
        raise ValueError(f"{value!r} is below 0")
    return float(value)


def count(value: Any) -> int:
    """Take a whole number from 0 up; 2.0 is one."""
    if from_zero(value) != int(value):
        raise ValueError(f"{value!r} is no whole number")
    return int(value)


def amount(value: Any) -> int:
    """Take a whole number from 1 up."""
    if count(value) < 1:
        raise ValueError(f"{value!r} is not above 0")
    return int(value)


def size_mb(value: Any) -> int:
    """Take the old spelling of a size, ``2G``, and return MiB."""
    found = _SIZE.fullmatch(text(value).strip())
    if not found:
        raise ValueError(f"{value!r} is no size such as '2G' or '512M'")
    return amount(math.ceil(float(found[1]) * _MIB[found[2].upper()]))


def user(value: Any) -> str:
    """Take the name or the number of a user."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return str(value)
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*", value):
        raise ValueError(f"{value!r} is neither a user's name nor a number")
    return value


def absolute(value: Any) -> str:
    """Take an absolute path in the sandbox."""
    if not text(value).startswith("/") or ".." in value.split("/"):
        raise ValueError(f"{value!r} is no absolute path without '..'")
    return str(value)


def list_of(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Take a list of what *read* takes."""

    def read_list(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(f"{value!r} is no list")  # noqa: TRY004
        return tuple(read(entry) for entry in value)

    return read_list


texts = list_of(text)


def text_map(value: Any) -> Mapping[str, str]:
    """Take texts by name."""
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is no table")  # noqa: TRY004
    for key, entry in value.items():
        if not isinstance(entry, str):
            raise ValueError(f"{key} is {entry!r}, which is no text; quote it")  # noqa: TRY004
    return {key: text(entry) for key, entry in value.items()}


def variables(value: Any) -> Mapping[str, str]:
    """Take environment variables."""
    found = text_map(value)
    for name in found:
        if not VARIABLE_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a variable")
    return found


def hosts(value: Any) -> tuple[str, ...]:
    """Take what an allowlist names: host names, suffixes, addresses, ranges."""
    found = tuple(entry.strip().lower() for entry in texts(value))
    for entry in found:
        try:
            parse_target(entry)
        except ValueError as exc:
            raise ValueError(f"{entry!r} is {exc}") from None
    return found


def one_of(*choices: str) -> Callable[[Any], str]:
    """Take one of *choices*."""

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"{value!r} is none of {', '.join(choices)}")
        return str(value)

    return read


def system(value: Any) -> str:
    """Take the only operating system that there is here."""
    known = text(value).lower()
    if known == "windows":
        raise ValueError("windows tasks are not supported")
    return one_of("linux")(known)


def task_name(value: Any) -> str:
    """Take ``organisation/name``."""
    if not _TASK.fullmatch(text(value)) or ".." in value:
        raise ValueError(f"{value!r} is not of the form org/name (letters, digits, . _ -)")
    return str(value)


def step_name(value: Any) -> str:
    """Take a name that every file system takes for a folder."""
    name = text(value)
    if not _STEP.fullmatch(name) or ".." in name or name.split(".")[0].lower() in _RESERVED or len(name) > 128:
        raise ValueError(f"{value!r} is no portable name of a folder (letters, digits, . _ -)")
    return name


def schema_version(value: Any) -> str:
    """Take a version of the format that is understood."""
    version = str(value) if isinstance(value, float) else text(value)
    if not re.fullmatch(r"1\.\d+", version):
        raise ValueError(f"{value!r} is not understood; known: 1.0 to 1.4")
    return version


def min_reward(value: Any) -> float | Mapping[str, float]:
    """Take the least reward that leads to the next step, or one for each key."""
    return {key: number(entry) for key, entry in value.items()} if isinstance(value, dict) else number(value)
