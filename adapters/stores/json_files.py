"""A run as a folder of JSON files, each replaced whole or only added to.

Documents go to a temporary file, are synced, and take the old one's place; the streams get one write per line. A kill
at any instant leaves every document readable. Writing happens in a few threads, so the event loop never waits.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from agentcompass.core.errors import UsageError
from agentcompass.core.records.jsonable import jsonable
from agentcompass.core.records.names import safe_name, task_file_name
from agentcompass.ports.store import Document

_WRITERS = 4


class JsonRunStore:
    """The run directory *run_dir*, which exists."""

    def __init__(self, run_dir: Path) -> None:
        self._dir = run_dir
        self._pool = ThreadPoolExecutor(_WRITERS, thread_name_prefix="agentcompass-store")
        self._streams: dict[str, int] = {}
        self._order = asyncio.Lock()  # of the documents that are replaced again and again
        self._made: set[Path] = set()

    @property
    def paths(self) -> Mapping[str, str]:
        """Where things are."""
        names = ("run_info.json", "metrics.json", "summary.md", "progress.json", "progress.jsonl", "run.log", "details")
        return {
            "run_dir": str(self._dir),
            **{
                name.partition(".")[0] if name != "progress.jsonl" else "events": str(self._dir / name)
                for name in names
            },
        }

    def append_event(self, document: Document) -> None:
        """Add one line to ``progress.jsonl``."""
        self._append("progress.jsonl", document)

    def append_plan(self, task_id: str, attempt: int, document: Document) -> None:
        """Add one line to ``plans.jsonl``."""
        self._append("plans.jsonl", {"task_id": task_id, "attempt": attempt, "plan": document})

    def _append(self, name: str, document: Document) -> None:
        stream = self._streams.get(name)
        if stream is None:
            stream = os.open(self._dir / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._streams[name] = stream
        line = dumps(document) + b"\n"
        if os.write(stream, line) < len(line):  # a full disk: end the torn line, so that it stays the only one
            os.write(stream, b"\n")

    async def save_progress(self, document: Document) -> None:
        """Replace ``progress.json``; not synced, since the stream can make it again."""
        await self._replace("progress.json", dumps(document, indent=2), sync=False)

    async def save_run_info(self, document: Document) -> None:
        """Replace ``run_info.json``."""
        await self._replace("run_info.json", dumps(document, indent=2))

    async def save_params(self, document: Document) -> None:
        """Replace ``params.json``."""
        await self._replace("params.json", dumps(document, indent=2))

    async def save_report(self, metrics: Document, summary: str) -> None:
        """Replace ``metrics.json`` and ``summary.md``."""
        await self._replace("metrics.json", dumps(metrics, indent=2))
        await self._replace("summary.md", summary.encode("utf-8", "replace"))

    async def save_attempt(self, task_id: str, attempt: int, document: Document, trajectory: Document | None) -> None:
        """Save ``attempts/<task>/<n>/result.json``, after the trajectory that it speaks of."""
        folder = self._attempt(task_id, attempt)
        await self._in_thread(self._save_attempt, folder, document, trajectory)

    def _save_attempt(self, folder: Path, document: Document, trajectory: Document | None) -> None:
        self._make(folder)
        if trajectory is not None:
            replace_file(folder / "trajectory.json", dumps(trajectory, indent=2))
        replace_file(folder / "result.json", dumps(document))

    async def save_retry(self, task_id: str, attempt: int, retry: int, stage: str, document: Document) -> str:
        """Save ``attempts/<task>/<n>/retries/<retry>.<stage>.json``."""
        path = self._attempt(task_id, attempt) / "retries" / f"{retry}.{safe_name(stage)}.json"

        def save() -> None:
            self._make(path.parent)
            replace_file(path, dumps(document, indent=2))

        await self._in_thread(save)
        return str(path.relative_to(self._dir))

    async def save_task(self, task_id: str, failed: bool, document: Document) -> None:
        """Save ``details/<task>.json``, or ``details/_error_<task>.json`` for a task that failed."""
        name = task_file_name(task_id)

        def save() -> None:
            self._make(self._dir / "details")
            replace_file(self._dir / "details" / f"{'_error_' if failed else ''}{name}.json", dumps(document))

        await self._in_thread(save)

    async def close(self) -> None:
        """Finish pending writes and close the streams."""
        await asyncio.get_running_loop().run_in_executor(None, self._pool.shutdown)
        for stream in self._streams.values():
            os.close(stream)
        self._streams.clear()

    def _attempt(self, task_id: str, attempt: int) -> Path:
        return self._dir / "attempts" / task_file_name(task_id) / str(attempt)

    def _make(self, folder: Path) -> None:
        if folder not in self._made:
            folder.mkdir(parents=True, exist_ok=True)
            if folder.name == "details":
                self._made.add(folder)

    async def _replace(self, name: str, data: bytes, sync: bool = True) -> None:
        async with self._order:
            await self._in_thread(replace_file, self._dir / name, data, sync)

    async def _in_thread(self, function: Callable[..., None], *args: Any) -> None:
        await asyncio.get_running_loop().run_in_executor(self._pool, function, *args)


def dumps(document: Any, indent: int | None = None) -> bytes:
    """Return *document* as JSON in UTF-8; what JSON cannot hold becomes text, lone surrogates become escapes."""
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=indent)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(jsonable(document), ensure_ascii=False, allow_nan=False, indent=indent)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(jsonable(document), ensure_ascii=True, allow_nan=False, indent=indent).encode("ascii")


def replace_file(path: Path, data: bytes, sync: bool = True) -> None:
    """Put *data* in the place of *path*, whole or not at all."""
    temporary = f"{path.parent}/.{path.name}.tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except OSError:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise


def reserve(results_dir: str, levels: tuple[str, ...], run_id: str, exact: bool) -> Path:
    """Make the folder of a new run, which nobody else can have at the same time.

    Without *exact*, an id that is taken gets a number after it.

    Raises:
        UsageError: the results folder cannot be written, or the id is taken.
    """
    parent = Path(results_dir, *levels).absolute()
    name = run_id
    for number in range(2, 10_000):
        try:
            parent.mkdir(parents=True, exist_ok=True)
            (parent / name).mkdir()
        except FileExistsError:
            if exact:
                raise UsageError("output.run_id", f"{run_id!r} exists in {parent}", "choose another") from None
            name = f"{run_id}_{number}"
        except OSError as exc:
            raise UsageError(
                "runtime.results_dir", f"{results_dir!r} cannot be written ({exc.strerror})", "choose another folder"
            ) from None
        else:
            return parent / name
    raise UsageError("output.run_id", f"{run_id!r} is taken too often in {parent}", "choose another")
