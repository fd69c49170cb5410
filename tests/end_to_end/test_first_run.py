"""The first thing that a new user does."""

from __future__ import annotations

import json

from agentcompass.adapters.cli.main import main


def test_the_oracle_solves_humaneval(tmp_path, capsys):
    """A real benchmark through a real sandbox gives a score, a readable result and files."""
    status = main(["run", "humaneval", "oracle", "--limit", "3", "--results-dir", str(tmp_path), "--run-id", "first"])

    shown = capsys.readouterr().out
    metrics = json.loads((tmp_path / "humaneval_oracle" / "first" / "metrics.json").read_text())
    assert 0 == status
    assert "3 tasks = 3 evaluated + 0 unavailable + 0 invalidated" in shown
    assert 1.0 == metrics["series"][0]["value"]
