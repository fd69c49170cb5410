"""The life of a whole run, told as a straight line of effects; a summary is written however it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import UsageError
from ..metrics.aggregate import aggregate
from ..metrics.contract import MetricContract
from ..metrics.observation import TaskKey
from ..metrics.report import MetricReport
from ..model.request import RunRequest
from ..model.task import RejectedItem, Task
from ..selection import select
from .effects import Announce, Cancelled, Stop
from .run import RunEvent, RunState, move
from .run_effects import Executed, ExecuteTasks, LoadTasks, SaveReport, SaveRunInfo


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended: its final state, its numbers (None if it never had tasks), an error for people."""

    state: RunState
    report: MetricReport | None
    error: str | None = None


_FINAL = {Stop.INTERRUPTED: RunEvent.INTERRUPTED, Stop.EXPIRED: RunEvent.EXPIRED, Stop.BROKEN: RunEvent.BROKEN}


async def run_evaluation(request: RunRequest, contract: MetricContract) -> RunOutcome:
    """Load the tasks of *request*, execute them, aggregate, and record each step."""
    try:
        await SaveRunInfo()
    except OSError as exc:
        return await _end(move(RunState.CREATED, RunEvent.BROKEN), None, f"the run could not be recorded: {exc}")
    state = move(RunState.CREATED, RunEvent.STARTED)
    model = request.model.id if request.model else None
    await Announce(
        "run_started",
        payload={
            "model": model,
            "benchmark": request.benchmark.id,
            "harness": request.harness.id,
            "environment": request.environment.id,
        },
    )
    try:
        loaded = await LoadTasks()
        tasks = select(loaded.tasks, request.selection)
    except (UsageError, OSError) as exc:
        return await _end(move(state, RunEvent.BROKEN), None, str(exc))
    except Exception as exc:  # a defect of the benchmark costs the run, but not its record
        return await _end(move(state, RunEvent.BROKEN), None, f"loading the tasks: {type(exc).__name__}: {exc}")
    except Cancelled as cancelled:
        return await _end(move(state, _FINAL[cancelled.reason]), None, cancelled.error)
    await Announce("tasks_loaded", payload={"total_tasks": len(tasks)})
    try:
        executed = await ExecuteTasks(tasks)
    except OSError as exc:
        executed = Executed((), Stop.BROKEN, f"results could not be written: {exc}")
    state = move(state, RunEvent.WORK_ENDED)
    await Announce("summary_started")
    report = aggregate(
        contract=contract,
        plan=request.execution.attempts,
        tasks=[TaskKey(task.id, task.category, task.cluster) for task in tasks],
        observations=executed.observations,
        mode=request.selection.aggregation_mode,
        hierarchy=request.selection.category_hierarchy,
    )
    wrong = () if loaded.tolerated else loaded.rejected
    return await _summarize(state, report, tasks, wrong, executed.stop, executed.error)


async def _summarize(
    state: RunState,
    report: MetricReport,
    tasks: Sequence[Task],
    rejected: Sequence[RejectedItem],
    stop: Stop | None,
    error: str | None,
) -> RunOutcome:
    event = _FINAL[stop] if stop else RunEvent.SUCCEEDED
    if event is RunEvent.SUCCEEDED and report.headline.score.value is None:
        event, error = RunEvent.BROKEN, _why_no_score(report)
    elif event is RunEvent.SUCCEEDED and rejected:
        first = rejected[0]
        event = RunEvent.BROKEN
        error = f"{len(rejected)} items of the benchmark's data are no tasks, the first: {first.where}: {first.reason}"
    final = move(state, event)
    try:
        await SaveReport(report, final.value, error)
    except OSError as exc:
        final, error = move(state, RunEvent.BROKEN), error or f"the report could not be saved: {exc}"
    return await _end(final, report, error)


def _why_no_score(report: MetricReport) -> str:
    if not report.evaluation_failed:
        return "no task has a value, so there is no official score"
    count = report.headline.counts.invalidated
    return f"{count} of {report.headline.counts.total} tasks ended with FATAL issues, so there is no official score"


async def _end(state: RunState, report: MetricReport | None, error: str | None) -> RunOutcome:
    try:
        await SaveRunInfo(state.value, error, report)
    except OSError as exc:
        state, error = RunState.FAILED, error or f"the final state could not be saved: {exc}"
    await Announce("run_finished", status=state.value, payload={"error": error} if error else {})
    return RunOutcome(state, report, error)
