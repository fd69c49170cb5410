"""The harness ``example_agent``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentcompass.core.model.result import HarnessResult
from agentcompass.core.model.task import PreparedTask
from agentcompass.ports.harness import AttemptContext, Harness


@dataclass(slots=True)
class _Session:
    """One attempt; the agent itself serves all of them, so it keeps nothing."""

    context: AttemptContext
    answer: int | None = None


class Agent(Harness):
    """Adds up the numbers that it finds in the task."""

    version = "1"
    needs_model = False
    isolated = True  # attempts do not meet outside their sandboxes

    def __init__(self, carries: bool = True) -> None:
        self._carries = carries

    async def open_session(self, context: AttemptContext, prepared: PreparedTask) -> _Session:
        """Begin; a real harness installs its agent in `context.environment` here."""
        return _Session(context)

    async def execute_task(self, session: _Session, prepared: PreparedTask, *, timeout: float | None) -> None:
        """Work; a real harness starts its agent, and stops it by itself after *timeout* seconds."""
        total = sum(int(number) for number in re.findall(r"\d+", str(prepared.prompt)))
        session.answer = total if self._carries else total % 4

    async def collect_result(self, session: _Session, prepared: PreparedTask) -> HarnessResult:
        """Bring back what there is, also after an error or a timeout."""
        return HarnessResult(final_answer=session.answer)

    async def close_session(self, session: _Session) -> None:
        """Release what `open_session` took: nothing."""
