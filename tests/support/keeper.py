"""A benchmark whose tasks leave files behind, and whose grader reads them; a plugin like any other."""

from __future__ import annotations

from agentcompass.core.metrics.contract import binary_contract
from agentcompass.core.model.artifact import Artifact, ArtifactCommand
from agentcompass.core.model.component import Component, parameters
from agentcompass.core.model.plan import EvaluationMode, TaskPlan
from agentcompass.core.model.result import Verdict
from agentcompass.core.model.task import PreparedTask, Task
from agentcompass.ports.benchmark import Benchmark, LoadedTasks
from agentcompass.ports.hookspecs import hookimpl

ENTRY_POINTS = "[agentcompass.plugins]\nkeeper = support.keeper\n"


class Keeper(Benchmark):
    """One task; *script* is run in its sandbox, *grader* has to succeed for it to be right."""

    metrics = binary_contract()
    collects_artifacts = True
    isolated = True

    def __init__(self, script, grader="grep -q 42 out/answer", mode="fresh", artifacts=(), collect=()):
        self.evaluation_mode = EvaluationMode(mode)
        self._script, self._grader = script, grader
        self._artifacts = tuple(Artifact(a["source"], a["destination"]) for a in artifacts)
        self._collect = tuple(ArtifactCommand(**command) for command in collect)

    def load_tasks(self):
        return LoadedTasks([Task("one")])

    def plan(self, task):
        return TaskPlan(artifacts=self._artifacts, artifact_collect=self._collect)

    async def prepare_task(self, task, environment):
        ran = await environment.exec(self._script)
        assert ran.exit_code == 0, ran.text
        return PreparedTask("leave an answer")

    async def evaluate(self, task, prepared, result, environment):
        if environment is None:
            return Verdict({"correct": True})
        ran = await environment.exec(self._grader)
        listed = await environment.exec("find . ! -name . | sort")
        seen = {"files": listed.stdout.decode().split(), "output": ran.text}
        return Verdict({"correct": ran.exit_code == 0}, evidence=seen)


@hookimpl
def register_benchmarks():
    text = {"type": "string", "description": "For the tests."}
    rows = {"type": "array", "default": [], "description": "For the tests."}
    params = parameters(
        ("script",),
        script=text,
        grader={**text, "default": "grep -q 42 out/answer"},
        mode={**text, "default": "fresh"},
        artifacts=rows,
        collect=rows,
    )
    return [Component("keeper", "Leaves files behind.", f"{__name__}:Keeper", params)]
