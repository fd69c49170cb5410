"""What a plugin registers: a name for something, where to find it, and which parameters it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """The ports that plugins can fill."""

    BENCHMARK = "benchmark"
    HARNESS = "harness"
    ENVIRONMENT = "environment"
    MODEL = "model"
    STORE = "store"
    RECIPE = "recipe"

    @property
    def plural(self) -> str:
        """The kind in a hook's name."""
        return f"{self.value}es" if self.value.endswith("s") else f"{self.value}s"


@dataclass(frozen=True, slots=True)
class Component:
    """A component by name.

    *factory* (``module:attribute``) is imported only when the component is used, and called with the validated
    parameters as keywords. *params* is a JSON Schema of type object: it validates, fills defaults and documents.
    *extra* is what to install for it, an extra of this distribution (``models``) or a whole requirement
    (``my-plugin[x]``), and *modules* are those whose absence means that it is not installed.
    """

    id: str
    summary: str
    factory: str
    params: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    extra: str | None = None
    modules: tuple[str, ...] = ()

    @property
    def properties(self) -> Mapping[str, Mapping[str, Any]]:
        """The schema of each parameter, by name."""
        found: Mapping[str, Mapping[str, Any]] = self.params.get("properties", {})
        return found


def parameters(required: tuple[str, ...] = (), **properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a component's parameters: an object with these *properties* and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }
