"""Cost of an attempt that does nothing, in one request and in a launch of several.

python perf/launch.py [--requests 10] [--tasks 1000]
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import noop

from agentcompass.adapters.config.launches import prepare_launch
from agentcompass.adapters.engine.host import BUILTIN, Host
from agentcompass.adapters.engine.launch import Launch, named


def measure(requests: int, tasks: int, results: Path) -> tuple[float, float]:
    """Return CPU and wall milliseconds per attempt."""
    noop.COUNT = tasks
    host = Host(BUILTIN, external=False)
    host._add("noop", noop.Plugin())
    entry = {"benchmark": {"id": "noop"}, "harness": {"id": "nop"}, "environment": {"id": "host_process"}}
    document = {"task_concurrency": 16, "requests": [{"name": f"r{n}", **entry} for n in range(requests)]}
    runtime = {"results_dir": str(results), "provider_limits": {"host_process": 0}, "log_level": "ERROR"}
    prepared = prepare_launch(document, runtime=runtime, env={}, host=host)
    launch = Launch([named(name, request) for name, request in prepared.requests], prepared.slots)
    cpu, wall = time.process_time(), time.monotonic()
    result = asyncio.run(launch.execute())
    assert result.status == "completed", result
    count = requests * tasks
    return (time.process_time() - cpu) / count * 1000, (time.monotonic() - wall) / count * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10)
    parser.add_argument("--tasks", type=int, default=1000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as many:
        for requests, folder in ((1, one), (args.requests, many)):
            cpu, wall = measure(requests, args.tasks * args.requests // requests, Path(folder))
            print(f"{requests:>3} requests: {cpu:.3f} ms CPU, {wall:.3f} ms wall for each attempt")


if __name__ == "__main__":
    main()
