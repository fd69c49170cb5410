"""Which tasks are run; nothing is left out in silence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentcompass.core.config.sections import parse_selection
from agentcompass.core.errors import UsageError
from agentcompass.core.model.task import Task
from agentcompass.core.selection import check_ids, select

TASKS = [
    Task("a", category="x", metadata={"repo": "r1", "deep": {"er": 1}}),
    Task("b", category="y", cluster="own", metadata={"repo": "r2"}),
    Task("c"),
]


def _selected(tasks=TASKS, **given):
    return [task.id for task in select(tasks, parse_selection(given, "b")[0])]


@pytest.mark.seed("CL-06")
@pytest.mark.parametrize(
    ("given", "ids"),
    [
        ({}, ["a", "b", "c"]),
        ({"limit": 2}, ["a", "b"]),
        ({"limit": 99}, ["a", "b", "c"]),
        ({"sample_ids": ["c", "a"]}, ["a", "c"]),
        ({"sample_ids": ["c", "c"]}, ["c"]),
        ({"sample_ids": ["c", "b"], "limit": 1}, ["b"]),
        ({"sample_ids": "b"}, ["b"]),
    ],
)
def test_tasks_keep_the_benchmarks_order(given, ids):
    """Ids choose tasks, a limit cuts the list, and neither changes the order."""
    assert ids == _selected(**given)


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"sample_ids": ["a", "bb"]}, "sample_ids", "no task is called 'bb'; did you mean 'b'?"),
        ({"sample_ids": ["zzz"]}, "sample_ids", "no task is called 'zzz'; known: a, b, c"),
        ({"sample_ids": []}, "tasks", "none is selected"),
        ({"cluster_by": "metadata.rpeo"}, "cluster_by", "no selected task has 'metadata.rpeo'"),
        ({"cluster_by": "metadata.repo.name"}, "cluster_by", "no selected task has"),
        ({"cluster_by": "repo"}, "cluster_by", "no selected task has 'repo'; give category, or metadata.NAME"),
        ({"sample_ids": ["c"], "cluster_by": "category"}, "cluster_by", "no selected task has"),
    ],
)
def test_a_selection_that_selects_nothing_is_refused(given, field, words):
    """An id that no task has, an empty choice and a cluster that is nowhere are mistakes, each named."""
    with pytest.raises(UsageError) as refused:
        _selected(**given)

    assert field == refused.value.field
    assert words in str(refused.value)


def test_many_ids_are_not_all_told():
    """Among thousands of tasks, the refusal stays short."""
    with pytest.raises(UsageError, match="no task is called 'x'; the benchmark has 500 others"):
        _selected([Task(f"t{n}") for n in range(500)], sample_ids=["x"])


def test_no_data_is_no_run():
    """A benchmark without tasks is refused, never a score over nothing."""
    with pytest.raises(UsageError, match="none is selected; check the benchmark's data"):
        _selected([])


@pytest.mark.parametrize(
    ("path", "clusters"),
    [
        (None, [None, "own", None]),
        ("category", ["x", "y", None]),
        ("cluster", [None, "own", None]),
        ("id", ["a", "b", "c"]),
        ("metadata.repo", ["r1", "r2", None]),
        ("metadata.deep.er", ["1", None, None]),
    ],
)
def test_clusters_come_from_where_the_user_says(path, clusters):
    """A path into the task takes the place of the benchmark's own clusters; tasks without it have none."""
    selection = parse_selection({"cluster_by": path}, "b")[0]

    assert clusters == [task.cluster for task in select(TASKS, selection)]


def test_selecting_changes_no_task():
    """The benchmark's own tasks stay as they are."""
    tasks = [replace(task) for task in TASKS]
    select(tasks, parse_selection({"cluster_by": "category"}, "b")[0])

    assert TASKS == tasks


@pytest.mark.parametrize("name", ["", " a", "a ", "\ta", "a\nb", "a\x00", "a\x7f", "\u3000a", None, 7])
def test_unusable_ids_are_refused(name):
    """An id is text without white space around it or control characters in it."""
    with pytest.raises(UsageError, match="task 1: the id .* rename it"):
        check_ids([Task("fine"), Task(name)])


def test_ids_are_unique():
    """Two tasks of one name would share their records."""
    with pytest.raises(UsageError, match="tasks: the id 'a' is taken more than once"):
        check_ids([Task("a"), Task("b"), Task("a")])


@pytest.mark.parametrize("name", ["a b", "任务/1", "..", "x" * 5000, "é", "%", "\ud800"])
def test_any_other_text_is_an_id(name):
    """Names are the benchmark's business; what a disk makes of them is ours."""
    assert check_ids([Task(name)]) is None
