"""A run directory read back, one document at a time."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentcompass.core.errors import AgentCompassError, UsageError
from agentcompass.core.metrics.contract import MetricContract
from agentcompass.core.metrics.observation import Observation, TaskKey
from agentcompass.core.records.reading import RecordError, observations_of, planned_task

log = logging.getLogger("agentcompass.records")


class SavedRun:
    """The run in *run_dir*.

    Raises:
        UsageError: there is none.
    """

    def __init__(self, run_dir: str) -> None:
        self.path = Path(run_dir)
        self._info_file = self.path / "run_info.json"
        if not self._info_file.is_file():
            raise UsageError("RUN_DIR", f"{run_dir!r} has no run_info.json", "give the folder of one run")
        self.info = read_document(self._info_file)

    @property
    def where(self) -> str:
        """The path of the run's own record, for messages."""
        return str(self._info_file)

    def tasks(self) -> list[TaskKey]:
        """Return the planned tasks.

        Raises:
            UsageError: the run never got as far as planning them.
        """
        path = self.path / "tasks.jsonl"
        if not path.is_file():
            raise UsageError("RUN_DIR", f"{str(self.path)!r} has no tasks.jsonl", "the run ended before it had tasks")
        found = []
        with path.open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                found.append(planned_task(_object(line, f"{path}:{number}"), f"{path}:{number}"))
        return found

    def observations(self, contract: MetricContract) -> Iterator[Observation]:
        """Yield what is known of every finished task; a record that cannot be read is named, and costs itself only."""
        for path in sorted((self.path / "details").glob("*.json")):
            try:
                yield from observations_of(read_document(path), contract, str(path))
            except (AgentCompassError, OSError) as exc:
                log.warning("left out: %s", exc)


def read_document(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in *path*.

    Raises:
        RecordError: it holds none.
    """
    return _object(path.read_text(encoding="utf-8", errors="replace"), str(path))


def _object(text: str, where: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise RecordError(where, f"not JSON ({exc})") from None
    if not isinstance(document, dict):
        raise RecordError(where, "not a JSON object")
    return document
