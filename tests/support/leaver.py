"""A sandbox provider whose leftovers a test decides on; a plugin like any other."""

from __future__ import annotations

from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.component import Component, parameters
from agentcompass.core.model.environment import Capabilities, Leftover
from agentcompass.ports.environment import EnvironmentProvider
from agentcompass.ports.hookspecs import hookimpl

ENTRY_POINTS = "[agentcompass.plugins]\nleaver = support.leaver\n"
LEFT: dict[str, Leftover] = {}  #: what there is, by id
STUCK: set[str] = set()  #: ids that cannot be removed
SILENT: list[str] = []  #: why nothing answers


def leave(name, *, abandoned=True, kept=False, **labels):
    """Put a sandbox there that nobody has closed."""
    LEFT[name] = Leftover("leaver", name, f"box {name}", "m.1.2", abandoned, kept, labels)


class LeaverProvider(EnvironmentProvider):
    """Opens nothing."""

    capabilities = Capabilities()

    async def leftovers(self):
        if SILENT:
            raise UsageError("leaver", SILENT[0], "start it")
        return list(LEFT.values())

    async def release(self, recorded):
        if recorded["id"] in STUCK:
            raise SandboxError("it does not let go")
        LEFT.pop(recorded["id"], None)

    async def open(self, spec, record):
        record({"id": "new"})
        raise SandboxError("nothing can be opened")

    async def check(self):
        return "a leaver answers"


@hookimpl
def register_environments():
    return [Component("leaver", "Leaves things.", f"{__name__}:LeaverProvider", parameters())]
