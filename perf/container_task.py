"""One trivial task in a container, end to end, beside the bare calls that it cannot do without; then twenty of them.

python perf/container_task.py --image IMAGE [--env docker] [--tasks 20] [--concurrency 4]

IMAGE needs sh, bash and tar, and is not pulled.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import statistics
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import docker

from agentcompass.adapters.config.requests import prepare
from agentcompass.adapters.engine.evaluate import evaluate
from agentcompass.core.config.request import Choices

TOML = """\
schema_version = "1.4"
[task]
name = "perf/task-{number}"
[agent]
timeout_sec = 60.0
[verifier]
timeout_sec = 60.0
[environment]
docker_image = "{image}"
"""


def make_tasks(folder: Path, count: int, image: str) -> None:
    """Write *count* tasks: a file is to be made, and is looked for."""
    for number in range(count):
        task = folder / f"task-{number}"
        for name in ("tests", "solution", "environment"):
            (task / name).mkdir(parents=True)
        (task / "task.toml").write_text(TOML.format(number=number, image=image))
        (task / "instruction.md").write_text("Make /tmp/done.\n")
        (task / "solution" / "solve.sh").write_text("#!/bin/bash\ntouch /tmp/done\n")
        (task / "tests" / "test.sh").write_text(
            "#!/bin/bash\ntest -e /tmp/done && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt\n"
        )


def bare(image: str) -> float:
    """Create, start, execute, copy in, copy out and remove, by the engine's API alone; return the seconds."""
    client = docker.APIClient(**docker.utils.kwargs_from_env())
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("probe"), io.BytesIO())
    began = time.monotonic()
    made = client.create_container(image, ["sh", "-c", "sleep 600"], host_config=client.create_host_config(init=True))
    client.start(made["Id"])
    for command in ("touch /tmp/done", "test -e /tmp/done"):
        client.put_archive(made["Id"], "/tmp", archive.getvalue())
        running = client.exec_create(made["Id"], ["sh", "-c", command])
        client.exec_start(running["Id"])
    b"".join(client.get_archive(made["Id"], "/tmp/done")[0])
    client.remove_container(made["Id"], force=True)
    return time.monotonic() - began


def ours(folder: Path, env: str, concurrency: int) -> float:
    """Run the oracle on all tasks of *folder*; return the seconds from the request to the result."""
    with tempfile.TemporaryDirectory() as results:
        choices = Choices(
            "harbor",
            "oracle",
            env,
            benchmark_params={"tasks_dir": str(folder)},
            execution={"task_concurrency": concurrency},
            runtime={"results_dir": results, "progress": "none", "log_level": "ERROR"},
        )
        began = time.monotonic()
        result = asyncio.run(evaluate(prepare(choices, env={})))
        took = time.monotonic() - began
    if result.score != 1:
        sys.exit(f"the run ended {result.status} with {result.score}: {result.error}")
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image", required=True)
    parser.add_argument("--env", default="docker")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as many:
        make_tasks(Path(one), 1, args.image)
        make_tasks(Path(many), args.tasks, args.image)
        floors, totals = [], []
        for _ in range(args.repeat):
            floors.append(bare(args.image))
            totals.append(ours(Path(one), args.env, 1))
        floor, total = statistics.median(floors), statistics.median(totals)
        print(f"bare calls            {floor:6.2f} s")
        print(f"one task              {total:6.2f} s, {total - floor:.2f} s more")
        print(f"{args.tasks} tasks, {args.concurrency} at a time {ours(Path(many), args.env, args.concurrency):6.2f} s")


if __name__ == "__main__":
    main()
