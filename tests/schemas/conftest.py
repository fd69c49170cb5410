"""Real runs of every kind, made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.example_runs import KINDS, scripted_run

from agentcompass.adapters.cli.main import main


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folders of one run of each kind, by name."""
    results = tmp_path_factory.mktemp("humaneval")
    words = ["--limit", "2", "--results-dir", str(results), "--run-id", "r", "--progress", "none"]
    with pytest.MonkeyPatch.context() as patch:  # made before the fixtures of a single test stand
        patch.setenv("XDG_CONFIG_HOME", str(results))
        patch.chdir(results)
        assert 0 == main(["run", "humaneval", "oracle", *words])
        found = {name: scripted_run(tmp_path_factory.mktemp(name), name) for name in KINDS}
    return found | {"humaneval": results / "humaneval_oracle" / "r"}
