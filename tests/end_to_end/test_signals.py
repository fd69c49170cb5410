"""SIGINT and SIGTERM in the middle of a run: everything is tidied up, and what was there is summarized."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest
from support.endpoint import Reply, serving
from support.humaneval import asked, code, right
from support.processes import Mark, until


def _start(endpoint, results, mark, *words):
    command = [sys.executable, "-m", "agentcompass", "run", "humaneval", "openai_chat", "M"]
    command += ["--model-base-url", endpoint.url, "--results-dir", str(results), "--run-id", "it", "--limit", "6"]
    return subprocess.Popen([*command, *mark.option, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _finished(results):
    return list(results.glob("**/details/*.json"))


def _hangs_after_three(body):
    number, row = asked(body)
    if number < 3:
        return right(row)
    return code("while True:\n    pass\n") if number == 3 else Reply(hang_seconds=60)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_run_in_order(tmp_path, number, status):
    """Final state, summary and exit code tell of the signal; no process is left, within the grace."""
    mark = Mark()
    with serving(_hangs_after_three) as endpoint:
        run = _start(endpoint, tmp_path, mark, "--benchmark-params", '{"test_timeout_seconds": 600}')
        until(lambda: len(_finished(tmp_path)) == 3 and mark.alive())
        sent = time.monotonic()
        run.send_signal(number)
        out, err = run.communicate(timeout=30)
        took = time.monotonic() - sent

    folder = tmp_path / "M_humaneval_openai_chat" / "it"
    info = json.loads((folder / "run_info.json").read_text())
    progress = json.loads((folder / "progress.json").read_text())
    metrics = json.loads((folder / "metrics.json").read_text())
    assert (status, "cancelled", "cancelled") == (run.returncode, info["status"], progress["status"])
    assert {"total": 6, "evaluated": 3, "unavailable": 3, "invalidated": 0, "error": 0} == metrics["series"][0][
        "counts"
    ]
    assert (6, 3, 0, {}) == tuple(
        progress[name] for name in ("total_tasks", "finished_tasks", "running_tasks", "active_tasks")
    )
    assert "6 tasks = 3 evaluated + 3 unavailable" in out
    assert "3 of 6 tasks have no value: with all of them at worst 0.5000, at best 1.0000" in out
    assert "Traceback" not in err
    assert [] == mark.alive()
    assert took < 10


def test_a_second_signal_ends_at_once(tmp_path):
    """Whoever insists is not kept waiting."""
    mark = Mark()
    with serving(lambda body: Reply(hang_seconds=60)) as endpoint:
        run = _start(endpoint, tmp_path, mark, "--harness-params", "{}")
        until(lambda: len(endpoint.requests) == 6)
        run.send_signal(signal.SIGTERM)
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=20)

    assert 143 == run.returncode


@pytest.mark.seed("TO-01")
def test_the_deadline_of_the_whole_run(tmp_path):
    """On expiry unfinished work is cancelled, the state is timed_out, and a summary says what is missing."""
    mark = Mark()
    with serving(_hangs_after_three) as endpoint:
        run = _start(
            endpoint, tmp_path, mark, "--timeout-seconds", "5", "--benchmark-params", '{"test_timeout_seconds": 600}'
        )
        out, _ = run.communicate(timeout=40)

    info = json.loads((tmp_path / "M_humaneval_openai_chat" / "it" / "run_info.json").read_text())
    assert (1, "timed_out") == (run.returncode, info["status"])
    assert "runtime.timeout_seconds" in info["error"]
    assert "unavailable" in out
    assert [] == mark.alive()


def test_a_killed_run_leaves_records_that_can_be_read(tmp_path):
    """After SIGKILL every document is whole, and the run can be summarized."""
    mark = Mark()
    with serving(_hangs_after_three) as endpoint:
        run = _start(endpoint, tmp_path, mark)
        until(lambda: len(_finished(tmp_path)) == 3)
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=20)
    mark.kill()  # nobody else does it before the machine's next run

    folder = tmp_path / "M_humaneval_openai_chat" / "it"
    for path in folder.rglob("*.json"):
        json.loads(path.read_text())
    done = subprocess.run(
        [sys.executable, "-m", "agentcompass", "summary", str(folder)], capture_output=True, text=True, check=False
    )
    assert "6 tasks = 3 evaluated + 3 unavailable + 0 invalidated" in done.stdout
    assert 0 == done.returncode
