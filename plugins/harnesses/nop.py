"""The harness that does nothing."""

from __future__ import annotations

from typing import Any

from agentcompass.core.model.result import HarnessResult
from agentcompass.core.model.task import PreparedTask
from agentcompass.ports.harness import AttemptContext, Harness


class Nop(Harness):
    """Leaves the sandbox as the benchmark made it."""

    version = "1"
    needs_model = False
    isolated = True

    async def open_session(self, context: AttemptContext, prepared: PreparedTask) -> Any:
        """Need nothing."""
        return None

    async def execute_task(self, session: Any, prepared: PreparedTask, *, timeout: float | None) -> None:
        """Do nothing."""

    async def collect_result(self, session: Any, prepared: PreparedTask) -> HarnessResult:
        """Bring nothing back."""
        return HarnessResult()

    async def close_session(self, session: Any) -> None:
        """Release nothing."""
