"""``agentcompass list``: what is registered, by which plugin, and what is broken."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from agentcompass.core.model.component import Kind

from ..engine.host import Host

KIND_OF = {"env": Kind.ENVIRONMENT}


def run(args: argparse.Namespace) -> int:
    """Print the components, of one kind or of all."""
    host = Host()
    kinds = [KIND_OF.get(args.kind) or Kind(args.kind)] if args.kind else list(Kind)
    rows = [
        {
            "kind": kind.value,
            "id": registered.component.id,
            "summary": registered.component.summary,
            "extra": registered.component.extra,
            "plugin": registered.plugin,
        }
        for kind in kinds
        for registered in host.registered(kind)
    ]
    if args.json:
        document: dict[str, Any] = {
            "components": rows,
            "broken_plugins": host.broken,
            "conflicts": host.conflicts(),
        }
        print(json.dumps(document, indent=2))
        return 0
    for row in rows:
        source = "" if str(row["plugin"]).startswith("agentcompass.") else f"  [{row['plugin']}]"
        print(f"{row['kind']:<12} {row['id']:<20} {row['summary']}{source}")
    for name, problem in host.broken.items():
        print(f"broken plugin {name}: {' '.join(problem.split())}", file=sys.stderr)
    for name, plugins in host.conflicts().items():
        print(f"conflict: {name} is registered by {' and '.join(plugins)}; none of them can be used", file=sys.stderr)
    return 0
