"""Fills ``${NAME}`` and ``${NAME:-default}`` in a task's variables from those of this machine."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from agentcompass.core.errors import UsageError

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?\}", re.DOTALL)


def references(variables: Mapping[str, str]) -> Mapping[str, str]:
    """Return, by key, the variable of this machine that its value refers to."""
    found = {key: _REFERENCE.fullmatch(value) for key, value in variables.items()}
    return {key: match[1] for key, match in found.items() if match}


def resolved(
    variables: Mapping[str, str], host: Mapping[str, str], where: str, allowed: Collection[str] | None = None
) -> dict[str, str]:
    """Return *variables* with what *host* has for them; only a whole value is a reference.

    *where* (file and table) goes into errors. *allowed* are the names that tasks may see, None for all.

    Raises:
        UsageError: *host* has no such variable and there is no default, or the task may not see it.
    """
    return {key: _value(f"{where}.{key}", value, host, allowed) for key, value in variables.items()}


def _value(where: str, value: str, host: Mapping[str, str], allowed: Collection[str] | None) -> str:
    found = _REFERENCE.fullmatch(value)
    if not found:
        return value
    name, default = found[1], found[2]
    if allowed is not None and name not in allowed:
        if default is not None:
            return default
        raise UsageError(where, f"the task may not see {name}", "add it to the benchmark's host_env")
    text = host.get(name) or default
    if text is None:
        raise UsageError(where, f"{name} is not set on this machine", f"export {name}, or give a default in the task")
    return text
