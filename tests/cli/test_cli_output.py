"""What a run shows: its result on stdout, everything else on stderr, a live view on a terminal only."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes import until

from agentcompass.adapters.cli.main import main
from agentcompass.adapters.terminal.result import duration

SHOW_CURSOR, HIDE_CURSOR = "\x1b[?25h", "\x1b[?25l"


def test_the_result_for_people(toys):
    """Parties, status, score with its interval, counts that add up, usage, time and place: one line each."""
    usage = {"prompt_tokens": 1200, "cached_tokens": 1000, "completion_tokens": 34, "cost_usd": 0.5}
    ran = toys.run({"a": {"usage": usage}, "b": {"usage": usage, "verdict": False}})

    lines = dict(line.split(maxsplit=1) for line in ran.out.splitlines())
    assert ["run", "status", "score", "tasks", "usage", "time", "files"] == list(lines)
    assert ("toy / toy", "completed", str(ran.run_dir)) == (lines["run"], lines["status"], lines["files"])
    assert lines["score"].startswith("0.500 ")
    assert "(95 % CI " in lines["score"]
    assert "2,400 prompt tokens, 2,000 cached tokens, 68 completion tokens, $1.0000" == lines["usage"]
    assert "" == ran.err


@pytest.mark.parametrize("fate", ["ok", "fatal"])
def test_json_is_exactly_one_document(toys, fate):
    """On stdout, whatever is logged and shown on stderr."""
    ran = toys.run({"a": {"run": fate}}, "--output", "json", "--progress", "plain", "--log-level", "DEBUG", quiet=False)

    document = json.loads(ran.out)
    assert ("completed" if fate == "ok" else "failed") == document["status"]
    assert ran.document("metrics.json")["series"] == document["metrics"]["series"]
    assert {str(ran.run_dir)} == {document["paths"]["run_dir"]}
    assert {"run_id", "benchmark", "harness", "environment", "model", "headline", "counts", "error"} <= set(document)
    assert "" != ran.err


@pytest.mark.parametrize("options", [("--progress", "none", "--log-level", "ERROR"), ("--progress", "none")])
def test_the_result_is_printed_however_quiet_it_is(toys, options):
    """Silencing progress and log does not silence the answer."""
    ran = toys.run({"a": {}}, *options, quiet=False)

    assert "score    1.000" in ran.out
    assert "ERROR" in options or "INFO" in ran.err
    assert "tasks 1/1" not in ran.err


def test_plain_progress_is_lines_on_stderr(toys):
    """One per state of the run, with counts that add up; nothing that moves a cursor."""
    ran = toys.run({"a": {}, "b": {"run": "fatal"}, "c": {}}, "--progress", "plain")

    lines = [re.sub(r"\[ *[\d.]+ s\] ", "", line) for line in ran.err.splitlines()]
    assert ["running", "summarizing", "failed"] == [line.split()[0] for line in lines]
    assert lines[-1].endswith("tasks 3/3  running 0  waiting 0  failed 1  retries 0")
    assert "\x1b" not in ran.err + ran.out


def test_no_live_view_without_a_terminal(toys):
    """With `auto`, a pipe gets neither a view nor lines."""
    ran = toys.run({"a": {}}, "--progress", "auto")

    assert "" == ran.err


QUICKLY = """
import sys
from agentcompass.adapters.cli.main import main
from agentcompass.adapters.terminal import live
live.FRAMES_PER_SECOND = 50
sys.exit(main(sys.argv[1:]))
"""


def _on_a_terminal(tmp_path, toys, tasks, *options, stop=None):
    """Run the command with stderr on a pseudo-terminal; return exit code, stdout, what the terminal got."""
    ours, theirs = pty.openpty()
    run = subprocess.Popen(
        [
            sys.executable,
            "-c",
            QUICKLY,
            "run",
            *toys.words(tasks),
            "--results-dir",
            str(tmp_path / "r"),
            *options,
        ],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{tmp_path / 'site'}:{Path(__file__).parents[1]}",
            "TERM": "xterm-256color",
            "COLUMNS": "120",
        },
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        shown += data
        if stop and stop in shown.decode("utf-8", "replace"):
            run.send_signal(signal.SIGINT)
            stop = None
        if not data:
            break
    os.close(ours)
    out, _ = run.communicate(timeout=30)
    return run.returncode, out, shown.decode()


def test_the_live_view_draws_and_cleans_up(tmp_path, toys):
    """It shows counts and the active task, hides the cursor meanwhile, and leaves the terminal as it was."""
    tasks = {"first-task": {"run": "crowd:2"}, "[red]second[/red]": {"run": "fatal"}}
    status, out, shown = _on_a_terminal(tmp_path, toys, tasks, "--task-concurrency", "1")

    assert 1 == status
    assert "score" in out
    assert "\x1b" not in out
    assert "toy / toy" in shown
    assert "first-task" in shown
    assert (1, 1) == (shown.count(HIDE_CURSOR), shown.count(SHOW_CURSOR))
    assert shown.index(HIDE_CURSOR) < shown.index("first-task") < shown.index(SHOW_CURSOR)
    assert "Traceback" not in shown


def test_the_live_view_is_gone_after_an_interruption(tmp_path, toys):
    """The cursor is back, the result is printed, the exit code is 130."""
    status, out, shown = _on_a_terminal(tmp_path, toys, {"hanging": {"run": "hang"}}, stop="run_harness")

    assert (130, True) == (status, "status   cancelled: stopped by SIGINT" in out)
    assert shown.rindex(HIDE_CURSOR) < shown.rindex(SHOW_CURSOR)
    assert "Traceback" not in shown


def test_markup_in_names_is_shown_as_it_is(tmp_path, toys):
    """A task's name is no formatting."""
    _, _, shown = _on_a_terminal(tmp_path, toys, {"[red]task[/red]": {"run": "crowd:2"}})

    assert "[red]task[/red]" in shown


def test_a_reader_that_goes_away_is_no_error(tmp_path, toys):
    """`| head -0` gets no traceback."""
    words = [sys.executable, "-m", "agentcompass", "list", "--json"]
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    run.stdout.close()
    err = run.stderr.read()
    run.stderr.close()
    until(lambda: run.poll() is not None)

    assert "Traceback" not in err
    assert "Exception" not in err


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (59.9, "59.9 s"), (61, "1 min 1 s"), (3600, "1 h 0 min"), (7325, "2 h 2 min")],
)
def test_durations_are_told_as_people_tell_them(seconds, text):
    """With no more digits than matter."""
    assert text == duration(seconds)


@pytest.mark.parametrize("words", [("--version",), (), ("--help",), ("run", "--help"), ("config", "docs", "--help")])
def test_asking_for_help_is_no_mistake(capsys, words):
    """Version and help are on stdout, with exit code 0."""
    try:
        status = main(words)
    except SystemExit as left:
        status = left.code

    shown = capsys.readouterr()
    assert (0, "") == (status or 0, shown.err)
    assert shown.out.strip()
