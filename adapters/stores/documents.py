"""JSON objects read from files; what is none is refused with its place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentcompass.core.records.reading import RecordError


def read_document(path: Path | str) -> Mapping[str, Any]:
    """Return the JSON object in *path*.

    Raises:
        RecordError: it holds none.
    """
    with open(path, encoding="utf-8", errors="replace") as file:
        return object_in(file.read(), str(path))


def object_in(text: str, where: str) -> Mapping[str, Any]:
    """Return the JSON object that *text* is; *where* it stands is for the message.

    Raises:
        RecordError: it is none.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise RecordError(where, f"not JSON ({exc})") from None
    if not isinstance(document, dict):
        raise RecordError(where, "not a JSON object")
    return document
