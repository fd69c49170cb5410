"""Events: what happened, in the words of the progress stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened; *timestamp* is wall time in seconds since the epoch."""

    event: str
    timestamp: float
    task_id: str | None = None
    category: str | None = None
    attempt: int | None = None
    phase: str | None = None
    status: str | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)
