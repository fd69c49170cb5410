"""Harnesses: the agents, or what drives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agentcompass.core.model.result import HarnessResult
from agentcompass.core.model.task import PreparedTask

from .environment import Environment
from .model import Model


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """What a harness works with: an open sandbox, the model (None if it needs none), the model's parameters."""

    task_id: str
    attempt: int
    environment: Environment
    model: Model | None = None
    model_id: str | None = None
    model_params: Mapping[str, Any] = field(default_factory=dict)


class Harness(Protocol):
    """One agent. Subclass it for the defaults; one object serves all attempts, so state belongs into the session.

    `isolated` promises that attempts do not meet outside their sandboxes; without it (and the benchmark's) attempts
    of one task run one after the other.
    """

    version: str = "0"
    needs_model: bool = True
    needs_solution: bool = False  #: only such a harness gets to see reference solutions
    protocols: tuple[str, ...] = ()  #: names of models it can talk to, most wanted first
    default_run_timeout_seconds: float | None = None
    isolated: bool = False
    calls_model_from_sandbox: bool = False  #: a restricted network is opened to the model's endpoint

    async def open_session(self, context: AttemptContext, prepared: PreparedTask) -> Any:
        """Install or connect the agent, and return what the other methods get as *session*."""
        ...

    async def execute_task(self, session: Any, prepared: PreparedTask, *, timeout: float | None) -> None:
        """Run the agent on the task; *timeout* is its own budget in seconds, the outer limit comes later.

        Raises:
            PhaseFailed: with the harness's own classification; any other exception is FATAL `harness_failed`,
                a `TimeoutError` ERROR `harness_timeout`.
        """
        ...

    async def collect_result(self, session: Any, prepared: PreparedTask) -> HarnessResult:
        """Read what the agent left; called after success, error and timeout alike, never calls the model."""
        ...

    async def close_session(self, session: Any) -> None:
        """Release what `open_session` took; the sandbox is closed by others."""
        ...
