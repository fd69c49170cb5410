"""Copies of many small files into a sandbox and out of it, and a command that prints very much.

python perf/sandbox_copies.py [--env host_process] [--image IMAGE] [--files 5000] [--output-mb 300]
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from agentcompass.adapters.engine.host import Host
from agentcompass.adapters.engine.parameters import validated
from agentcompass.core.model.component import Kind
from agentcompass.core.model.environment import EnvironmentSpec


def resident() -> float:
    """Return the memory of this process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


async def measure(env: str, image: str | None, files: int, output_mb: int, folder: Path) -> None:
    host = Host(external=False)
    component = host.component(Kind.ENVIRONMENT, env)
    provider = host.build(Kind.ENVIRONMENT, env, **validated(component, {}, env))
    (folder / "up").mkdir()
    for number in range(files):
        (folder / "up" / str(number)).write_bytes(b"x" * 100)
    sandbox = await provider.open(EnvironmentSpec(image=image))
    try:
        await sandbox.exec("true")
        for name, copy in (
            ("up", lambda: sandbox.upload(str(folder / "up"), "many")),
            ("down", lambda: sandbox.download("many", str(folder / "down"))),
        ):
            began = time.monotonic()
            await copy()
            print(f"{files} files {name:<5} {time.monotonic() - began:6.2f} s")
        assert files == len(list((folder / "down").iterdir()))
        before = resident()
        began = time.monotonic()
        ran = await sandbox.exec(
            ["head", "-c", str(output_mb * 1_000_000), "/dev/zero"], stdout_file=str(folder / "out")
        )
        assert ran.stdout_size == output_mb * 1_000_000
        grown = resident() - before
        print(f"{output_mb} MB of output {time.monotonic() - began:6.2f} s, {grown:.1f} MB more memory")
    finally:
        await sandbox.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="host_process")
    parser.add_argument("--image")
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--output-mb", type=int, default=300)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(args.env, args.image, args.files, args.output_mb, Path(folder)))


if __name__ == "__main__":
    main()
