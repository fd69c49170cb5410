"""Continuing a run of very many finished attempts: how long until the first new one starts.

python perf/resume.py [--count 10000]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("NOOP_TASKS", "0")

import noop

from agentcompass.adapters.config.requests import prepare
from agentcompass.adapters.engine.evaluate import evaluate
from agentcompass.adapters.engine.host import BUILTIN, Host
from agentcompass.core.config.request import Choices


def run(results: Path, count: int, *, reuse: bool) -> tuple[float, Path]:
    """Run *count* tasks that do nothing; return the seconds and the folder."""
    noop.COUNT = count
    host = Host(BUILTIN, external=False)
    host._add("noop", noop.Plugin())
    choices = Choices(
        "noop",
        "nop",
        execution={"task_concurrency": 16},
        runtime={"results_dir": str(results), "provider_limits": {"host_process": 0}, "reuse": reuse},
    )
    began = time.monotonic()
    result = asyncio.run(evaluate(prepare(choices, host=host, env={})))
    return time.monotonic() - began, Path(result.paths["run_dir"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory() as folder:
        whole, _ = run(Path(folder), count, reuse=False)
        print(f"{count} attempts run in {whole:.1f} s")
        for link in (1, 2):
            _, run_dir = run(Path(folder), count + link, reuse=True)
            events = [json.loads(line) for line in (run_dir / "progress.jsonl").open(encoding="utf-8")]
            began = events[0]["timestamp"]
            first = next(event["timestamp"] for event in events if event["event"] == "attempt_started")
            per = (first - began) / (count + link - 1) * 1000
            print(f"continued ({link}): first new attempt after {first - began:.2f} s, {per:.3f} ms each")


if __name__ == "__main__":
    main()
