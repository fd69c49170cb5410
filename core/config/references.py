"""References to environment variables: ``${NAME}`` as a whole field, never a part of one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..errors import UsageError

_WHOLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def reference(value: Any) -> str | None:
    """Return the variable that *value* refers to, or None."""
    found = _WHOLE.fullmatch(value.strip()) if isinstance(value, str) else None
    return found[1] if found else None


def resolve(value: Any, env: Mapping[str, str], path: str = "") -> tuple[Any, dict[str, str]]:
    """Return *value* with every reference replaced, and the values that came from variables, by name.

    Raises:
        UsageError: a reference is only a part of its field, or its variable is unset or empty; the error names the
            field and the variable.
    """
    used: dict[str, str] = {}
    return _resolve(value, env, path, used), used


def _resolve(value: Any, env: Mapping[str, str], path: str, used: dict[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {k: _resolve(v, env, f"{path}.{k}" if path else str(k), used) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_resolve(v, env, f"{path}[{i}]", used) for i, v in enumerate(value)]
    name = reference(value)
    if name is not None:
        if not env.get(name):
            state = "empty" if name in env else "not set"
            raise UsageError(path, f"the environment variable {name} is {state}", f"export {name}=...")
        used[name] = env[name]
        return env[name]
    if isinstance(value, str) and "${" in value:
        raise UsageError(path, f"{value!r} has a reference inside text", "a reference must be the whole field")
    return value
