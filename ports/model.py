"""Models: one completion at a time, with classified errors and usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agentcompass.core.model.result import Usage
from agentcompass.core.model.task import Message


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer of a model; *text* is as it came, *usage* counts this call alone."""

    text: str
    reasoning: str | None = None
    finish_reason: str | None = None
    usage: Usage = Usage()
    model: str | None = None


class Model(Protocol):
    """One endpoint of one model."""

    async def complete(self, messages: Sequence[Message], params: Mapping[str, Any]) -> Completion:
        """Return the model's answer to *messages*.

        *params* are generation parameters, sent as they are.

        Raises:
            PhaseFailed: the call failed; the issue is classified (`model_failed`, `model_timeout`): FATAL for
                credentials, quota and server errors, else ERROR.
        """
        ...

    async def close(self) -> None:
        """Release connections; closing again does nothing."""
        ...
