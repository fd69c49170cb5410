"""From a folder of tasks, one task or a registry to tasks, and to what is wrong with the rest."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentcompass.core.errors import UsageError
from agentcompass.core.model.task import Finding

from . import registry
from .files import error
from .folder import inspect
from .values import HarborTask

_CONFIGS = ("task.toml", "task.yaml")
_SKIPPED = ("__pycache__", "node_modules")


@dataclass(frozen=True, slots=True)
class Loaded:
    """The tasks of a data set, all findings about them, and the folders that are none."""

    tasks: Sequence[HarborTask]
    findings: Sequence[Finding]
    rejected: Sequence[str]
    folders: Sequence[str]


def load(path: str, dataset: str | None = None, data_dir: str = "data", *, warn: bool = False) -> Loaded:
    """Read every task at *path*; warnings are only looked for if asked to *warn*.

    Raises:
        UsageError: there is nothing there to be read.
    """
    folders = list(_folders(os.path.abspath(path), dataset, data_dir))
    if not folders:
        raise UsageError("benchmarks.harbor.tasks_dir", f"{path} holds no tasks", "name a folder of task folders")
    tasks: list[HarborTask] = []
    findings: list[Finding] = []
    rejected: list[str] = []
    names: dict[str, str] = {}
    for folder in folders:
        found = inspect(folder, warn=warn)
        findings.extend(found.findings)
        task = found.task
        if task is not None and task.name in names:
            findings.append(error(folder, f"has the name of {names[task.name]}: {task.name}"))
            task = None
        if task is None:
            rejected.append(folder)
        else:
            names[task.name] = folder
            tasks.append(task)
    return Loaded(tasks, findings, rejected, folders)


def _folders(path: str, dataset: str | None, data_dir: str) -> Iterator[str]:
    if os.path.isfile(path) and path.endswith(".json"):
        yield from registry.folders(path, dataset, data_dir)
        return
    if not os.path.isdir(path):
        mend = "name a folder of tasks, one task, or a registry.json"
        raise UsageError("benchmarks.harbor.tasks_dir", f"{path} is no folder", mend)
    if dataset:
        raise UsageError("benchmarks.harbor.dataset", f"{path} is no registry", "leave it out")
    if any(os.path.lexists(os.path.join(path, name)) for name in _CONFIGS):
        yield path
        return
    with os.scandir(path) as entries:
        found = [entry.name for entry in entries if entry.is_dir() and not _is_skipped(entry.name)]
    yield from (os.path.join(path, name) for name in sorted(found))


def _is_skipped(name: str) -> bool:
    """Tell whether a folder beside the tasks is that of a tool."""
    return name.startswith(".") or name in _SKIPPED
