"""Runs of many small tasks in processes of their own, to be interrupted, and what they leave on the disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .crashing import ENTRY_POINTS
from .toys import install


class Beginner:
    """Starts runs in one folder; each notes what it executes in one log, which outlives them."""

    def __init__(
        self, place: Path, patch: pytest.MonkeyPatch, *, count: int, concurrency: int, pause: float, mode: str = "none"
    ) -> None:
        install(place / "site", patch, "crashing", ENTRY_POINTS)
        self.folder = place / "work"
        self.folder.mkdir()
        path = os.pathsep.join([str(place / "site"), *filter(None, sys.path)])
        self.environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(self.folder)}
        self.words = ["run", "crashing", "crashing"]
        self.words += ["--benchmark-params", json.dumps({"count": count, "mode": mode})]
        self.words += ["--harness-params", json.dumps({"log": str(self.folder / "log"), "pause": pause})]
        self.words += ["--task-concurrency", str(concurrency), "--progress", "none"]

    def __call__(self, *options: str) -> subprocess.Popen[str]:
        """Start a run."""
        return self.start(*self.words, *options)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start any command."""
        return subprocess.Popen(
            [sys.executable, "-m", "agentcompass", *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def executions(self) -> Counter[str]:
        """How often each attempt has been executed."""
        log = self.folder / "log"
        return Counter(log.read_text().splitlines()) if log.exists() else Counter()

    def ended(self) -> dict[str, dict[str, Any]]:
        """The attempts that are final: theirs is a result that was not cut short."""
        found = self.folder.glob("results/*/*/attempts/*/*/result.json")
        results = {f"{path.parents[1].name} {path.parent.name}": json.loads(path.read_text()) for path in found}
        return {name: result for name, result in results.items() if result["status"] != "cancelled"}

    def newest(self) -> Path:
        """The folder of the run that was recorded last."""
        return max(self.folder.glob("results/*/*/run_info.json"), key=os.path.getmtime).parent
