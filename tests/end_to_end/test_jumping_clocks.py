"""A clock that jumps, back and forth, by hours: no limit, number or choice depends on it."""

from __future__ import annotations

import itertools
import json
import shutil

import pytest
from support.toys import toys

__all__ = ["toys"]

CLOCK = "agentcompass.adapters.clocks.SystemClock.now"
TASKS = {"a": {"verdict": True}, "b": {"verdict": False}, "c": {"run": "error:lost:reset"}}
HOUR = 3600.0


def _jumping():
    """Return a clock of which each look is some hours away from the one before, mostly back."""
    steps = itertools.cycle([-30 * HOUR, 7 * HOUR, 0.0, -HOUR, 3 * HOUR])
    moment = [1.8e9]

    def now(_):
        moment[0] += next(steps)
        return moment[0]

    return now


def _outcome(ran):
    details = ran.details()
    return {
        task: [(a["status"], a["metrics"]) for a in details[task]["attempts"].values()] for task in sorted(details)
    }, ran.document("metrics.json")["series"]


def test_a_run_does_not_heed_it(toys, monkeypatch):
    """Limits hold, durations are those of the stopwatch, the numbers are the same, and progress is told."""
    options = ("--k", "2", "--timeout-seconds", "600")
    limits = {"run_timeout_seconds": 600, "max_retries": 1}
    calm = toys.run(TASKS, *options, execution=limits)
    monkeypatch.setattr(CLOCK, _jumping())
    ran = toys.run(TASKS, *options, execution=limits)

    assert _outcome(calm) == _outcome(ran)
    assert "completed" == ran.document("run_info.json")["status"]
    for task in ran.details().values():
        for attempt in task["attempts"].values():
            assert all(0 <= seconds < 60 for seconds in attempt["seconds"].values())
    progress = ran.document("progress.json")
    assert (3, 3) == (progress["total_tasks"], progress["finished_tasks"])


@pytest.mark.seed("RE-01")
def test_a_chain_is_known_without_it(toys, monkeypatch):
    """Of three runs, each of which continued the one before while the clock went back, the last is the latest."""
    tasks = {"a": {}, "b": {}, "c": {}}
    for number in range(3):
        monkeypatch.setattr(CLOCK, lambda _, number=number: 1.8e9 - number * HOUR)
        ran = toys.run(tasks, "--run-id", f"run{9 - number}", *(["--reuse"] if number else []))
        for task in list(tasks)[number + 1 :]:  # killed before it came to these
            shutil.rmtree(ran.run_dir / "attempts" / task)
            (ran.run_dir / "details" / f"{task}.json").unlink()
    toys.board.did.clear()
    last = toys.run(tasks, "--reuse")

    assert "run7" == last.document("run_info.json")["reused_from"]["run_id"]
    assert [] == [task for step, task in toys.board.did if step == "run"]


@pytest.mark.seed("RE-01")
def test_the_latest_run_is_told_across_a_change_of_the_offset(toys):
    """Half past one may come twice in a night: what counts is the moment, not how it is written."""
    for name, moment in (("first", "2026-10-25T02:30:00+02:00"), ("second", "2026-10-25T02:10:00+01:00")):
        path = toys.run({"a": {}}, "--run-id", name).run_dir / "run_info.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "started_at": moment}))

    assert "second" == toys.run({"a": {}}, "--reuse").document("run_info.json")["reused_from"]["run_id"]
