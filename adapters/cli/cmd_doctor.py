"""``agentcompass doctor``: what is installed, what answers, what is missing and how to get it."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from agentcompass.core.errors import AgentCompassError
from agentcompass.core.model.component import Kind
from agentcompass.ports.environment import EnvironmentProvider

from ..config.files import project_file, user_file
from ..engine.host import Host, Registered
from ..engine.parameters import validated


def run(args: argparse.Namespace) -> int:
    """Print one line per finding; return 1 only if a plugin is broken."""
    host = Host()
    print(f"agentcompass {version('agentcompass')}, Python {platform.python_version()}, {platform.platform()}")
    for name, path in (("user", user_file(os.environ)), ("project", project_file(Path.cwd()))):
        found = path is not None and path.is_file()
        print(f"{'ok' if found else '--':<8} {name} configuration: {path if found else 'none'}")
    for kind in (Kind.BENCHMARK, Kind.HARNESS, Kind.MODEL, Kind.STORE):
        for registered in host.registered(kind):
            _print(registered, missing(registered))
    for registered in host.registered(Kind.ENVIRONMENT):
        _print(registered, missing(registered) or asyncio.run(_answer(host, registered)))
    for plugin, problem in host.broken.items():
        print(f"BROKEN   plugin {plugin}: {' '.join(problem.split())}")
    for name, plugins in host.conflicts().items():
        print(f"BROKEN   {name} is registered by {' and '.join(plugins)}")
    sys.stdout.flush()
    return 1 if host.broken or host.conflicts() else 0


def missing(registered: Registered) -> tuple[bool, str] | None:
    """Tell what the component lacks and how to get it, or None when it has all that it needs."""
    component = registered.component
    absent = [module for module in component.modules if find_spec(module) is None]
    if not absent:
        return None
    extra = component.extra or absent[0]
    wanted = extra if "[" in extra else f"agentcompass[{extra}]"
    return False, f"needs {', '.join(absent)}: pip install '{wanted}'"


async def _answer(host: Host, registered: Registered) -> tuple[bool, str]:
    component = registered.component
    try:
        provider: EnvironmentProvider = host.build(
            Kind.ENVIRONMENT, component.id, **validated(component, {}, component.id)
        )
        return True, await provider.check()
    except AgentCompassError as exc:
        return False, str(exc)
    except (Exception, SystemExit) as exc:  # a third party's provider may raise anything
        return False, f"{type(exc).__name__}: {exc}"


def _print(registered: Registered, finding: tuple[bool, str] | None) -> None:
    fine, text = finding or (True, "ready")
    print(f"{'ok' if fine else 'missing':<8} {registered.kind.value} {registered.component.id}: {text}")
