"""Model protocols in the box, by name; each is imported when a run calls it."""

from __future__ import annotations

from agentcompass.core.model.component import Component, parameters
from agentcompass.ports.hookspecs import hookimpl


@hookimpl
def register_models() -> tuple[Component, ...]:
    """Name the protocols; a factory gets the model's id, endpoint and key beside these parameters."""
    return (
        Component(
            "openai-chat",
            "Chat completions, as OpenAI and most inference servers offer them.",
            "agentcompass.adapters.models.openai_chat:OpenAIChatModel",
            parameters(
                timeout={
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "default": 600,
                    "description": "Seconds that one request may take.",
                },
                max_retries={
                    "type": "integer",
                    "minimum": 0,
                    "default": 2,
                    "description": "How often the client library itself repeats a failed request.",
                },
            ),
            extra="models",
            modules=("openai",),
        ),
    )
