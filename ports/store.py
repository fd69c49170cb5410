"""Where the records of a run go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

Document = Mapping[str, Any]


class RunStore(Protocol):
    """The place of one run. Documents are JSON objects of the schemas in `schemas/`, already redacted.

    A `save_*` has happened when it returns: whole, or not at all and raising OSError. Only `append_events` and
    `save_progress` may lose the last moments before a crash.
    """

    @property
    def paths(self) -> Mapping[str, str]:
        """Where things are, for people: `run_dir` and what else there is."""
        ...

    def append_events(self, documents: Sequence[Document]) -> None:
        """Add events to the stream, in order; must not block."""
        ...

    def append_plan(self, task_id: str, attempt: int, document: Document) -> None:
        """Add one resolved plan; must not block."""
        ...

    async def save_progress(self, document: Document) -> None:
        """Replace the progress snapshot."""
        ...

    async def save_run_info(self, document: Document) -> None:
        """Replace the record of the run."""
        ...

    async def save_params(self, document: Document) -> None:
        """Replace the parameters that a summary needs."""
        ...

    async def save_tasks(self, documents: Sequence[Document]) -> None:
        """Save the list of planned tasks, in order."""
        ...

    async def save_attempt(self, task_id: str, attempt: int, document: Document, trajectory: Document | None) -> None:
        """Save a final attempt."""
        ...

    async def save_checkpoint(self, task_id: str, attempt: int, document: Document) -> None:
        """Save what is about to be graded; may lose the last moments before the machine goes down."""
        ...

    async def save_retry(self, task_id: str, attempt: int, retry: int, stage: str, document: Document) -> str:
        """Save an execution that is about to be replaced, and return its path, relative to the run.

        Its artifacts move along, unless the document's `scope` says that they are to be graded again.
        """
        ...

    async def save_task(self, task_id: str, failed: bool, document: Document) -> None:
        """Save a finished task."""
        ...

    async def save_report(self, metrics: Document, summary: str) -> None:
        """Save the numbers and their readable form."""
        ...

    async def reserve_artifacts(self, task_id: str, attempt: int) -> str:
        """Return the folder, on this machine, for the artifacts of an attempt; make it if needed."""
        ...

    def adopt_attempt(self, task_id: str, attempt: int, folder: str) -> None:
        """Take over a final attempt of another run from its *folder*; blocks, and leaves the source as it is."""
        ...

    def adopt_checkpoint(self, task_id: str, attempt: int, folder: str) -> str:
        """Take over the checkpoint of an attempt of another run, and its artifacts; return their folder; blocks."""
        ...

    def save_spent(self, task_id: str, attempt: int, document: Document) -> None:
        """Save what earlier runs have consumed in vain on an attempt that is executed again; blocks."""
        ...

    def adopt_task(self, task_id: str, path: str) -> None:
        """Take over a finished task of another run, whose attempts have been adopted, from its document; blocks."""
        ...

    def record_resource(self, name: str, document: Document) -> None:
        """Save what is about to exist outside; it has happened when this returns."""
        ...

    def drop_resource(self, name: str) -> None:
        """Remove the record *name*, if it is there: what it speaks of is gone."""
        ...

    async def close(self) -> None:
        """Finish pending writes."""
        ...
