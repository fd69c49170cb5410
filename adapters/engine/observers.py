"""Observers that plugins bring: each sees every event, and a failing one is warned about once and left out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from agentcompass.core.model.event import Event
from agentcompass.core.records.progress import Progress
from agentcompass.ports.reporter import Reporter

log = logging.getLogger("agentcompass.engine")


class PluginObservers(Reporter):
    """Passes events to the hook `on_event` of every plugin that has it."""

    def __init__(self, hooks: Mapping[str, Callable[..., Any]]) -> None:
        self._hooks = dict(hooks)

    def on_event(self, event: Event, progress: Progress) -> None:
        """Call each hook."""
        for name, hook in list(self._hooks.items()):
            try:
                hook(event=event, progress=progress)
            except Exception as exc:  # a plugin may raise anything
                log.warning("the plugin %s sees no more events: %s: %s", name, type(exc).__name__, exc)
                del self._hooks[name]
