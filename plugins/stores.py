"""Stores in the box, by name."""

from __future__ import annotations

from agentcompass.core.model.component import Component
from agentcompass.ports.hookspecs import hookimpl


@hookimpl
def register_stores() -> tuple[Component, ...]:
    """Name the stores."""
    return (
        Component(
            "json_files",
            "A folder of JSON files per run.",
            "agentcompass.adapters.stores.json_files:JsonRunStore",
        ),
    )
