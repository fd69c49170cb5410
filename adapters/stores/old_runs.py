"""The task records of a run of a former format, as documents of the present one, read one at a time."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentcompass.core.errors import AgentCompassError
from agentcompass.core.records.legacy import OldTasks, current_task

from .documents import read_document

log = logging.getLogger("agentcompass.records")


class OldRecords:
    """The records in *details*: a file per task (v1, v2), or a folder with a file per attempt (v2)."""

    def __init__(self, details: Path) -> None:
        self._details = details
        self._places: dict[str, Path] = {}
        self.known = OldTasks()
        for place, task in self._read():
            self._places[task["task_id"]] = place
            self.known.add(task)

    def __iter__(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield where each task stands, and the task."""
        for name in self._places:
            if (task := self.task(name)) is not None:
                yield str(self._places[name]), task

    def task(self, task_id: str) -> Mapping[str, Any] | None:
        """Return a task, or None if there is none."""
        place = self._places.get(task_id)
        return None if place is None else current_task(_whole(place), str(place))

    def _read(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        for place in sorted([*self._details.glob("*.json"), *self._details.glob("*/task.json")]):
            try:
                yield place, current_task(_whole(place), str(place))
            except (AgentCompassError, OSError) as exc:
                log.warning("left out: %s", exc)


def _whole(place: Path) -> Mapping[str, Any]:
    """Return the task in *place*, with the attempts that are files of their own."""
    document = read_document(place)
    attempts = document.get("attempts")
    if place.name != "task.json" or not isinstance(attempts, Mapping):
        return document
    found = {
        number: read_document(place.parent / folder / "result.json")
        for number, folder in attempts.items()
        if isinstance(folder, str) and folder == f"attempt-{number}"
    }
    return {**document, "attempts": found}
