"""A component's parameters: checked against its JSON Schema, defaults filled in, mistakes told precisely."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentcompass.core.errors import UsageError, unknown_key
from agentcompass.core.model.component import Component


def validated(component: Component, given: Mapping[str, Any], path: str, beside: Iterable[str] = ()) -> dict[str, Any]:
    """Return the parameters for *component*'s factory; *beside* them, the keys that every such component has.

    Raises:
        UsageError: an unknown key, a missing one, or a value that the schema refuses; *path* leads to it.
    """
    properties = component.properties
    if "params" in given and "params" not in properties:
        raise UsageError(f"{path}.params", "parameters need no wrapper", "write them beside the id")
    if component.params.get("additionalProperties") is not True:
        for key in given:
            if key not in properties:
                raise unknown_key(path, key, (*properties, *beside))
    values = {name: schema["default"] for name, schema in properties.items() if "default" in schema} | dict(given)
    for name in component.params.get("required", ()):
        if name not in values:
            raise UsageError(f"{path}.{name}", "is missing", properties.get(name, {}).get("description", "give it"))
    if given:
        _check(component.params, values, path)
    return values


def _check(schema: Mapping[str, Any], values: Mapping[str, Any], path: str) -> None:
    from jsonschema import Draft202012Validator

    errors = Draft202012Validator(dict(schema)).iter_errors(dict(values))
    for error in sorted(errors, key=lambda error: [str(step) for step in error.absolute_path]):
        where = ".".join([path, *(str(step) for step in error.absolute_path)])
        raise UsageError(where, _problem(error.instance, error.message), _mend(error.schema))


def _problem(value: Any, message: str) -> str:
    return message if repr(value) in message else f"{value!r}: {message}"


def _mend(schema: Any) -> str:
    description = schema.get("description", "") if isinstance(schema, Mapping) else ""
    return str(description).rstrip(".")
