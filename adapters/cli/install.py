"""Installs the extras that components in the box are missing, where the user asked for that."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib import invalidate_caches
from importlib.metadata import requires
from typing import Any

from agentcompass.core.errors import UsageError
from agentcompass.core.model.component import Kind

from ..engine.host import Host, Registered
from .cmd_doctor import missing

_SECTIONS = {"benchmark": Kind.BENCHMARK, "harness": Kind.HARNESS, "environment": Kind.ENVIRONMENT}


def components_of(document: Mapping[str, Any]) -> list[tuple[Kind, str]]:
    """Return the components that an orchestration names, as far as it can be read."""
    found = []
    entries = [document.get("defaults"), *(document.get("requests") or [])]
    for entry in entries:
        for section, kind in _SECTIONS.items():
            part = entry.get(section) if isinstance(entry, Mapping) else None
            if isinstance(part, Mapping) and isinstance(part.get("id"), str):
                found.append((kind, part["id"]))
    return found


def install_missing(components: Iterable[tuple[Kind, str]]) -> None:
    """Install what the extras of *components* require; only those that this distribution brings are trusted.

    Raises:
        UsageError: pip failed.
    """
    host = Host()
    wanted: dict[str, None] = {}
    for kind, name in components:
        for registered in host.registered(kind):
            if registered.component.id == name and _is_ours(registered) and missing(registered):
                wanted.update(dict.fromkeys(_requirements(registered.component.extra or "")))
    if not wanted:
        return
    print(f"installing {', '.join(wanted)}", file=sys.stderr)
    done = subprocess.run([sys.executable, "-m", "pip", "install", *wanted], check=False, stdout=sys.stderr)
    if done.returncode:
        raise UsageError("--auto-install-dependencies", "pip could not install them", "install them by hand")
    invalidate_caches()


def _is_ours(registered: Registered) -> bool:
    return registered.plugin.startswith("agentcompass.")


def _requirements(extra: str) -> list[str]:
    """Return what the extra called *extra* of this distribution requires."""
    marker = f'extra == "{extra}"'
    found = []
    for line in requires("agentcompass") or []:
        requirement, _, condition = line.partition(";")
        if condition.strip().replace("'", '"') == marker:
            found.append(requirement.strip())
    return found
