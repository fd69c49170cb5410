"""What came of continuing an earlier run: which of its attempts stand, and why others are executed again."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an attempt of the source is executed again."""

    task_id: str
    attempt: int
    reason: str


@dataclass(slots=True)
class ReuseReport:
    """How many *tasks* need nothing more, how many *attempts* stand, and what is executed again.

    *kept_failures* stand although they call for a retry, because there is no budget for one. *resumed* are graded
    again without their agent.
    """

    tasks: int = 0
    attempts: int = 0
    kept_failures: int = 0
    resumed: int = 0
    refused: list[Refusal] = field(default_factory=list)
