"""Sandbox providers in the box, by name; each is imported when a run opens it."""

from __future__ import annotations

from agentcompass.core.model.component import Component, parameters
from agentcompass.ports.hookspecs import hookimpl

_HOME = "agentcompass.adapters.sandboxes"
_LIMIT = {"type": ["integer", "null"], "minimum": 1, "default": None}


@hookimpl
def register_environments() -> tuple[Component, ...]:
    """Name the providers."""
    return (
        Component(
            "host_process",
            "Processes on this machine, each attempt in a private folder; no isolation of files or network.",
            f"{_HOME}.local_process:HostProcessProvider",
            parameters(
                root={
                    "type": ["string", "null"],
                    "default": None,
                    "description": "Folder for the private folders; null for the system's temporary one.",
                },
                env={
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
                    "default": {},
                    "description": "Environment variables for every command.",
                },
                inherit={
                    "type": "array",
                    "items": {"type": "string"},
                    "default": [],
                    "description": "Names of variables of this machine that commands may see.",
                },
                memory_mb={**_LIMIT, "description": "Address space of one process, in MiB; null for no limit."},
                file_mb={**_LIMIT, "description": "Size of one file, in MiB; null for no limit."},
                open_files={
                    **_LIMIT,
                    "minimum": 8,
                    "description": "Open files of one process; null for the machine's limit.",
                },
            ),
        ),
    )
