"""Which of a benchmark's tasks are run; nothing is left out in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .errors import UsageError, nearest
from .model.request import TaskSelection
from .model.task import Task


def check_ids(tasks: Sequence[Task]) -> None:
    """Refuse tasks without a usable id of their own.

    Raises:
        UsageError: an id is empty, has white space around it, holds control characters, or is taken twice.
    """
    for index, task in enumerate(tasks):
        if not isinstance(task.id, str) or not task.id or task.id != task.id.strip():
            raise UsageError(f"task {index}", f"the id {task.id!r} is empty or has white space around it", "rename it")
        if any(ord(character) < 32 or ord(character) == 127 for character in task.id):
            raise UsageError(f"task {index}", f"the id {task.id!r} has control characters", "rename it")
    twice = [name for name, times in Counter(task.id for task in tasks).items() if times > 1]
    if twice:
        raise UsageError("tasks", f"the id {twice[0]!r} is taken more than once", "ids must be unique")


def select(tasks: Sequence[Task], selection: TaskSelection) -> list[Task]:
    """Return the selected tasks in the benchmark's own order, with the cluster that the user asked for.

    Raises:
        UsageError: a task id is unusable, a wanted id is no task's, nothing is selected, or no task has a cluster.
    """
    check_ids(tasks)
    chosen = list(tasks)
    if selection.sample_ids is not None:
        known = {task.id for task in tasks}
        for name in selection.sample_ids:
            if name not in known:
                some = known if len(known) <= 20 else ()
                advice = nearest(name, some) if some else f"the benchmark has {len(known)} others"
                raise UsageError("sample_ids", f"no task is called {name!r}", advice)
        wanted = set(selection.sample_ids)
        chosen = [task for task in tasks if task.id in wanted]
    chosen = chosen[: selection.limit]
    if not chosen:
        raise UsageError("tasks", "none is selected", "check the benchmark's data, sample_ids and limit")
    return _clustered(chosen, selection.cluster_by) if selection.cluster_by else chosen


def _clustered(tasks: Sequence[Task], path: str) -> list[Task]:
    clustered = [replace(task, cluster=_cluster(task, path)) for task in tasks]
    if all(task.cluster is None for task in clustered):
        raise UsageError("cluster_by", f"no selected task has {path!r}", "give category, or metadata.NAME")
    return clustered


def _cluster(task: Task, path: str) -> str | None:
    value: Any = {"category": task.category, "cluster": task.cluster, "id": task.id, "metadata": task.metadata}
    for step in path.split("."):
        value = value.get(step) if hasattr(value, "get") else None
    return None if value is None else str(value)
