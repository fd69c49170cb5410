"""Evaluations in child processes that are killed at a chosen system call of the store, or at a chosen moment.

Run as a program, it reads one JSON line per evaluation from stdin (``words``: the command line, ``cwd``, ``kill_at``:
the number of the call before which to die, or ``kill_after`` seconds), runs it in a fork of itself, and answers with a
line: how it ended, and how many calls there were.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from agentcompass.core.metrics.contract import binary_contract
from agentcompass.core.model.artifact import Artifact
from agentcompass.core.model.component import Component, parameters
from agentcompass.core.model.plan import EvaluationMode, TaskPlan
from agentcompass.core.model.result import HarnessResult, Verdict
from agentcompass.core.model.task import PreparedTask, Task
from agentcompass.ports.benchmark import Benchmark, LoadedTasks
from agentcompass.ports.harness import Harness
from agentcompass.ports.hookspecs import hookimpl

ENTRY_POINTS = "[agentcompass.plugins]\ncrashing = support.crashing\n"
CALLS = ("replace", "rename", "link", "unlink", "mkdir", "write", "fsync", "rmdir")  #: what changes a disk


class CrashBenchmark(Benchmark):
    """Tasks whose answers are files; every second one is right."""

    metrics = binary_contract()
    isolated = True
    collects_artifacts = True

    def __init__(self, count=3, mode="fresh"):
        self._count, self.evaluation_mode = count, EvaluationMode(mode)

    def load_tasks(self):
        return LoadedTasks([Task(f"t{n}") for n in range(self._count)])

    def plan(self, task):
        return TaskPlan(artifacts=(Artifact("answer", "answer"),))

    async def prepare_task(self, task, environment):
        return PreparedTask("answer")

    async def evaluate(self, task, prepared, result, environment):
        if environment is None:
            return Verdict({"correct": int(task.id[1:]) % 2 == 0})
        answer = await environment.read_file("answer")
        return Verdict({"correct": answer == b"even"})


class CrashHarness(Harness):
    """Writes the answer, and notes each execution in a file that outlives every kill."""

    needs_model = False
    isolated = True

    def __init__(self, log, pause=0.0):
        self._log, self._pause = log, pause

    async def open_session(self, context, prepared):
        return context

    async def execute_task(self, session, prepared, *, timeout):
        with open(self._log, "a") as file:
            file.write(f"{session.task_id} {session.attempt}\n")
        if self._pause:
            await asyncio.sleep(self._pause)
        even = int(session.task_id[1:]) % 2 == 0
        await session.environment.write_file("answer", b"even" if even else b"odd")

    async def collect_result(self, session, prepared):
        return HarnessResult("done")

    async def close_session(self, session):
        pass


@hookimpl
def register_benchmarks():
    count = {"type": "integer", "default": 3, "description": "Tasks."}
    mode = {"type": "string", "default": "fresh", "description": "Where they are graded."}
    return [Component("crashing", "Can be killed.", f"{__name__}:CrashBenchmark", parameters(count=count, mode=mode))]


@hookimpl
def register_harnesses():
    log = {"type": "string", "description": "Where executions are noted."}
    pause = {"type": "number", "default": 0, "description": "Seconds of each."}
    params = parameters(("log",), log=log, pause=pause)
    return [Component("crashing", "Can be killed.", f"{__name__}:CrashHarness", params)]


class Zygote:
    """A process with everything imported, which forks for each evaluation."""

    def __init__(self, site: Path) -> None:
        path = os.pathsep.join([str(site), *filter(None, sys.path)])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.crashing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )

    def run(self, cwd: Path, *words: str, **kill: float) -> tuple[int, int]:
        """Run one evaluation in *cwd*; return its exit status (negative for a signal) and its number of calls."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"words": words, "cwd": str(cwd), **kill}) + "\n")
        self._process.stdin.flush()
        status, calls = json.loads(self._process.stdout.readline())
        return status, calls

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _serve() -> None:
    import agentcompass.adapters.cli.cmd_run
    import agentcompass.adapters.engine.evaluate
    import agentcompass.adapters.sandboxes.local_process
    import agentcompass.adapters.stores.json_files  # noqa: F401

    for line in sys.stdin:
        order = json.loads(line)
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            _child(order, writer)
        os.close(writer)
        _, status = os.waitpid(pid, 0)
        with open(reader, "rb") as counts:
            calls = len(counts.read())
        print(json.dumps([os.waitstatus_to_exitcode(status), calls]), flush=True)


def _child(order, writer) -> None:
    from agentcompass.adapters.cli.main import main

    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.chdir(order["cwd"])
    os.environ["TMPDIR"] = order["cwd"]
    _count_calls(order.get("kill_at"), writer)
    if "kill_after" in order:
        threading.Timer(order["kill_after"], os.kill, (os.getpid(), signal.SIGKILL)).start()
    os._exit(main(order["words"]))


def _count_calls(kill_at, writer) -> None:
    """Have every call that changes a disk counted, and the process killed before number *kill_at*."""
    place, real_write = os.getcwd() + "/results", os.write
    done = [0]

    def counted(name):
        real = getattr(os, name)

        def call(*args, **more):
            if name in ("write", "fsync") and not _is_ours(args[0], place):
                return real(*args, **more)
            if done[0] == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            done[0] += 1
            real_write(writer, b".")
            return real(*args, **more)

        return call

    for name in CALLS:
        setattr(os, name, counted(name))


def _is_ours(descriptor, place) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}").startswith(place)
    except OSError:
        return False


if __name__ == "__main__":
    _serve()
