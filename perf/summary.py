"""Summarizing a run of very many attempts again: seconds and memory of the command.

python perf/summary.py [--tasks 100000] [--attempts 1]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from resume import run


def multiply(run_dir: Path, tasks: int, attempts: int) -> None:
    """Give the run in *run_dir*, which has one task, as many copies of it as are wanted."""
    (path,) = (run_dir / "details").glob("*.json")
    document = json.loads(path.read_text("utf-8"))
    document["attempts"] = {str(number): document["attempts"]["1"] for number in range(1, attempts + 1)}
    line = json.loads((run_dir / "tasks.jsonl").read_text("utf-8"))
    with open(run_dir / "tasks.jsonl", "w", encoding="utf-8") as planned:
        for number in range(tasks):
            name = f"copy-{number}"
            (run_dir / "details" / f"{name}.json").write_text(json.dumps(document | {"task_id": name}), "utf-8")
            planned.write(json.dumps(line | {"task_id": name}) + "\n")
    path.unlink()
    for name in ("run_info.json", "params.json"):
        text = json.loads((run_dir / name).read_text("utf-8"))
        (run_dir / name).write_text(json.dumps(_with_attempts(text, attempts)), "utf-8")


def _with_attempts(document: object, attempts: int) -> object:
    if isinstance(document, dict):
        return {
            key: {**value, "k": attempts} if key == "attempts" and "k" in value else _with_attempts(value, attempts)
            for key, value in document.items()
        }
    return document


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--attempts", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _, run_dir = run(Path(folder), 1, reuse=False)
        multiply(run_dir, options.tasks, options.attempts)
        began = time.monotonic()
        shown = subprocess.run(
            [sys.executable, "-m", "agentcompass", "summary", str(run_dir)], check=True, capture_output=True, text=True
        )
        seconds = time.monotonic() - began
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(next(line for line in shown.stdout.splitlines() if line.startswith("tasks")))
        print(f"{options.tasks} tasks x {options.attempts}: {seconds:.1f} s, at most {peak:.0f} MiB")


if __name__ == "__main__":
    main()
