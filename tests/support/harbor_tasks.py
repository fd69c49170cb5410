"""Harbor tasks for tests: written from a table, in thousands, and run in a small sandbox of bubblewrap."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentcompass.core.errors import UsageError
from agentcompass.core.model.environment import ExecResult
from agentcompass.core.model.result import RunResult, Verdict
from agentcompass.core.model.task import PreparedTask
from agentcompass.plugins.benchmarks.harbor.benchmark import Harbor

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "tasks"
HAS_BWRAP = (
    shutil.which("bwrap") is not None
    and subprocess.run(["bwrap", "--ro-bind", "/", "/", "--unshare-pid", "true"], capture_output=True).returncode == 0
)

#: like most task.toml in the wild
TASK_TOML = """\
version = "1.0"

[metadata]
author_name = "Some One"
author_email = "some.one@tasks.example"
difficulty = "medium"
category = "software-engineering"
tags = ["python", "git"]
expert_time_estimate_min = 30.0
junior_time_estimate_min = 90.0

[verifier]
timeout_sec = 900.0

[agent]
timeout_sec = 900.0

[environment]
build_timeout_sec = 600.0
cpus = 1
memory_mb = 2048
storage_mb = 10240
gpus = 0
allow_internet = true
mcp_servers = []
"""
FILES: Mapping[str, str] = {
    "task.toml": 'schema_version = "1.4"\n',
    "instruction.md": "Do it.\n",
    "environment/Dockerfile": "FROM debian:12-slim\nWORKDIR /app\n",
    "tests/test.sh": "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n",
    "solution/solve.sh": "#!/bin/bash\ntouch /app/done\n",
}

#: over the files of a task: one of Terminal-Bench 1
OLD: Mapping[str, str | None] = {
    **dict.fromkeys(["task.toml", "instruction.md", "environment/Dockerfile", "tests/test.sh", "solution/solve.sh"]),
    "task.yaml": "instruction: Do it.\n",
    "Dockerfile": "FROM a:1\nWORKDIR /app\n",
    "tests/test_outputs.py": "import os\nassert os.path.exists('/app/done')\n",
    "run-tests.sh": (
        "#!/bin/bash\necho '=== short test summary info ==='\n"
        "if python3 $TEST_DIR/test_outputs.py; then echo PASSED t::x; else echo FAILED t::x; fi\n"
    ),
    "solution.sh": "touch done\n",
}


def write_task(folder: Path, files: Mapping[str, Any] | None = None, **more: str) -> Path:
    """Write a small task, with *files* over the usual ones (None for none); *more* are lines of ``task.toml``."""
    texts: dict[str, str | bytes | None] = {**FILES, **(files or {})}
    if "toml" in more:
        texts["task.toml"] = more["toml"]
    for name, text in texts.items():
        if text is None:
            continue
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def make_tasks(folder: Path, count: int) -> Path:
    """Write *count* tasks like those in the wild."""
    for number in range(count):
        files = {"task.toml": TASK_TOML, "instruction.md": "Do this.\n" * 20}
        write_task(folder / f"task-{number:05}", files)
    return folder


class Bubble:
    """A sandbox whose root is a folder of a test; /usr and /etc are the machine's. Without users, as root."""

    def __init__(self, root: Path, workdir: str = "/app", env: Mapping[str, str] | None = None) -> None:
        self.root, self.workdir, self.env = root, workdir, dict(env or {})
        self.did: list[str] = []
        for name in ("usr", "etc", "proc", "dev", "tmp", "root", workdir.lstrip("/")):
            (root / name).mkdir(parents=True, exist_ok=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            if os.path.islink(f"/{name}"):
                (root / name).symlink_to(f"usr/{name}")

    def _path(self, path: str) -> Path:
        return self.root / os.path.join(self.workdir, path).lstrip("/")

    def _command(self, command: str | Sequence[str], cwd: str) -> list[str]:
        words = ["sh", "-c", command] if isinstance(command, str) else list(command)
        binds = [word for name in ("/usr", "/etc") for word in ("--ro-bind", name, name)]
        options = ["--bind", str(self.root), "/", *binds, "--proc", "/proc", "--dev", "/dev"]
        return ["bwrap", *options, "--unshare-pid", "--unshare-net", "--die-with-parent", "--chdir", cwd, "--", *words]

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        user: str | None = None,
        **_: Any,
    ) -> ExecResult:
        if user is not None:
            raise UsageError("user", f"there is no {user!r} here")
        variables = {"PATH": "/usr/bin:/bin", "HOME": "/root", "LANG": "C.UTF-8", **self.env, **(env or {})}
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *self._command(command, os.path.join(self.workdir, cwd or "")),
            env=variables,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), timeout)
        except TimeoutError:
            process.kill()
            out, err = await process.communicate()
            return ExecResult(None, out, err, len(out), len(err), True, time.monotonic() - began)
        code = process.returncode
        if code == 1 and err.startswith(b"bwrap: execvp"):
            code = 127
        return ExecResult(code, out, err, len(out), len(err), False, time.monotonic() - began)

    async def read_file(self, path: str, *, limit: int = 16 * 1024 * 1024) -> bytes | None:
        place = self._path(path)
        if not place.is_file() or place.is_symlink():
            return None
        if place.stat().st_size > limit:
            raise ValueError(path)
        return place.read_bytes()

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        self._path(path).parent.mkdir(parents=True, exist_ok=True)
        self._path(path).write_bytes(data)

    async def upload(self, source: str, target: str) -> None:
        self.did.append(f"upload {target}")
        place = self._path(target)
        if os.path.isdir(source):
            shutil.copytree(source, place, symlinks=True, dirs_exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place)

    async def remove(self, path: str) -> None:
        place = self._path(path)
        if place.is_symlink() or place.is_file():
            place.unlink()
        elif place.exists():
            shutil.rmtree(place)

    async def kill_all(self) -> int:
        self.did.append("kill")
        return 0


async def play(dockerfile: Path, root: Path, target: str = "/app") -> Bubble:
    """Make a sandbox as *dockerfile* says, as far as our examples go, with this machine for a base."""
    bubble = Bubble(root, target)
    values: dict[str, str] = {}
    for line in dockerfile.read_text().replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        rest = re.sub(r"\$\{(\w+)\}", lambda found: values.get(found[1], ""), rest) if word != "RUN" else rest
        if word == "WORKDIR":
            bubble.workdir = rest
            bubble._path(rest).mkdir(parents=True, exist_ok=True)
        elif word in ("ENV", "ARG"):
            values.update([rest.split("=", 1)])
        elif word == "COPY":
            source, to = shlex.split(rest)
            path = dockerfile.parent / source
            is_into = to.endswith("/") and not path.is_dir()
            await bubble.upload(str(path), f"{to}{path.name}" if is_into else to)
        elif word == "RUN":
            ran = await bubble.exec(rest)
            assert ran.exit_code == 0, ran.text
    return bubble


async def attempt(folder: Path, root: Path, *, solve: bool = True, act: str = "", **params: Any) -> Verdict:
    """Return the verdict on the task in *folder*: solved by its solution if so asked, then by the script *act*."""
    harbor = Harbor(str(folder), data_dir=str(root / "data"), **params)
    task = harbor.load_tasks().tasks[0]
    plan = harbor.plan(task)
    bubble = await play(Path(plan.environment.build or "") / "Dockerfile", root / "run")
    bubble.env.update(plan.environment.env)
    prepared: PreparedTask | None = await harbor.prepare_task(task, bubble)
    verdicts: list[Verdict] = []
    while prepared is not None:
        if solve:
            await _solve(prepared, bubble)
        if act:
            await bubble.exec(["bash", "-c", act])
        verdicts.append(await harbor.evaluate(task, prepared, RunResult(), await _grader(plan, bubble, root)))
        prepared = await harbor.next_step(task, prepared, verdicts, bubble) if plan.steps > 1 else None
    return harbor.combine(task, verdicts) if plan.steps > 1 else verdicts[0]


async def _solve(prepared: PreparedTask, bubble: Bubble) -> None:
    solution = prepared.solution
    assert solution is not None
    for target, source in solution.uploads.items():
        await bubble.upload(source, target)
    for name, data in solution.files.items():
        await bubble.write_file(name, data)
    ran = await bubble.exec(solution.command or "true", env=solution.env)
    assert ran.exit_code == 0, ran.text


async def _grader(plan: Any, bubble: Bubble, root: Path) -> Bubble:
    """Return the sandbox to grade in: the same, or a fresh one with the artifacts."""
    if plan.verifier is None:
        return bubble
    fresh = await play(Path(plan.verifier.build) / "Dockerfile", root / "verify")
    for entry in plan.artifacts:
        if bubble._path(entry.source).exists():
            await fresh.upload(str(bubble._path(entry.source)), entry.source)
    return fresh
