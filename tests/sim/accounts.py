"""The final account: what must hold of a run that has ended, and of what a crash left on disk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from agentcompass.core.metrics.observation import Observation
from agentcompass.core.metrics.report import MetricReport
from agentcompass.core.model.event import Event
from agentcompass.core.model.issue import Severity
from agentcompass.core.records.events import event_of
from agentcompass.core.records.progress import Progress, fold
from agentcompass.core.runtime.effects import Stop
from agentcompass.core.runtime.evaluation import RunOutcome
from agentcompass.core.runtime.run import RunState

from .office import Office, readable
from .settings import Order, Settings
from .watch import Watch

_FINAL = {Stop.INTERRUPTED: RunState.CANCELLED, Stop.EXPIRED: RunState.TIMED_OUT, Stop.BROKEN: RunState.FAILED}


def check_run(watch: Watch, office: Office, outcome: RunOutcome | None, reason: Stop | None) -> None:
    """Check one request of a run that has ended, for *reason* if it was stopped."""
    watch.require(outcome is not None, "a run always has an outcome", office.run_id)
    assert outcome is not None
    _check_events(watch, office, outcome)
    _check_state(watch, office, outcome, reason)
    if office.ledger is not None:
        _check_records(watch, office, reason)
        _check_progress(watch, office, complete=reason is None)
    if outcome.report is not None:
        observations = office.ledger.observations if office.ledger else []
        _check_counts(watch, office.order, len(office.tasks), observations, outcome.report)


def _check_events(watch: Watch, office: Office, outcome: RunOutcome) -> None:
    events = [event_of(document) for document in office.store.events]
    names = [event.event for event in events]
    watch.require(names[-1:] == ["run_finished"], "the last event ends the run", names[-3:])
    watch.require(names.count("run_finished") == 1, "a run ends once", names)
    watch.require(events[-1].status == outcome.state.value, "the last event tells the state", events[-1])
    times = [event.timestamp for event in events]
    watch.require(times == sorted(times), "time does not go back", times)
    folded = fold(events, office.run_id).document()
    watch.require(folded == office.progress.document(), "the snapshot is the fold of the events", folded)
    active = (office.progress.running_tasks, dict(office.progress.phase_counts))
    watch.require(active == (0, {}), "nothing is active after the end", active)


def _check_state(watch: Watch, office: Office, outcome: RunOutcome, reason: Stop | None) -> None:
    disk = bool(watch.settings.troubles.get("save"))
    report, order = outcome.report, office.order
    infos = office.store.run_infos
    told = infos[-1]["status"] if infos else None
    watch.require(told == outcome.state.value or disk, "the final state is recorded", (told, outcome))
    if disk:
        watch.require(outcome.state not in (RunState.CREATED, RunState.RUNNING), "the state is final", outcome)
        return
    loaded = "tasks_loaded" in [document["event"] for document in office.store.events]
    watch.require((report is not None) == loaded, "loaded tasks get a summary", outcome)
    watch.require(report == office.store.report, "the summary is saved", outcome)
    if reason is not None and loaded and outcome.state is not RunState.COMPLETED:
        wanted = (
            {_FINAL[reason], RunState.FAILED} if office.ledger is None or office.ledger.finished else {_FINAL[reason]}
        )
        watch.require(outcome.state in wanted, "a stop is told", outcome)
    if reason is None:
        scored = report is not None and report.headline.score.value is not None  # official values only
        whole = scored and not order.rejected
        wanted_state = RunState.COMPLETED if whole else RunState.FAILED
        watch.require(outcome.state is wanted_state, "the state follows from the results", outcome)
    watch.require((outcome.error is None) == (outcome.state is RunState.COMPLETED), "a failure says why", outcome)


def _check_records(watch: Watch, office: Office, reason: Stop | None) -> None:
    assert office.ledger is not None
    observed = [(seen.task_id, seen.attempt) for seen in office.ledger.observations]
    kept = [name for name, document in office.store.attempts.items() if document["status"] != "cancelled"]
    watch.require(len(observed) == len(set(observed)), "an attempt is observed once", observed)
    watch.require(sorted(observed) == sorted(kept), "every record is one observation", (observed, kept))
    if reason is None:
        watch.require(office.ledger.finished, "all work is done", office.run_id)
        details = sorted(office.store.details)
        watch.require(details == sorted(task.id for task in office.tasks), "every task is saved", details)
    numbers = _by_task(office.ledger.observations)
    for task, document in office.store.details.items():
        told = sorted(int(number) for number in document["attempts"])
        watch.require(told == sorted(numbers[task]), "a task tells all its attempts", (task, told))


def _check_progress(watch: Watch, office: Office, complete: bool) -> None:
    progress, accounts = office.progress, watch.accounts
    mine = [account for key, account in accounts.items() if key.request == office.index and account.executions]
    standing = [key for key, account in accounts.items() if key.request == office.index and account.stands]
    wanted = (len(mine), sum(account.retries - account.retries_before for account in mine))
    watch.require((progress.attempts_started, progress.retries) == wanted, "events count what happened", wanted)
    assert office.ledger is not None
    finished, observed = progress.attempts_finished, len(office.ledger.observations) - len(standing)
    watch.require(finished == observed or watch.forced, "finished attempts are counted", (finished, observed))
    tasks = (progress.finished_tasks, progress.completed_tasks + progress.failed_tasks)
    saved = progress.partials_saved + progress.reused_tasks
    watch.require(tasks == (saved, saved), "finished tasks are counted", tasks)
    watch.require(
        progress.finished_tasks == len(office.store.details) or watch.forced, "saved tasks are counted", tasks
    )
    watch.require(progress.pending_tasks + progress.finished_tasks == progress.total_tasks, "tasks add up", tasks)
    watch.require(not complete or progress.pending_tasks == 0, "no task is left", tasks)


def _check_counts(watch: Watch, order: Order, total: int, seen: Sequence[Observation], report: MetricReport) -> None:
    fatal = {observation.task_id for observation in seen if observation.severity is Severity.FATAL}
    primary = "score" if order.scalar else "correct"
    evaluated = sum(
        task not in fatal and _has_value(order, [o.metrics.get(primary) for o in found])
        for task, found in _by_task(seen).items()
        for found in [list(found.values())]
    )
    counts = report.headline.counts
    told = (counts.total, counts.evaluated, counts.invalidated)
    watch.require(told == (total, evaluated, len(fatal)), "the summary counts what happened", (told, evaluated, fatal))
    for series in report.series:
        c = series.counts
        watch.require(c.evaluated + c.unavailable + c.invalidated == c.total, "counts add up", c)
        watch.require(not fatal or series.score.value is None, "a FATAL leaves no official score", series)
    watch.require(report.evaluation_failed == bool(fatal), "a FATAL fails the evaluation", fatal)


def _has_value(order: Order, values: list[Any]) -> bool:
    complete = len(values) == order.k and None not in values
    return complete or (order.k > 1 and order.strategy == "pass" and True in values)


def _by_task(seen: Iterable[Observation]) -> dict[str, dict[int, Observation]]:
    tasks: dict[str, dict[int, Observation]] = defaultdict(dict)
    for observation in seen:
        tasks[observation.task_id][observation.attempt] = observation
    return tasks


def check_crash(watch: Watch, office: Office) -> None:
    """Check that what a crash of *office*'s run left on disk is whole, and tells one story."""
    store = office.store
    planned = {task.id: range(1, office.order.k + 1) for task in office.tasks}
    for (task, attempt), document in store.attempts.items():
        watch.require(readable(document)["attempt"] == attempt in planned[task], "saved attempts are planned", task)
    for task, document in store.details.items():
        for number, result in readable(document)["attempts"].items():
            alone = readable(store.attempts.get((task, int(number)), {}))
            watch.require(
                all(alone.get(name) == v for name, v in result.items()), "a task is made of its attempts", task
            )
    for document in store.retries.values():
        readable(document)
    _check_stream(watch, office, [event_of(readable(document)) for document in store.events])


def _check_stream(watch: Watch, office: Office, events: list[Event]) -> None:
    progress: Progress = fold(events, office.run_id)
    watch.require(progress.document() == office.progress.document(), "the snapshot is the fold of the events")
    finished = [event.task_id for event in events if event.event == "task_finished"]
    watch.require(set(finished) <= set(office.store.details), "what is told as finished is saved", finished)
    final = [(event.task_id, event.attempt) for event in events if event.event == "attempt_finished"]
    watch.require(set(final) <= set(office.store.attempts), "what is told as final is saved", final)


def check(settings: Settings, watch: Watch, offices: Iterable[Office], outcomes: Any, reason: Stop | None) -> None:
    """Check a run with all its requests, which has ended."""
    for office in offices:
        check_run(watch, office, outcomes.get(office.index), reason)
