"""The plugin host: finds plugins, checks what they register, builds components when they are used.

A broken plugin is remembered and shown, and costs nobody else anything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from typing import Any

import pluggy

from agentcompass.core.errors import MissingExtraError, UnknownComponentError, UsageError
from agentcompass.core.model.component import Component, Kind
from agentcompass.ports import hookspecs

BUILTIN = (
    "agentcompass.plugins.benchmarks",
    "agentcompass.plugins.environments",
    "agentcompass.plugins.harnesses",
    "agentcompass.plugins.models",
    "agentcompass.plugins.stores",
)
ENTRY_POINTS = "agentcompass.plugins"
OFF_SWITCH = "AGENTCOMPASS_DISABLE_PLUGINS"


@dataclass(frozen=True, slots=True)
class Registered:
    """A component, and the plugin that brought it."""

    kind: Kind
    component: Component
    plugin: str


class Host:
    """All registered components, by kind and id."""

    def __init__(self, builtin: Iterable[str] = BUILTIN, *, external: bool = True) -> None:
        self.broken: dict[str, str] = {}
        self.observers: dict[str, Callable[..., Any]] = {}
        self._known: dict[tuple[Kind, str], list[Registered]] = {}
        for name in builtin:
            self._add(name, import_module(name))
        if external:
            self._load_external()

    def _load_external(self) -> None:
        from importlib.metadata import entry_points

        disabled = {name.strip() for name in os.environ.get(OFF_SWITCH, "").split(",")}
        for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
            if entry.name in disabled:
                continue
            try:
                self._add(entry.name, entry.load())
            except (Exception, SystemExit) as exc:  # a plugin may raise anything
                self.broken[entry.name] = f"{type(exc).__name__}: {exc}"

    def _add(self, name: str, plugin: object) -> None:
        """Register *plugin* alone, so that what it returns is known to be its own, whole or not at all."""
        manager = pluggy.PluginManager(hookspecs.PROJECT)
        manager.add_hookspecs(hookspecs)
        manager.register(plugin, name)
        manager.check_pending()
        for registered in list(_components(manager, name)):
            self._known.setdefault((registered.kind, registered.component.id), []).append(registered)
        if manager.hook.on_event.get_hookimpls():
            self.observers[name] = manager.hook.on_event

    def add_folder(self, folder: str) -> None:
        """Register the modules in *folder*: each is a plugin, known by its path.

        Raises:
            UsageError: there is no such folder, or a module in it cannot be used.
        """
        if not os.path.isdir(folder):
            raise UsageError("--recipe-dir", f"{folder!r} is no folder", "name one with modules")
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".py"):
                continue
            path = os.path.join(folder, name)
            spec = spec_from_file_location(f"agentcompass_recipes_{len(self._known)}_{name[:-3]}", path)
            assert spec is not None
            assert spec.loader is not None
            module = module_from_spec(spec)
            sys.modules[spec.name] = module  # where the factories of its components are looked for
            try:
                spec.loader.exec_module(module)
                self._add(path, module)
            except (Exception, SystemExit) as exc:
                raise UsageError("--recipe-dir", f"{path}: {type(exc).__name__}: {exc}", "mend it") from exc

    def registered(self, kind: Kind) -> list[Registered]:
        """Return what is registered of *kind*, by id."""
        found = [claims[0] for (k, _), claims in self._known.items() if k is kind]
        return sorted(found, key=lambda registered: registered.component.id)

    def ids(self, kind: Kind) -> tuple[str, ...]:
        """Return the ids of *kind*, sorted."""
        return tuple(registered.component.id for registered in self.registered(kind))

    def conflicts(self) -> dict[str, list[str]]:
        """Return the ids that more than one plugin claims, with the plugins."""
        return {
            f"{kind.value} {name}": [claim.plugin for claim in claims]
            for (kind, name), claims in self._known.items()
            if len(claims) > 1
        }

    def component(self, kind: Kind, name: str) -> Component:
        """Return the component called *name*.

        Raises:
            UnknownComponentError: nobody registers it.
            UsageError: more than one plugin does.
        """
        claims = self._known.get((kind, name))
        if not claims:
            raise UnknownComponentError(kind.value, name, self.ids(kind))
        if len(claims) > 1:
            plugins = " and ".join(claim.plugin for claim in claims)
            raise UsageError(kind.value, f"{name!r} is registered by {plugins}", f"switch one off with {OFF_SWITCH}")
        return claims[0].component

    def build(self, kind: Kind, name: str, /, **params: Any) -> Any:
        """Import the component's factory, now, and call it.

        Raises:
            MissingExtraError: the component needs a library that is not installed.
        """
        component = self.component(kind, name)
        for module in component.modules:
            if find_spec(module) is None:
                raise MissingExtraError(f"{kind.value} {name}", component.extra or module, module)
        module_name, _, attribute = component.factory.partition(":")
        return getattr(import_module(module_name), attribute)(**params)


def _components(manager: pluggy.PluginManager, plugin: str) -> Iterator[Registered]:
    for kind in Kind:
        for batch in getattr(manager.hook, f"register_{kind.plural}")():
            for component in batch:
                if not isinstance(component, Component):
                    raise TypeError(f"register_{kind.plural} returned {component!r}, which is no Component")
                if not isinstance(component.id, str) or not component.id.strip():
                    raise ValueError(f"register_{kind.plural} returned a component with the id {component.id!r}")
                yield Registered(kind, component, plugin)
