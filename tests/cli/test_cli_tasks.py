"""``agentcompass tasks``: what is wrong with tasks, by reading them and by trying them."""

from __future__ import annotations

import json
import os

import pytest
from support.harbor_tasks import HAS_BWRAP, write_task

from agentcompass.adapters.cli.main import main

needs_bubblewrap = pytest.mark.skipif(not HAS_BWRAP and not os.environ.get("CI"), reason="no bubblewrap here")
CHECKED = "test -e /app/done && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt\n"


@pytest.fixture
def tasks(tmp_path, capsys):
    """Return a function that runs ``agentcompass tasks ...`` on a folder; gives status, stdout and stderr."""

    def run(what, *words):
        status = main(["tasks", what, str(tmp_path / "tasks"), *words])
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run


def test_right_tasks_have_no_errors(tasks, tmp_path):
    """And the command says so."""
    write_task(tmp_path / "tasks" / "good")
    status, out, _ = tasks("lint")

    assert 0 == status
    assert out.splitlines()[-1].startswith("0 errors, ")


def test_wrong_tasks_are_named_with_file_line_and_reason(tasks, tmp_path):
    """As lines, and as a document."""
    write_task(tmp_path / "tasks" / "bad", {"task.toml": 'schema_version = "1.4"\n[agent]\ntimeout_sec = "soon"\n'})
    status, out, _ = tasks("lint")
    document = json.loads(tasks("lint", "--json")[1])

    assert 1 == status
    assert "task.toml:3: error: " in out
    assert ["error"] == [entry["severity"] for entry in document if "timeout_sec" in entry["message"]]


def test_a_benchmark_that_reads_no_folders_is_refused(tasks):
    """Naming one that does."""
    status, _, err = tasks("lint", "--benchmark", "humaneval")

    assert 2 == status
    assert "--benchmark: 'humaneval' reads no folder of tasks; use harbor" in err


def test_nothing_is_run_that_cannot_be_read(tasks, tmp_path):
    """The check begins with the errors of the linter."""
    write_task(tmp_path / "tasks" / "bad", {"tests/test.sh": None})
    status, out, _ = tasks("check", "--env", "bubblewrap", "--results-dir", str(tmp_path / "results"))

    assert 1 == status
    assert "error" in out
    assert not (tmp_path / "results").exists()


@needs_bubblewrap
def test_the_solution_must_pass_and_nothing_must_not(tasks, tmp_path):
    """A task whose tests always pass is wrong, and so is one whose solution fails."""
    for name, files in {
        "fine": {"tests/test.sh": f"#!/bin/bash\n{CHECKED}"},
        "gift": {},
        "hard": {"tests/test.sh": f"#!/bin/bash\n{CHECKED}", "solution/solve.sh": "#!/bin/bash\ntrue\n"},
    }.items():
        write_task(tmp_path / "tasks" / name, files)
    words = ["--env", "bubblewrap", "--results-dir", str(tmp_path / "results"), "--progress", "none"]
    status, out, _ = tasks("check", *words)
    lines = {line.split()[1]: line.split()[0] for line in out.splitlines()}

    assert 1 == status
    assert {"fine": "ok", "gift": "WRONG", "hard": "WRONG"} == lines
