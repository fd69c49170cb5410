"""Many tasks at once, interrupted in every way: the next run executes what is left, and nothing that had ended."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter

import pytest
from support.crashing import ENTRY_POINTS
from support.processes import until
from support.toys import install

COUNT, CONCURRENCY, PAUSE = 80, 20, 0.2
SIGNALS = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}


@pytest.fixture
def begin(tmp_path, monkeypatch):
    """Return a function that starts a run of all tasks in a process of its own."""
    install(tmp_path / "site", monkeypatch, "crashing", ENTRY_POINTS)
    folder = tmp_path / "work"
    folder.mkdir()
    path = os.pathsep.join([str(tmp_path / "site"), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder)}

    def start(*options):
        words = [sys.executable, "-m", "agentcompass", "run", "crashing", "crashing"]
        words += ["--benchmark-params", json.dumps({"count": COUNT, "mode": "none"})]
        words += ["--harness-params", json.dumps({"log": str(folder / "log"), "pause": PAUSE})]
        words += ["--task-concurrency", str(CONCURRENCY), "--progress", "none", *options]
        return subprocess.Popen(
            words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    start.folder = folder
    return start


def _executions(folder):
    log = folder / "log"
    return Counter(log.read_text().splitlines()) if log.exists() else Counter()


def _ended(folder):
    """The attempts that are final: theirs is a result that was not cut short."""
    found = folder.glob("results/*/*/attempts/*/*/result.json")
    return {
        f"{path.parents[1].name} {path.parent.name}"
        for path in found
        if json.loads(path.read_text())["status"] != "cancelled"
    }


def _interrupt(begin, number, moment, *options):
    """Start a run, and send the signal when *moment* more executions have begun; return what had ended by its end."""
    before = sum(_executions(begin.folder).values())
    process = begin(*options)
    until(lambda: sum(_executions(begin.folder).values()) >= before + moment or process.poll() is not None)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert SIGNALS[number] == process.returncode
    for path in begin.folder.glob("results/**/*.json"):
        json.loads(path.read_text())
    return _ended(begin.folder)


def _completed(begin, ended):
    """Continue to the end: nothing that had ended runs again, and the score is that of an undisturbed run."""
    before = _executions(begin.folder)
    process = begin("--reuse")
    out, err = process.communicate(timeout=120)
    after = _executions(begin.folder)

    assert 0 == process.returncode, err
    assert set() == {name for name in ended if after[name] > before[name]}
    assert COUNT == len(after)
    assert f"{COUNT} tasks = {COUNT} evaluated" in out
    assert "0.5000" in out
    assert [] == list(begin.folder.glob("agentcompass-*")), "a sandbox was left"
    newest = max(begin.folder.glob("results/*/*/run_info.json"), key=os.path.getmtime).parent
    assert [] == list(newest.glob("resources/*"))


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


def test_two_processes_want_one_id(begin):
    """One has it; the other is refused in one line before it begins anything."""
    both = [begin("--run-id", "it") for _ in range(2)]
    said = [process.communicate(timeout=120)[1] for process in both]
    statuses = [process.returncode for process in both]
    (refused,) = [text for text, status in zip(said, statuses, strict=True) if status == 2]

    assert [0, 2] == sorted(statuses)
    assert 1 == len(refused.strip().splitlines())
    assert "output.run_id: 'it' exists in" in refused
    assert {1} == set(_executions(begin.folder).values())
    assert COUNT == len(_executions(begin.folder))
