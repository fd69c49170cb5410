"""Harnesses in the box, by name; each is imported when it is used."""

from __future__ import annotations

from agentcompass.core.model.component import Component, parameters
from agentcompass.ports.hookspecs import hookimpl


@hookimpl
def register_harnesses() -> tuple[Component, ...]:
    """Name the harnesses."""
    return (
        Component("nop", "Does nothing: what a benchmark gives for no work.", f"{__name__}.nop:Nop"),
        Component("oracle", "Applies each task's reference solution: what is possible.", f"{__name__}.oracle:Oracle"),
        Component(
            "openai_chat",
            "One model call per task; a fenced block of the answer becomes the file that the task asks for.",
            f"{__name__}.openai_chat:OpenAIChat",
            parameters(
                system_prompt={
                    "type": ["string", "null"],
                    "default": None,
                    "description": "A system message put before the task's messages.",
                },
            ),
        ),
    )
