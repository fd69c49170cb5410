"""Many tasks at once, interrupted in every way: the next run executes what is left, and nothing that had ended."""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from functools import partial

import pytest
from support.beginning import Beginner
from support.processes import until

COUNT, CONCURRENCY = 80, 20
SIGNALS = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}


@pytest.fixture
def begin(tmp_path, monkeypatch):
    """Return what starts a run of all tasks in a process of its own."""
    return Beginner(tmp_path, monkeypatch, count=COUNT, concurrency=CONCURRENCY, pause=0.2)


def _interrupt(begin, number, moment, *options):
    """Start a run, and send the signal when *moment* more executions have begun; return what had ended by its end."""
    before = sum(begin.executions().values())
    process = begin(*options)
    until(lambda: sum(begin.executions().values()) >= before + moment or process.poll() is not None)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert SIGNALS[number] == process.returncode
    for path in begin.folder.glob("results/**/*.json"):
        json.loads(path.read_text())
    return begin.ended()


def _completed(begin, ended):
    """Continue to the end: nothing that had ended runs again, and the score is that of an undisturbed run."""
    before = begin.executions()
    process = begin("--reuse")
    out, err = process.communicate(timeout=120)
    after = begin.executions()

    assert 0 == process.returncode, err
    assert set() == {name for name in ended if after[name] > before[name]}
    assert COUNT == len(after)
    assert f"{COUNT} tasks = {COUNT} evaluated" in out
    assert "0.5000" in out
    assert [] == list(begin.folder.glob("agentcompass-*")), "a sandbox was left"
    assert [] == list(begin.newest().glob("resources/*"))


@pytest.mark.seed("RE-02", "RE-05")
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_an_interrupted_run_goes_on_with_what_is_left(begin, number):
    """Whatever the signal, at whatever moment."""
    moment = random.Random(number.name).randint(1, COUNT - CONCURRENCY)
    ended = _interrupt(begin, number, moment)

    assert len(ended) < COUNT
    _completed(begin, ended)


def test_a_chain_of_interrupted_runs(begin):
    """Each goes on with the one before."""
    for number, moment in ((signal.SIGKILL, 25), (signal.SIGTERM, 15), (signal.SIGKILL, 1)):
        ended = _interrupt(begin, number, moment, "--reuse")
    assert 3 == len(list(begin.folder.glob("results/*/*/run_info.json")))

    _completed(begin, ended)


REQUESTS = ("one", "two", "three")


def _launch(begin, *options):
    """Start a launch of three requests of twenty tasks each, which note what they execute in logs of their own."""
    entries = [
        {
            "name": name,
            "benchmark": {"id": "crashing", "count": 20, "mode": mode},
            "environment": {"id": "host_process"},
            "harness": {"id": "crashing", "log": str(begin.folder / f"log.{name}"), "pause": 0.1},
        }
        for name, mode in zip(REQUESTS, ("none", "fresh", "reuse"), strict=True)
    ]
    (begin.folder / "evaluations.json").write_text(json.dumps({"task_concurrency": 6, "requests": entries}))
    return begin.start("launch", "evaluations.json", "--progress", "none", "--reuse", *options)


def _executed(begin):
    logs = {name: begin.folder / f"log.{name}" for name in REQUESTS}
    return Counter(
        f"{name} {line}" for name, log in logs.items() if log.exists() for line in log.read_text().splitlines()
    )


def _has_come_to(begin, process, moment):
    return sum(_executed(begin).values()) >= moment or process.poll() is not None


def _ended_of(begin):
    found = begin.folder.glob("results/*/*/attempts/*/*/result.json")
    return {
        f"{path.parents[4].name} {path.parents[1].name} {path.parent.name}"
        for path in found
        if json.loads(path.read_text())["status"] != "cancelled"
    }


@pytest.mark.seed("LA-06", "RE-02")
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_launch_that_was_interrupted_goes_on(begin, number):
    """Wherever each of its requests was: over, in the middle, not begun."""
    for moment in (10, 25):
        process = _launch(begin)
        until(partial(_has_come_to, begin, process, moment))
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert SIGNALS[number] == process.returncode, err
        for path in begin.folder.glob("results/**/*.json"):
            json.loads(path.read_text())
    ended, before = _ended_of(begin), _executed(begin)
    assert 0 < len(ended) < 60

    process = _launch(begin)
    out, err = process.communicate(timeout=120)
    after = _executed(begin)
    record = json.loads((begin.folder / "results" / "launch.json").read_text())
    assert 0 == process.returncode, err
    assert set() == {name for name in ended if after[name] > before[name]}
    assert 60 == len(after)
    assert ["completed"] * 3 == [request["state"] for request in record["requests"]]
    assert 3 == out.count("20 tasks = 20 evaluated")
    assert [] == list(begin.folder.glob("agentcompass-*")), "a sandbox was left"


def test_two_processes_want_one_id(begin):
    """One has it; the other is refused in one line before it begins anything."""
    both = [begin("--run-id", "it") for _ in range(2)]
    said = [process.communicate(timeout=120)[1] for process in both]
    statuses = [process.returncode for process in both]
    (refused,) = [text for text, status in zip(said, statuses, strict=True) if status == 2]

    assert [0, 2] == sorted(statuses)
    assert 1 == len(refused.strip().splitlines())
    assert "output.run_id: 'it' exists in" in refused
    assert {1} == set(begin.executions().values())
    assert COUNT == len(begin.executions())
