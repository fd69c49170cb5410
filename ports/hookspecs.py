"""The hooks that a plugin may implement: one per port.

A plugin is a module (or object) that an installed distribution names under the entry-point group
`agentcompass.plugins`. Its hooks return `Component` values; nothing is imported until a component is used::

    from agentcompass import Component, hookimpl

    @hookimpl
    def register_harnesses():
        return [Component("my_agent", "Drives my agent.", "my_package.harness:MyAgent")]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

from agentcompass.core.model.component import Component

if TYPE_CHECKING:
    from agentcompass.core.model.event import Event
    from agentcompass.core.records.progress import Progress

PROJECT = "agentcompass"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def register_benchmarks() -> Iterable[Component]:
    """Name the benchmarks that this plugin brings; each factory makes a `ports.benchmark.Benchmark`."""
    return ()


@hookspec
def register_harnesses() -> Iterable[Component]:
    """Name the harnesses that this plugin brings; each factory makes a `ports.harness.Harness`."""
    return ()


@hookspec
def register_environments() -> Iterable[Component]:
    """Name the sandbox providers that this plugin brings; each makes a `ports.environment.EnvironmentProvider`."""
    return ()


@hookspec
def register_models() -> Iterable[Component]:
    """Name the model protocols that this plugin speaks; each factory makes a `ports.model.Model`."""
    return ()


@hookspec
def register_recipes() -> Iterable[Component]:
    """Name the recipes that this plugin brings; each factory makes a `ports.recipe.Recipe`."""
    return ()


@hookspec
def on_event(event: Event, progress: Progress) -> None:
    """See every event of every run, and the run's state after it; must be quick, and changes nothing."""


@hookspec
def register_stores() -> Iterable[Component]:
    """Name the stores that this plugin brings; each factory makes a `ports.store.RunStore`."""
    return ()
