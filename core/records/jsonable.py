"""Any value as strict JSON: what JSON has no word for becomes text, so that one odd answer costs no record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

DEEPEST = 100


def jsonable(value: Any, depth: int = 0) -> Any:
    """Return *value* with everything that strict JSON cannot hold as text: NaN, bytes, sets, odd keys, cycles."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if depth > DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        return {str(key): jsonable(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(entry, depth + 1) for entry in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def without_empty(value: Any) -> Any:
    """Return *value* without nulls, empty mappings and empty lists, at any depth; keys sorted, ``_private`` dropped."""
    if isinstance(value, Mapping):
        kept = {str(key): without_empty(entry) for key, entry in value.items() if not str(key).startswith("_")}
        return {key: kept[key] for key in sorted(kept) if kept[key] is not None and kept[key] not in ({}, [])}
    if isinstance(value, list | tuple):
        return [without_empty(entry) for entry in value]
    return value
