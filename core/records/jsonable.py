"""Any value as strict JSON: what JSON has no word for becomes text, so that one odd answer costs no record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

DEEPEST = 100
_LONGEST_INTEGER = 4096  #: bits; Python refuses to print, or to read, decimal integers of more than 4300 digits


def jsonable(value: Any, above: tuple[int, ...] = ()) -> Any:
    """Return *value* with everything that strict JSON cannot hold as text: NaN, bytes, sets, odd keys, cycles.

    *above* names the containers that *value* is in.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value) if value.bit_length() <= _LONGEST_INTEGER else hex(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if len(above) > DEEPEST or id(value) in above:
        return "..."
    above = (*above, id(value))
    if isinstance(value, Mapping):
        return {_text(key): jsonable(entry, above) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(entry, above) for entry in value]
    return _text(value)


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # a component's object may fail in any way, and still costs no record
        return f"<{type(value).__name__}>"


def without_empty(value: Any) -> Any:
    """Return *value* without nulls, empty mappings and empty lists, at any depth; keys sorted, ``_private`` dropped."""
    if isinstance(value, Mapping):
        kept = {str(key): without_empty(entry) for key, entry in value.items() if not str(key).startswith("_")}
        return {key: kept[key] for key in sorted(kept) if kept[key] is not None and kept[key] not in ({}, [])}
    if isinstance(value, list | tuple):
        return [without_empty(entry) for entry in value]
    return value
