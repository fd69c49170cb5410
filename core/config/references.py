"""References to environment variables: ``${NAME}`` as a whole field; inside text only where variables are set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..errors import UsageError

_INSIDE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
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


def expand(value: Any, env: Mapping[str, str], path: str) -> tuple[Any, dict[str, str]]:
    """Return the map *value* with every ``${NAME}`` and ``${NAME:-default}`` in its texts replaced, and what was used.

    Raises:
        UsageError: a variable is unset or empty and has no default, or a reference is malformed.
    """
    used: dict[str, str] = {}
    if not isinstance(value, Mapping):
        return resolve(value, env, path)
    return {name: _expand(text, env, f"{path}.{name}", used) for name, text in value.items()}, used


def _expand(text: Any, env: Mapping[str, str], path: str, used: dict[str, str]) -> Any:
    if not isinstance(text, str):
        return text

    def found(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if env.get(name):
            used[name] = env[name]
            return env[name]
        if default is None:
            raise _unset(name, env, path)
        return str(default)

    if "${" in _INSIDE.sub("", text):
        raise UsageError(path, f"{text!r} holds no reference that can be read", "write ${NAME} or ${NAME:-default}")
    return _INSIDE.sub(found, text)


def _unset(name: str, env: Mapping[str, str], path: str) -> UsageError:
    state = "empty" if name in env else "not set"
    return UsageError(path, f"the environment variable {name} is {state}", f"export {name}=...")


def _resolve(value: Any, env: Mapping[str, str], path: str, used: dict[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {k: _resolve(v, env, f"{path}.{k}" if path else str(k), used) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_resolve(v, env, f"{path}[{i}]", used) for i, v in enumerate(value)]
    name = reference(value)
    if name is not None:
        if not env.get(name):
            raise _unset(name, env, path)
        used[name] = env[name]
        return env[name]
    if isinstance(value, str) and "${" in value:
        raise UsageError(path, f"{value!r} has a reference inside text", "a reference must be the whole field")
    return value
