"""A run directory read back: what is wrong is named with its place, and costs only itself."""

from __future__ import annotations

import json
import logging

import pytest

from agentcompass.adapters.stores.documents import read_document
from agentcompass.adapters.stores.saved_run import SavedRun
from agentcompass.core.errors import UsageError
from agentcompass.core.metrics.contract import binary_contract
from agentcompass.core.metrics.observation import TaskKey
from agentcompass.core.records.reading import RecordError

ATTEMPT = {"metrics": {"correct": True}, "issues": [], "retry_count": 0}
TASK = {"schema_version": "agentcompass.task.v3", "task_id": "good", "attempts": {"1": ATTEMPT}}


@pytest.fixture
def run_dir(tmp_path):
    (tmp_path / "details").mkdir()
    (tmp_path / "run_info.json").write_text('{"schema_version": "agentcompass.run_info.v3"}')
    (tmp_path / "tasks.jsonl").write_text('{"task_id": "b", "category": "x"}\n{"task_id": "a", "cluster": "c"}\n')
    (tmp_path / "details" / "good.json").write_text(json.dumps(TASK))
    return tmp_path


def test_tasks_come_in_their_order(run_dir):
    """The planned tasks are read as they were planned."""
    assert [TaskKey("b", "x"), TaskKey("a", None, "c")] == SavedRun(str(run_dir)).tasks()


def test_a_folder_without_a_run_is_refused(tmp_path):
    """Any other folder is a mistake of the request."""
    with pytest.raises(UsageError, match=r"has no run_info\.json"):
        SavedRun(str(tmp_path))


def test_a_run_without_tasks_is_refused(run_dir):
    """A run that never planned a task has nothing to be summed up."""
    (run_dir / "tasks.jsonl").unlink()

    with pytest.raises(UsageError, match=r"has no tasks\.jsonl"):
        SavedRun(str(run_dir)).tasks()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON"),
        ("[1]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('{"a": 1', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"n": ' + "9" * 5000 + "}", "not JSON"),
    ],
)
def test_a_malformed_document_is_refused_with_its_place(tmp_path, text, problem):
    """A file that holds no JSON object is named, however it came to be like that."""
    path = tmp_path / "run_info.json"
    path.write_text(text)

    with pytest.raises(RecordError, match=problem) as refused:
        read_document(path)
    assert str(path) == refused.value.where


@pytest.mark.parametrize("line", [b"\xff\xfe", b"{}", b'{"task_id": 1}', b"[]", b'{"task_id": "a", "category": []}'])
def test_a_malformed_task_is_refused_with_its_line(run_dir, line):
    """A wrong line of the plan is named by its number."""
    with (run_dir / "tasks.jsonl").open("ab") as file:
        file.write(line + b"\n")

    with pytest.raises(RecordError, match=r"tasks\.jsonl:3: "):
        SavedRun(str(run_dir)).tasks()


def test_a_broken_record_costs_only_itself(run_dir, caplog):
    """Details that cannot be read are named in the log, and the others count."""
    (run_dir / "details" / "broken.json").write_text("{")
    (run_dir / "details" / "other.json").write_text(json.dumps({**TASK, "schema_version": "agentcompass.task.v9"}))
    (run_dir / "details" / "odd.json").write_text(
        json.dumps({**TASK, "attempts": {"1": {**ATTEMPT, "metrics": {"correct": "yes"}}}})
    )
    (run_dir / "details" / "folder.json").mkdir()
    with caplog.at_level(logging.WARNING, "agentcompass.records"):
        found = list(SavedRun(str(run_dir)).observations(binary_contract()))

    assert ["good"] == [observation.task_id for observation in found]
    named = sorted(name for name in ("broken", "other", "odd", "folder") if f"{name}.json" in caplog.text)
    assert ["broken", "folder", "odd", "other"] == named


def test_unfinished_files_are_no_records(run_dir):
    """What a killed process left behind is not read."""
    (run_dir / "details" / ".half.json.tmp").write_text("{")

    assert 1 == len(list(SavedRun(str(run_dir)).observations(binary_contract())))
