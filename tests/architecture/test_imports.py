"""The dependency rule, read from the source: core < ports < plugins and adapters."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FACE = ROOT / "adapters" / "sdk"  # is the package ``agentcompass`` itself, so it reaches adapters from outside
PURE = frozenset(
    "__future__ abc bisect collections contextlib copy dataclasses datetime difflib enum fractions functools graphlib "
    "hashlib heapq ipaddress itertools json math operator re statistics string struct textwrap types typing "
    "unicodedata".split()
)
STDLIB = frozenset(sys.stdlib_module_names)
INWARDS = {  # ring: (the other rings it may import, what it may import from outside)
    "core": (frozenset(), PURE),
    "schemas": (frozenset(), PURE | {"importlib"}),
    "ports": ({"core"}, PURE | {"pluggy"}),
    "plugins": ({"core", "ports"}, STDLIB | {"yaml"}),
    "adapters": (
        {"core", "ports", "schemas"},
        STDLIB | {"docker", "jsonschema", "openai", "requests", "pluggy", "rich", "yaml"},
    ),
}


def imports(path):
    """Yield (line, dots, module) for every import in *path*, lazy and type-only ones included."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, 0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.level, node.module or ""


@pytest.mark.parametrize("ring", INWARDS)
def test_rings_import_only_inwards(ring):
    """Relative imports stay inside their ring; absolute ones cross rings, inwards only."""
    rings, outside = INWARDS[ring]
    wrong = []
    for path in sorted((ROOT / ring).rglob("*.py")):
        depth = len(path.relative_to(ROOT).parent.parts)
        for line, dots, module in imports(path):
            top, _, rest = module.partition(".")
            if dots:
                fine = dots <= depth
            elif top == "agentcompass":
                target = rest.partition(".")[0]
                fine = target in rings or (target == "adapters" and path.is_relative_to(FACE))
            else:
                fine = top in outside
            if not fine:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {'.' * dots}{module}")

    assert [] == wrong
