"""The benchmark ``example_sums``."""

from __future__ import annotations

from agentcompass.core.metrics.contract import binary_contract
from agentcompass.core.model.plan import EvaluationMode
from agentcompass.core.model.result import RunResult, Verdict
from agentcompass.core.model.task import PreparedTask, Task
from agentcompass.ports.benchmark import Benchmark, LoadedTasks
from agentcompass.ports.environment import Environment


class Sums(Benchmark):
    """One task per pair of numbers, by category of the sum: ``small`` or ``large``."""

    version = "1"
    metrics = binary_contract()  # one primary metric, called "correct"
    evaluation_mode = EvaluationMode.NONE  # the grader needs no sandbox
    isolated = True  # attempts do not meet outside their sandboxes

    def __init__(self, largest: int = 3) -> None:
        self._numbers = range(1, largest + 1)

    def load_tasks(self) -> LoadedTasks:
        """Make the tasks; a real benchmark reads its data here, and names the items that are no tasks."""
        return LoadedTasks([_task(a, b) for a in self._numbers for b in self._numbers])

    async def prepare_task(self, task: Task, environment: Environment) -> PreparedTask:
        """Show the question; a real benchmark puts its files into the sandbox here."""
        return PreparedTask(task.prompt)

    async def evaluate(
        self, task: Task, prepared: PreparedTask, result: RunResult, environment: Environment | None
    ) -> Verdict:
        """Compare: a wrong answer is a verdict, never an exception."""
        answer = str(result.final_answer).strip()
        return Verdict({"correct": answer == str(task.ground_truth)}, evidence={"answer": answer})


def _task(a: int, b: int) -> Task:
    category = "small" if a + b < 4 else "large"
    return Task(f"{a}+{b}", f"What is {a} + {b}?", category=category, ground_truth=a + b)
