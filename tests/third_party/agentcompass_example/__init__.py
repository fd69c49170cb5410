"""An example plugin: the benchmark ``example_sums`` and the agent ``example_agent``.

The entry point leads here, so this module only says what there is; the components are imported when a run uses them.
"""

from __future__ import annotations

from agentcompass import Component, hookimpl, parameters


@hookimpl
def register_benchmarks() -> list[Component]:
    """Name the benchmark."""
    return [
        Component(
            "example_sums",
            "Sums of two small numbers, graded by comparing the answer.",
            f"{__name__}.sums:Sums",
            parameters(
                largest={
                    "type": "integer",
                    "minimum": 1,
                    "default": 3,
                    "description": "The largest number that is added.",
                },
            ),
        ),
    ]


@hookimpl
def register_harnesses() -> list[Component]:
    """Name the agent."""
    return [
        Component(
            "example_agent",
            "Reads two numbers from the task and adds them; needs no model.",
            f"{__name__}.agent:Agent",
            parameters(
                carries={
                    "type": "boolean",
                    "default": True,
                    "description": "Whether it can carry; without, sums of 4 and more are wrong.",
                },
            ),
        ),
    ]
