"""The progress snapshot is the fold of the events."""

from __future__ import annotations

import random

import pytest
from support.documents import problems

from agentcompass.core.model.event import Event
from agentcompass.core.records.progress import Progress, fold

pytestmark = pytest.mark.seed("RR-04")


def _event(event, at=1.0, task=None, attempt=None, phase=None, status=None, **payload):
    return Event(event, at, task, "cat" if task else None, attempt, phase, status, payload)


START = [
    _event("run_started", 100.0, model="m", benchmark="b", harness="h", environment="e"),
    _event("tasks_loaded", 100.5, total_tasks=3),
]


def _task(name, status="completed", severity=""):
    return [
        _event("task_started", 101.0, name, index=0, total=3),
        _event("attempt_started", 101.0, name, 1),
        _event("phase_changed", 101.1, name, 1, "plan"),
        _event("attempt_finished", 102.0, name, 1, status="completed"),
        _event("partial_saved", 102.1, name),
        _event("task_finished", 102.2, name, status=status, index=0, total=3, severity=severity),
    ]


def _counts(events):
    document = fold(events, "r").document()
    return {key: value for key, value in document.items() if isinstance(value, int) and value}


@pytest.mark.parametrize(
    ("events", "counts"),
    [
        ([], {}),
        (START[:1], {}),
        (START, {"total_tasks": 3, "pending_tasks": 3}),
        (
            [*START, _event("reuse_loaded", reused_tasks=2, tasks_to_run=1)],
            {"total_tasks": 3, "pending_tasks": 1, "reused_tasks": 2, "finished_tasks": 2, "completed_tasks": 2},
        ),
        ([*START, *_task("t")[:1]], {"total_tasks": 3, "pending_tasks": 2, "running_tasks": 1}),
        (
            [*START, *_task("t")[:2]],
            {"total_tasks": 3, "pending_tasks": 2, "running_tasks": 1, "attempts_started": 1},
        ),
        (
            [*START, *_task("t")[:2], _event("attempt_retry", 1, "t", 1)],
            {"total_tasks": 3, "pending_tasks": 2, "running_tasks": 1, "attempts_started": 1, "retries": 1},
        ),
        (
            [*START, *_task("t")],
            {"total_tasks": 3, "pending_tasks": 2, "finished_tasks": 1, "completed_tasks": 1, "attempts_started": 1,
             "attempts_finished": 1, "partials_saved": 1},
        ),
        (
            [*START, *_task("t", "failed", "error"), *_task("u", "failed", "fatal"), *_task("v", "skipped")],
            {"total_tasks": 3, "finished_tasks": 3, "failed_tasks": 2, "error_tasks": 1, "skipped_tasks": 1,
             "attempts_started": 3, "attempts_finished": 3, "partials_saved": 3},
        ),
        (
            [*START, *_task("t", "completed", "warning")],
            {"total_tasks": 3, "pending_tasks": 2, "finished_tasks": 1, "completed_tasks": 1, "warning_tasks": 1,
             "attempts_started": 1, "attempts_finished": 1, "partials_saved": 1},
        ),
        (
            [*START, *_task("t"), *_task("u")[:3], _event("run_finished", status="cancelled")],
            {"total_tasks": 3, "pending_tasks": 2, "finished_tasks": 1, "completed_tasks": 1, "attempts_started": 2,
             "attempts_finished": 1, "partials_saved": 1},
        ),
        ([*START, _event("execution_plan_resolved", 1, "t", 1, "plan")], {"total_tasks": 3, "pending_tasks": 3}),
        ([*START, _event("something_newer", 1, "t")], {"total_tasks": 3, "pending_tasks": 3}),
    ],
)  # fmt: skip
def test_each_event_counts_what_it_means(events, counts):
    """The counts after some events are those that the table of counters defines."""
    assert counts == _counts(events)


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (_event("run_started", model=None, benchmark="b", harness="h", environment="e"), "running"),
        (_event("summary_started"), "summarizing"),
        *((_event("run_finished", status=end), end) for end in ("completed", "failed", "cancelled", "timed_out")),
    ],
)
def test_the_status_follows_the_events(event, status):
    """Each change of the run's state shows in the snapshot."""
    assert status == fold([event], "r").document()["status"]


def test_an_active_task_shows_where_it_is():
    """A task that has only started is running; then its latest phase, attempt and what the phase told."""
    progress = fold([*START, *_task("t")[:1]], "r")
    before = dict(progress.document()["active_tasks"]["t"])
    progress.apply(_event("phase_changed", 105.0, "t", 2, "retry_wait", retry_delay_seconds=3))
    progress.apply(_event("phase_changed", 106.0, "t", None, "save_partial"))

    assert {"category": "cat", "phase": "running", "attempt": None, "updated_at": 101.0, "details": {}} == before
    assert {
        "category": "cat", "phase": "save_partial", "attempt": 2, "updated_at": 106.0, "details": {},
    } == progress.document()["active_tasks"]["t"]  # fmt: skip


def test_phases_are_counted_by_task():
    """Each active task is in one phase; the counts of phases without tasks disappear."""
    events = [*START, *_task("t")[:3], *_task("u")[:1]]
    progress = fold(events, "r")
    counted = progress.document()["current_phase_counts"]
    progress.apply(_event("phase_changed", 1, "u", 1, "plan"))

    assert {"plan": 1, "running": 1} == counted
    assert {"plan": 2} == progress.document()["current_phase_counts"]


def test_the_end_clears_what_was_active():
    """Once the run has ended, no task is active, and pending are all that did not finish."""
    document = fold([*START, *_task("t")[:3], _event("run_finished", 200.0, status="timed_out")], "r").document()

    assert ({}, {}, 0, 3) == tuple(
        document[key] for key in ("active_tasks", "current_phase_counts", "running_tasks", "pending_tasks")
    )


def test_time_is_that_of_the_events():
    """Elapsed time goes from the first event to the latest, in milliseconds, and never back."""
    events = [
        _event("run_started", 10.0),
        _event("summary_started", 12.34567),
        _event("run_finished", 11.0, status="failed"),
    ]
    document = fold(events, "r").document()

    assert (2.346, 12.34567) == (document["elapsed_seconds"], document["updated_at"])
    assert (0.0, 0.0) == (Progress("r").document()["elapsed_seconds"], Progress("r").document()["updated_at"])


def test_an_unknown_task_is_no_trouble():
    """A stream that lost some lines still gives a snapshot."""
    events = [*START, _event("phase_changed", 1, "x", 1, "plan"), *_task("t")[5:]]

    assert {"total_tasks": 3, "pending_tasks": 3, "finished_tasks": 1, "completed_tasks": 1} == _counts(events)


def test_any_interleaving_keeps_the_counts_in_step():
    """Whatever order concurrent tasks come in, the counts add up after every event, and the snapshot is valid."""
    draw = random.Random("interleavings")
    for _ in range(50):
        total = draw.randint(1, 6)
        lives = [_task(f"t{n}", draw.choice(["completed", "failed", "skipped"])) for n in range(total)]
        progress = fold([START[0], _event("tasks_loaded", total_tasks=total)], "r")
        while any(lives):
            progress.apply(draw.choice([life for life in lives if life]).pop(0))
            document = progress.document()
            assert [] == problems("progress.v1", document)
            assert total == sum(document[f"{state}_tasks"] for state in ("pending", "running", "finished"))
            assert document["finished_tasks"] == sum(
                document[f"{end}_tasks"] for end in ("completed", "failed", "skipped")
            )
            assert document["running_tasks"] == sum(document["current_phase_counts"].values())
            assert document["running_tasks"] == len(document["active_tasks"])
