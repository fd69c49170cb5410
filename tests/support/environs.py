"""A benchmark and a harness that say which variables they find in each phase; a plugin like any other."""

from __future__ import annotations

from agentcompass.core.metrics.contract import binary_contract
from agentcompass.core.model.component import Component, parameters
from agentcompass.core.model.plan import EvaluationMode
from agentcompass.core.model.result import HarnessResult, Verdict
from agentcompass.core.model.task import PreparedTask, Task
from agentcompass.ports.benchmark import Benchmark, LoadedTasks
from agentcompass.ports.harness import Harness
from agentcompass.ports.hookspecs import hookimpl

ENTRY_POINTS = "[agentcompass.plugins]\nenvirons = support.environs\n"


async def seen(environment, **env):
    """Return the variables called AC_... that a command of *environment* finds."""
    ran = await environment.exec("env", env=env)
    lines = (line.partition("=") for line in ran.stdout.decode().splitlines() if line.startswith("AC_"))
    return {name: value for name, _, value in lines}


class EnvironsBenchmark(Benchmark):
    """One task."""

    metrics = binary_contract()

    def __init__(self, mode="reuse"):
        self.evaluation_mode = EvaluationMode(mode)

    def load_tasks(self):
        return LoadedTasks([Task("one")])

    async def prepare_task(self, task, environment):
        return PreparedTask("", metadata={"seen": await seen(environment)})

    async def evaluate(self, task, prepared, result, environment):
        found = {"prepare": prepared.metadata["seen"], **result.telemetry}
        if environment is not None:
            found["evaluate"] = await seen(environment, AC_BOTH="asked for")
        return Verdict({"correct": True}, evidence=found)


class EnvironsHarness(Harness):
    """An agent that looks round."""

    needs_model = False

    async def open_session(self, context, prepared):
        return {"setup": await seen(context.environment)}, context

    async def execute_task(self, session, prepared, *, timeout):
        found, context = session
        found["run"] = await seen(context.environment)

    async def collect_result(self, session, prepared):
        return HarnessResult(telemetry=session[0])

    async def close_session(self, session):
        pass


@hookimpl
def register_benchmarks():
    params = parameters(mode={"type": "string", "default": "reuse", "description": "The evaluation mode."})
    return [Component("environs", "Says what it sees.", f"{__name__}:EnvironsBenchmark", params)]


@hookimpl
def register_harnesses():
    return [Component("environs", "Says what it sees.", f"{__name__}:EnvironsHarness")]
