"""A store that keeps the records of a run in memory, and fails where it is told to."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from agentcompass.core.records.jsonable import jsonable
from agentcompass.ports.store import Document, RunStore


class MemoryStore(RunStore):
    """What a run has recorded, as it would be read back: strict JSON, apart from what the caller still holds.

    *broken* says which methods raise which error; it may be changed at any time.
    """

    def __init__(self, broken: Mapping[str, OSError] | None = None) -> None:
        self.broken = dict(broken or {})
        self.events: list[Any] = []
        self.plans: list[Any] = []
        self.progress: Any = None
        self.run_info: Any = None
        self.params: Any = None
        self.tasks: list[Any] = []
        self.attempts: dict[tuple[str, int], Any] = {}
        self.trajectories: dict[tuple[str, int], Any] = {}
        self.retries: dict[str, Any] = {}
        self.checkpoints: dict[tuple[str, int], Any] = {}
        self.spent: dict[tuple[str, int], Any] = {}
        self.details: dict[tuple[str, bool], Any] = {}
        self.metrics: Any = None
        self.summary: str | None = None
        self.folders: dict[tuple[str, int], str] = {}
        self.resources: dict[str, Any] = {}
        self.closed = False

    @property
    def paths(self) -> Mapping[str, str]:
        """Nowhere, but with a name for messages."""
        return {"run_dir": "memory:"}

    def _kept(self, method: str, document: Any) -> Any:
        if method in self.broken:
            raise self.broken[method]
        return json.loads(json.dumps(jsonable(document), allow_nan=False))

    def append_events(self, documents: Sequence[Document]) -> None:
        """Add events."""
        self.events.extend(self._kept("append_events", documents))

    def append_plan(self, task_id: str, attempt: int, document: Document) -> None:
        """Add one plan."""
        line = {"task_id": task_id, "attempt": attempt, "plan": document}
        self.plans.append(self._kept("append_plan", line))

    async def save_progress(self, document: Document) -> None:
        """Replace the snapshot."""
        self.progress = self._kept("save_progress", document)

    async def save_run_info(self, document: Document) -> None:
        """Replace the record of the run."""
        self.run_info = self._kept("save_run_info", document)

    async def save_params(self, document: Document) -> None:
        """Replace the parameters."""
        self.params = self._kept("save_params", document)

    async def save_tasks(self, documents: Sequence[Document]) -> None:
        """Replace the planned tasks."""
        self.tasks = self._kept("save_tasks", documents)

    async def save_attempt(self, task_id: str, attempt: int, document: Document, trajectory: Document | None) -> None:
        """Keep a final attempt."""
        kept, steps = self._kept("save_attempt", document), self._kept("save_attempt", trajectory)
        self.attempts[task_id, attempt] = kept
        if trajectory is not None:
            self.trajectories[task_id, attempt] = steps

    async def save_checkpoint(self, task_id: str, attempt: int, document: Document) -> None:
        """Keep what is about to be graded."""
        self.checkpoints[task_id, attempt] = self._kept("save_checkpoint", document)

    async def save_retry(self, task_id: str, attempt: int, retry: int, stage: str, document: Document) -> str:
        """Keep a replaced execution."""
        path = f"{task_id}/{attempt}/{retry}.{stage}"
        self.retries[path] = self._kept("save_retry", document)
        return path

    async def save_task(self, task_id: str, failed: bool, document: Document) -> None:
        """Keep a finished task."""
        self.details[task_id, failed] = self._kept("save_task", document)

    async def save_report(self, metrics: Document, summary: str) -> None:
        """Keep the numbers."""
        self.metrics, self.summary = self._kept("save_report", metrics), summary

    async def reserve_artifacts(self, task_id: str, attempt: int) -> str:
        """Make a folder that the system forgets some time."""
        self._kept("reserve_artifacts", None)
        return self.folders.setdefault((task_id, attempt), tempfile.mkdtemp(prefix="agentcompass-test-"))

    def save_spent(self, task_id: str, attempt: int, document: Document) -> None:
        """Keep what was consumed in vain."""
        self.spent[task_id, attempt] = self._kept("save_spent", document)

    def record_resource(self, name: str, document: Document) -> None:
        """Keep a record."""
        self.resources[name] = self._kept("record_resource", document)

    def drop_resource(self, name: str) -> None:
        """Forget it."""
        self.resources.pop(name, None)

    async def close(self) -> None:
        """Note that nothing more is to come."""
        self.closed = True
