"""What came of continuing an earlier run: which of its attempts stand, and why others are executed again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an attempt of the source is executed again."""

    task_id: str
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting that was another one in the source; None for none."""

    field: str
    before: Any
    now: Any


@dataclass(slots=True)
class ReuseReport:
    """How many *tasks* need nothing more, how many *attempts* stand, and what is executed again.

    *kept_failures* stand although they call for a retry, because there is no budget for one. *resumed* are graded
    again without their agent. Results are used whatever the *differences* of settings, and though *changed_tasks* ask
    for something else now.
    """

    tasks: int = 0
    attempts: int = 0
    kept_failures: int = 0
    resumed: int = 0
    refused: list[Refusal] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    changed_tasks: list[str] = field(default_factory=list)
