"""Another tool drives the core: its own sandboxes, its own place for records, no files and no command line."""

from __future__ import annotations

import asyncio

from agentcompass import build_run_request
from agentcompass.adapters.clocks import SystemClock
from agentcompass.adapters.engine.parts import Components
from agentcompass.adapters.engine.run import Run
from agentcompass.core.model.environment import Capabilities
from agentcompass.plugins.benchmarks.humaneval import HumanEval
from agentcompass.plugins.harnesses.oracle import Oracle
from agentcompass.ports.environment import Environment
from agentcompass.ports.store import RunStore


class Sandbox(Environment):
    """Our tool's own sandbox: here a dictionary in which nothing can run, so nothing can be graded as right."""

    workdir = "/"

    def __init__(self):
        self.files = {}

    async def write_file(self, path, data, *, mode=0o644):
        self.files[path] = data

    async def read_file(self, path, *, limit=0):
        return None

    async def kill_all(self):
        return 0


class Sandboxes:
    capabilities = Capabilities()

    async def open(self, spec, record):
        return Sandbox()


class Records(RunStore):
    """Our tool's own place for records: it keeps finished tasks, and lets the rest pass."""

    paths = {}

    def __init__(self):
        self.tasks = {}

    async def save_task(self, task_id, failed, document):
        self.tasks[task_id] = document


async def evaluate():
    prepared = build_run_request(benchmark="humaneval", harness="oracle", limit=5, run_id="embedded")
    components, records = Components(HumanEval(), Oracle(), Sandboxes()), Records()
    run = Run(prepared.request, prepared.runtime, components, records, SystemClock(), prepared.redactor, {})
    return await run.execute(), records.tasks


if __name__ == "__main__":
    outcome, tasks = asyncio.run(evaluate())
    print(outcome.state, outcome.report.headline.score.value, sorted(tasks))
