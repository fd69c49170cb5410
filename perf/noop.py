"""Cost of an attempt that does nothing: CPU, memory and bytes, beside a floor that only writes the same files.

python perf/noop.py [--tasks 100 1000 10000] [--concurrency 1 16 256]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from agentcompass.adapters.config.requests import prepare
from agentcompass.adapters.engine.evaluate import evaluate
from agentcompass.adapters.engine.host import BUILTIN, Host
from agentcompass.adapters.stores import json_files
from agentcompass.core.config.request import Choices
from agentcompass.core.metrics.contract import binary_contract
from agentcompass.core.model.component import Component
from agentcompass.core.model.plan import EvaluationMode
from agentcompass.core.model.result import Verdict
from agentcompass.core.model.task import PreparedTask, Task
from agentcompass.ports.benchmark import Benchmark, LoadedTasks
from agentcompass.ports.hookspecs import hookimpl

COUNT = int(os.environ.get("NOOP_TASKS", "100"))


class Noop(Benchmark):
    metrics = binary_contract()
    evaluation_mode = EvaluationMode.REUSE
    isolated = True

    def load_tasks(self):
        return LoadedTasks([Task(f"task-{number}", category=f"c{number % 5}") for number in range(COUNT)])

    async def prepare_task(self, task, environment):
        return PreparedTask("nothing to do")

    async def evaluate(self, task, prepared, result, environment):
        return Verdict({"correct": True})


class Plugin:
    @hookimpl
    def register_benchmarks(self):
        return [Component("noop", "Does nothing.", f"{__name__}:Noop")]


def cpu():
    return time.process_time()


async def _evaluate(results: Path, concurrency: int):
    host = Host(BUILTIN, external=False)
    host._add("noop", Plugin())
    choices = Choices(
        "noop",
        "nop",
        execution={"task_concurrency": concurrency},
        runtime={"results_dir": str(results), "provider_limits": {"host_process": 0}},
    )
    prepared = prepare(choices, host=host, env={})
    start, wall = cpu(), time.monotonic()
    result = await evaluate(prepared)
    assert result.report.headline.score.value == 1.0, result
    return cpu() - start, time.monotonic() - wall, Path(result.paths["run_dir"])


def _floor(run_dir: Path, target: Path) -> float:
    """Write the bytes of *run_dir* again, synced and renamed alike, in a plain loop."""
    documents = [path for path in run_dir.rglob("*.json") if path.is_file()]
    contents = [(target / path.relative_to(run_dir), path.read_bytes()) for path in documents]
    streams = {
        name: (run_dir / name).read_bytes().splitlines(keepends=True) for name in ("progress.jsonl", "plans.jsonl")
    }
    start = cpu()
    for path, data in contents:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(descriptor, data)
        os.fsync(descriptor)
        os.close(descriptor)
        os.replace(temporary, path)
    for name, lines in streams.items():
        descriptor = os.open(target / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for line in lines:
            os.write(descriptor, line)
        os.close(descriptor)
    return cpu() - start


def measure(concurrency: int) -> dict[str, float]:
    folder = Path(tempfile.mkdtemp(prefix="noop-"))
    written = {"bytes": 0}
    original_replace = json_files.replace_file

    def counting(path, data, sync=True):
        written["bytes"] += len(data)
        original_replace(path, data, sync)

    json_files.replace_file = counting
    try:
        spent, wall, run_dir = asyncio.run(_evaluate(folder / "results", concurrency))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        kept = sum(path.stat().st_size for path in run_dir.rglob("*") if path.is_file())
        streams = sum((run_dir / name).stat().st_size for name in ("progress.jsonl", "plans.jsonl"))
        floor = statistics.median(_floor(run_dir, folder / f"floor{number}") for number in range(3))
    finally:
        json_files.replace_file = original_replace
        shutil.rmtree(folder)
    return {
        "tasks": COUNT,
        "concurrency": concurrency,
        "cpu_ms": spent / COUNT * 1e3,
        "floor_ms": floor / COUNT * 1e3,
        "wall_s": wall,
        "memory_mb": memory,
        "written_over_kept": (written["bytes"] + streams) / kept,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, nargs="+", default=[100, 1000, 10000])
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 16, 256])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one is not None:
        print(json.dumps(measure(args.one)))
        return
    print("  tasks  conc.   CPU ms   floor  ratio  wall s     MB  written/kept")
    for tasks in args.tasks:
        for concurrency in args.concurrency:
            done = subprocess.run(
                [sys.executable, __file__, "--one", str(concurrency)],
                env={**os.environ, "NOOP_TASKS": str(tasks)},
                capture_output=True,
                text=True,
                check=True,
            )
            row = json.loads(done.stdout)
            print(
                f"{row['tasks']:>7} {row['concurrency']:>6} {row['cpu_ms']:>8.3f} {row['floor_ms']:>7.3f} "
                f"{row['cpu_ms'] / row['floor_ms']:>6.2f} {row['wall_s']:>7.1f} {row['memory_mb']:>6.0f} "
                f"{row['written_over_kept']:>13.2f}"
            )


if __name__ == "__main__":
    main()
