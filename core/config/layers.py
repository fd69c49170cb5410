"""Layers of configuration: mappings merge deeply, everything else replaces, None included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import UsageError

DEEPEST = 100  #: levels of a configuration document


def merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Return *lower* overlaid by *upper*; neither is changed."""
    merged = dict(lower)
    for key, value in upper.items():
        below = merged.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            merged[key] = merge(below, value)
        else:
            merged[key] = value
    return merged


def stack(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge *layers*, lowest first."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = merge(merged, layer)
    return merged


def refuse_depth(value: Any, path: str) -> None:
    """Refuse a document that is nested so deeply that only a mistake (or malice) can have made it.

    Raises:
        UsageError: it is nested more than `DEEPEST` levels.
    """
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, Mapping | list)
            for inner in (outer.values() if isinstance(outer, Mapping) else outer)
        ]
        if not level:
            return
    raise UsageError(path, f"is nested more than {DEEPEST} levels", "flatten it")


def mapping(value: Any, path: str) -> Mapping[str, Any]:
    """Return *value* if it is a mapping with text keys.

    Raises:
        UsageError: it is not; the error names *path*.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UsageError(path, f"{value!r} is not a mapping", "write key: value pairs")
    for key in value:
        if not isinstance(key, str):
            raise UsageError(path, f"the key {key!r} is not text", "quote it")
    return value
