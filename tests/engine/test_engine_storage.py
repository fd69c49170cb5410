"""A place for results that fills up in the middle: the run fails with one clear line, and what was saved stays."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

STORE = "agentcompass.adapters.stores.json_files.os"


class _Failing:
    """Stands for the module ``os`` in the store: a function works so many times, then the disk is full."""

    def __init__(self, name, works):
        self._name, self._left = name, works

    def __getattr__(self, name):
        return self._call if name == self._name else getattr(os, name)

    def _call(self, *args, **kwargs):
        self._left -= 1
        if self._left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return getattr(os, self._name)(*args, **kwargs)


def _whole(run_dir):
    """Assert that every document that is there can be read."""
    for path in run_dir.rglob("*.json"):
        json.loads(path.read_text("utf-8"))
    assert [] == list(run_dir.rglob("*.tmp"))


@pytest.mark.parametrize("works", [0, 1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("function", ["fsync", "replace", "write"])
def test_a_disk_that_fills_up_fails_the_run(toys, monkeypatch, tmp_path, function, works):
    """Exit code 1, one line that names the cause, sandboxes closed; every saved document is whole."""
    monkeypatch.setattr(STORE, _Failing(function, works))
    tasks = {f"t{number}": {"answer": "x" * 100} for number in range(8)}
    ran = toys.run(tasks, "--run-id", "it", "--task-concurrency", "1", "--log-level", "CRITICAL", quiet=False)

    said = [line for line in (ran.out + ran.err).splitlines() if "No space left on device" in line]
    assert (1, 1) == (ran.status, len(said))
    assert said[0].startswith(("status   failed: ", "error: "))
    assert "Traceback" not in ran.out + ran.err
    assert [] == toys.board.open
    _whole(tmp_path / "results")


def test_after_the_failure_nothing_more_is_started(toys, monkeypatch):
    """Work whose results cannot be kept is not paid for."""
    original = "agentcompass.adapters.stores.json_files.JsonRunStore.save_attempt"

    async def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(original, full)
    ran = toys.run({f"t{number}": {} for number in range(20)}, "--task-concurrency", "1")

    info = ran.document("run_info.json")
    assert (1, "failed") == (ran.status, info["status"])
    assert "results could not be written: [Errno 28] No space left on device" in info["error"]
    assert ["t0"] == [task for step, task in toys.board.did if step == "run"]
    assert "20 tasks = 0 evaluated + 20 unavailable" in ran.out


def test_what_was_saved_can_be_summarized(toys, monkeypatch, capsys):
    """The tasks that were finished before count; the others are unavailable."""
    from agentcompass.adapters.cli.main import main
    from agentcompass.adapters.stores.json_files import JsonRunStore

    original, seen = JsonRunStore.save_attempt, []

    async def filling(self, task_id, *rest):
        seen.append(task_id)
        if len(seen) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        await original(self, task_id, *rest)

    monkeypatch.setattr(JsonRunStore, "save_attempt", filling)
    ran = toys.run({f"t{number}": {} for number in range(5)}, "--task-concurrency", "1")
    status = main(["summary", str(ran.run_dir)])

    assert (1, 0) == (ran.status, status)
    assert "5 tasks = 2 evaluated + 3 unavailable + 0 invalidated" in capsys.readouterr().out


@pytest.mark.parametrize("size", [2_000, 60_000])
def test_a_limit_of_the_system_on_the_size_of_files(tmp_path, toys, size):
    """Real writes that are refused, the log's included: no traceback, and a line that says why."""
    tasks = {"a": {"answer": "x" * 100_000}, "b": {}}
    words = ["run", *toys.words(tasks), "--results-dir", str(tmp_path / "limited"), "--task-concurrency", "1"]
    done = subprocess.run(
        [sys.executable, "-B", "-m", "agentcompass", *words],  # the limit would tear byte code too
        env={"PYTHONPATH": f"{tmp_path / 'site'}:{Path(__file__).parents[1]}"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        capture_output=True,
        text=True,
        check=False,
    )

    assert 1 == done.returncode, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "File too large" in done.stdout + done.stderr
    _whole(tmp_path / "limited")
