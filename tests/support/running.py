"""Runs of the command line inside a test, and what they leave behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agentcompass.adapters.cli.main import main


class Ran(NamedTuple):
    """How a command ended, what it printed, and where its run is (None if it made none)."""

    status: int
    out: str
    err: str
    run_dir: Path | None

    def document(self, name: str) -> Any:
        """Return a JSON file of the run."""
        assert self.run_dir is not None
        return json.loads((self.run_dir / name).read_text("utf-8"))

    def events(self) -> list[dict[str, Any]]:
        """Return the stream of events."""
        assert self.run_dir is not None
        return [json.loads(line) for line in (self.run_dir / "progress.jsonl").read_text("utf-8").splitlines()]

    def details(self) -> dict[str, dict[str, Any]]:
        """Return the saved tasks by id."""
        assert self.run_dir is not None
        found = [json.loads(path.read_text("utf-8")) for path in (self.run_dir / "details").glob("*.json")]
        return {document["task_id"]: document for document in found}


Command = Callable[..., Ran]


def runner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs ``agentcompass run ...`` with results below *tmp_path*."""

    def run(*words: str, quiet: bool = True) -> Ran:
        results = tmp_path / "results"
        before = set(results.glob("**/run_info.json"))
        level = ("--log-level", "ERROR") if quiet else ()
        status = main(["run", *words, "--results-dir", str(results), *level])
        shown = capsys.readouterr()
        new = [path.parent for path in results.glob("**/run_info.json") if path not in before]
        return Ran(status, shown.out, shown.err, new[0] if new else None)

    return run
