"""CPU of the command line's quick commands over a bare interpreter, and what they import.

python perf/startup.py
"""

from __future__ import annotations

import resource
import subprocess
import sys

ROUNDS = 15


def cpu_ms(*arguments: str) -> float:
    """Return the least CPU of several runs of a Python command, in milliseconds."""
    least = float("inf")
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        least = min(least, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return least * 1e3


def main() -> None:
    bare = cpu_ms("-c", "pass")
    print(f"{'bare interpreter':<24}{bare:8.1f} ms")
    for name, limit in (("--help", 60), ("list", 120)):
        spent = cpu_ms("-m", "agentcompass", name) - bare
        print(f"{'agentcompass ' + name:<24}{spent:8.1f} ms over it (limit {limit})")


if __name__ == "__main__":
    main()
