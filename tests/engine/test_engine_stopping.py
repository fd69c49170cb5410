"""Runs that are stopped, sandboxes that are kept, and ends that do not come."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from support.toys import BOARD, ToyHarness

from agentcompass import RunFailedError, async_run_evaluation, build_run_request
from agentcompass.adapters.config.requests import Prepared
from agentcompass.adapters.engine.evaluate import evaluate
from agentcompass.core.runtime.effects import Stop


def _prepared(tmp_path, tasks, *, benchmark=None, **more) -> Prepared:
    return build_run_request(
        benchmark="toy",
        harness="toy",
        environment="toy",
        benchmark_params={"tasks": tasks, **(benchmark or {})},
        results_dir=tmp_path / "results",
        **{"log_level": "CRITICAL", **more},
    )


def _stopped(prepared, when=lambda event: False):
    """Run *prepared*; BOARD.stop stops it, and so does the first event for which *when* is true."""

    def ready(run):
        BOARD.stop = lambda: run.stop.set(Stop.INTERRUPTED, "stopped by the test")

    class Watcher:
        def on_event(self, event, progress):
            if when(event):
                BOARD.stop()

        def close(self):
            pass

    return asyncio.run(evaluate(prepared, (Watcher(),), ready))


def _read(result, name):
    with open(f"{result.paths['run_dir']}/{name}", encoding="utf-8") as file:
        return json.load(file)


@pytest.mark.parametrize("step", ["plan", "open", "prepare", "start", "run", "collect", "evaluate", "close", "finish"])
def test_a_run_may_be_stopped_at_any_step(toys, tmp_path, step):
    """It ends cancelled, with everything closed, a summary, and what was finished before."""
    tasks = {"done": {}, "late": {step: "stop"} if step != "plan" else {}, "never": {}}
    stop_at_plan = step == "plan"
    result = _stopped(
        _prepared(tmp_path, tasks, task_concurrency=1, benchmark={"mode": "reuse"}),
        lambda event: stop_at_plan and (event.task_id, event.phase) == ("late", "plan"),
    )

    counts = result.report.headline.counts
    assert ("cancelled", "stopped by the test") == (result.status, result.error)
    assert ("cancelled", "cancelled") == (
        _read(result, "run_info.json")["status"],
        _read(result, "progress.json")["status"],
    )
    assert (3, 0) == (counts.total, counts.invalidated)
    assert 1 <= counts.evaluated <= 2
    assert [] == BOARD.open
    assert 0 == BOARD.times("open", "never")


@pytest.mark.parametrize("event", ["run_started", "tasks_loaded", "summary_started"])
def test_a_run_may_be_stopped_between_its_tasks(toys, tmp_path, event):
    """Before the first, or when all are done: the final state is written, and it is cancelled or complete."""
    result = _stopped(_prepared(tmp_path, {"a": {}}), lambda seen: seen.event == event)

    assert result.status == _read(result, "run_info.json")["status"]
    assert ("completed" if event == "summary_started" else "cancelled") == result.status
    assert (0 if event != "summary_started" else 1) == BOARD.times("run", "a")


def test_work_that_is_under_way_is_cancelled_and_tidied_up(toys, tmp_path):
    """The agent is stopped, killed, collected, its session and sandbox closed; the attempt is kept as cancelled."""
    tasks = {"a": {"run": "hang", "answer": "half"}, "b": {"run": "crowd:2", "evaluate": "stop"}}
    result = _stopped(_prepared(tmp_path, tasks))

    attempt = _read(result, "attempts/a/1/result.json")
    steps = [step for step, task in BOARD.did if task == "a"]
    assert ["open", "prepare", "start", "run", "kill", "collect", "finish", "close"] == steps
    assert ("cancelled", "half", {}) == tuple(attempt[name] for name in ("status", "final_answer", "metrics"))
    assert ({("run", "a"), ("evaluate", "b")}, []) == (set(BOARD.cancelled), BOARD.open)


def test_retries_end_with_the_run(toys, tmp_path):
    """Who waits for a retry is not waited for."""
    prepared = _prepared(
        tmp_path,
        {"a": {"run": "fatal"}},
        max_retries=3,
        execution_params={"retry_min_delay_seconds": 3000, "retry_max_delay_seconds": 3000},
    )
    result = _stopped(prepared, lambda event: event.phase == "retry_wait")

    assert ("cancelled", 1) == (result.status, BOARD.times("run", "a"))


def test_cancelling_the_call_ends_the_run_in_order(toys, tmp_path):
    """Whoever cancels `async_run_evaluation` gets his CancelledError, and finds everything closed and recorded."""
    running = asyncio.Event()

    async def main():
        work = asyncio.ensure_future(
            async_run_evaluation(
                benchmark="toy",
                harness="toy",
                environment="toy",
                benchmark_params={"tasks": {"a": {"run": "hang"}}},
                results_dir=tmp_path / "results",
                run_id="it",
                on_progress=lambda event, progress: event.phase == "run_harness" and running.set(),
            )
        )
        await running.wait()
        await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(main())

    folder = tmp_path / "results" / "toy_toy" / "it"
    assert "cancelled" == json.loads((folder / "run_info.json").read_text())["status"]
    assert ([], 1) == (BOARD.open, BOARD.times("close", "a"))


def test_a_deadline_is_an_error_of_the_call(toys, tmp_path):
    """The exception carries status and paths."""
    with pytest.raises(RunFailedError) as caught:
        asyncio.run(
            async_run_evaluation(
                benchmark="toy",
                harness="toy",
                environment="toy",
                benchmark_params={"tasks": {"a": {"run": "hang"}}},
                results_dir=tmp_path / "results",
                timeout_seconds=0.1,
            )
        )

    assert ("timed_out", True) == (caught.value.status, "runtime.timeout_seconds" in str(caught.value))
    assert "timed_out" == json.loads(Path(caught.value.paths["run_info"]).read_text())["status"]


@pytest.mark.parametrize("step", ["collect", "finish", "close", "kill"])
def test_an_end_that_does_not_come_is_given_up_after_the_grace(toys, tmp_path, step):
    """The final state is written all the same, and the other attempt is tidied up."""
    tasks = {"a": {"run": "hang", step: "hang"}, "b": {"run": "hang"}}
    result = _stopped(_prepared(tmp_path, tasks, cleanup_grace_seconds=0.5), lambda event: _all_run(event))

    assert ("cancelled", "cancelled") == (result.status, _read(result, "run_info.json")["status"])
    assert ["a"] == [sandbox.task for sandbox in BOARD.open]
    assert 1 == BOARD.times("close", "b")
    assert 2 == result.report.headline.counts.unavailable


def _all_run(event):
    return event.phase == "run_harness" and len(BOARD.opened_at) == 2


@pytest.mark.seed("RE-10")
@pytest.mark.parametrize("mode", ["none", "reuse", "fresh"])
def test_environments_are_kept_when_asked(toys, mode):
    """No sandbox is closed, verifiers and failed ones included; the agents' sessions are."""
    tasks = {"a": {}, "b": {"run": ["fatal", "ok"]}}
    ran = toys.run(tasks, "--keep-environment", "--max-retries", "1", mode=mode)

    sandboxes = {"none": 3, "reuse": 3, "fresh": 5}[mode]
    assert (0, sandboxes) == (ran.status, len(toys.board.open))
    assert (0, 1, 2) == (
        toys.board.times("close", "a"),
        toys.board.times("finish", "a"),
        toys.board.times("finish", "b"),
    )


def test_a_hanging_close_does_not_hold_up_the_other_tasks(toys, tmp_path):
    """While one attempt waits for its sandbox to close, others go on; the run's deadline ends the wait."""
    result = asyncio.run(
        evaluate(_prepared(tmp_path, {"a": {"close": "hang"}, "b": {}}, timeout_seconds=0.8, cleanup_grace_seconds=0.1))
    )

    assert ("timed_out", 1) == (result.status, result.report.headline.counts.evaluated)


def test_a_stop_is_obeyed_by_work_that_swallows_it_once(toys, tmp_path, monkeypatch):
    """Work that ends normally although it was cancelled still ends the attempt."""

    async def swallowing(self, session, prepared, *, timeout):
        try:
            BOARD.stop()
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return

    monkeypatch.setattr(ToyHarness, "execute_task", swallowing)
    result = _stopped(_prepared(tmp_path, {"a": {}}))

    assert ("cancelled", []) == (result.status, BOARD.open)
