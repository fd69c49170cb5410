"""Loading of very many task folders.

python perf/load_tasks.py [--count 3500]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from container_task import make_tasks

from agentcompass.adapters.engine.host import Host
from agentcompass.adapters.engine.parameters import validated
from agentcompass.core.model.component import Kind


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=3500)
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory() as folder:
        make_tasks(Path(folder), count, "debian:12-slim")
        host = Host(external=False)
        params = validated(host.component(Kind.BENCHMARK, "harbor"), {"tasks_dir": folder}, "harbor")
        benchmark = host.build(Kind.BENCHMARK, "harbor", **params)
        began = time.monotonic()
        loaded = benchmark.load_tasks()
        took = time.monotonic() - began
    assert count == len(loaded.tasks), loaded.rejected[:3]
    print(f"{count} tasks in {took:.2f} s, {took / count * 1000:.2f} ms each")


if __name__ == "__main__":
    main()
