"""A run as a folder of JSON files, each replaced whole or only added to.

Documents go to a temporary file, are synced, and take the old one's place; the streams get one write per line. A kill
at any instant leaves every document readable. Writing happens in a thread of its own, so the event loop never waits.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agentcompass.core.errors import UsageError
from agentcompass.core.records.jsonable import jsonable
from agentcompass.core.records.names import safe_name, task_file_name
from agentcompass.ports.store import Document

from .links import link_file, link_tree
from .writer import Writer

#: What there is in a run directory, by the role that a result names it with.
FILES = {
    "run_info": "run_info.json",
    "params": "params.json",
    "tasks": "tasks.jsonl",
    "plans": "plans.jsonl",
    "progress": "progress.json",
    "events": "progress.jsonl",
    "details": "details",
    "attempts": "attempts",
    "resources": "resources",
    "metrics": "metrics.json",
    "summary": "summary.md",
    "log": "run.log",
}


class JsonRunStore:
    """The run directory *run_dir*, which exists."""

    def __init__(self, run_dir: Path) -> None:
        self._dir = run_dir
        self._writer = Writer()
        self._streams: dict[str, int] = {}
        self._torn: set[str] = set()  # streams whose last line could not be written whole
        self._made: set[str] = set()

    @property
    def paths(self) -> Mapping[str, str]:
        """Where things are."""
        return {"run_dir": str(self._dir), **{role: str(self._dir / name) for role, name in FILES.items()}}

    def append_events(self, documents: Sequence[Document]) -> None:
        """Add a line each to ``progress.jsonl``."""
        self._append("progress.jsonl", documents)

    def append_plan(self, task_id: str, attempt: int, document: Document) -> None:
        """Add one line to ``plans.jsonl``."""
        self._append("plans.jsonl", [{"task_id": task_id, "attempt": attempt, "plan": document}])

    def _append(self, name: str, documents: Sequence[Document]) -> None:
        stream = self._streams.get(name)
        if stream is None:
            stream = os.open(self._dir / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._streams[name] = stream
        lines = (b"\n" if name in self._torn else b"") + b"".join(dumps(document) + b"\n" for document in documents)
        written = os.write(stream, lines)
        if written == len(lines):
            self._torn.discard(name)
        else:  # the next line will end this one first, so that it stays the only one that is lost
            self._torn |= {name} if written else set()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)

    async def save_progress(self, document: Document) -> None:
        """Replace ``progress.json``; not synced, since the stream can make it again."""
        await self._replace("progress.json", dumps(document), sync=False)

    async def save_run_info(self, document: Document) -> None:
        """Replace ``run_info.json``; its plans are a line per task, since there may be very many."""
        await self._replace("run_info.json", _with_lines(document, "resolved_execution_plans"))

    async def save_params(self, document: Document) -> None:
        """Replace ``params.json``."""
        await self._replace("params.json", dumps(document, indent=2))

    async def save_tasks(self, documents: Sequence[Document]) -> None:
        """Save ``tasks.jsonl``, a line per planned task."""
        await self._replace("tasks.jsonl", b"".join(dumps(document) + b"\n" for document in documents))

    async def save_report(self, metrics: Document, summary: str) -> None:
        """Replace ``metrics.json`` and ``summary.md``."""
        await self._replace("metrics.json", dumps(metrics, indent=2))
        await self._replace("summary.md", summary.encode("utf-8", "replace"))

    async def save_attempt(self, task_id: str, attempt: int, document: Document, trajectory: Document | None) -> None:
        """Save ``attempts/<task>/<n>/result.json``, after the trajectory that it speaks of."""
        await self._in_thread(self._save_attempt, task_id, attempt, document, trajectory)

    def _save_attempt(self, task_id: str, attempt: int, document: Document, trajectory: Document | None) -> None:
        folder = self._make("attempts", for_disk(task_file_name(task_id)), str(attempt))
        if trajectory is not None:
            replace_file(f"{folder}/trajectory.json", dumps(trajectory, indent=2))
        replace_file(f"{folder}/result.json", dumps(document))

    async def save_checkpoint(self, task_id: str, attempt: int, document: Document) -> None:
        """Save ``attempts/<task>/<n>/checkpoint.json``; not synced, since only a running machine can go on with it."""

        def save() -> None:
            folder = self._make("attempts", for_disk(task_file_name(task_id)), str(attempt))
            replace_file(f"{folder}/checkpoint.json", dumps(document), sync=False)

        await self._in_thread(save)

    async def save_retry(self, task_id: str, attempt: int, retry: int, stage: str, document: Document) -> str:
        """Save ``attempts/<task>/<n>/retries/<retry>.<stage>.json``."""
        parts, name = (
            ("attempts", for_disk(task_file_name(task_id)), str(attempt), "retries"),
            f"{retry}.{safe_name(stage)}.json",
        )

        def save() -> None:
            folder = self._make(*parts)
            attempt_folder, own = os.path.dirname(folder), document.get("scope") != "evaluate"
            with contextlib.suppress(FileNotFoundError):
                if own:  # what it saved is not what will be graded; until the record is there, it alone tells the cost
                    os.rename(f"{attempt_folder}/checkpoint.json", f"{folder}/{retry}.checkpoint.json")
            replace_file(f"{folder}/{name}", dumps(document, indent=2))
            if own:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{folder}/{retry}.checkpoint.json")
                with contextlib.suppress(FileNotFoundError):
                    os.rename(f"{attempt_folder}/artifacts", f"{folder}/{retry}.artifacts")

        await self._in_thread(save)
        return "/".join((*parts, name))

    async def save_task(self, task_id: str, failed: bool, document: Document) -> None:
        """Save ``details/<task>.json``, or ``details/_error_<task>.json`` for a task that failed."""
        name = f"{'_error_' if failed else ''}{for_disk(task_file_name(task_id))}.json"

        def save() -> None:
            replace_file(f"{self._make('details')}/{name}", dumps(document))

        await self._in_thread(save)

    async def reserve_artifacts(self, task_id: str, attempt: int) -> str:
        """Make ``attempts/<task>/<n>/artifacts/``."""
        parts = ("attempts", for_disk(task_file_name(task_id)), str(attempt), "artifacts")
        await self._in_thread(self._make, *parts)
        return "/".join((str(self._dir), *parts))

    def adopt_attempt(self, task_id: str, attempt: int, folder: str) -> None:
        """Link all files of the attempt: they are never written to, only replaced; the result, which tells that the
        attempt is whole, is the last.
        """
        place = self._make("attempts", for_disk(task_file_name(task_id)), str(attempt))
        link_tree(folder, place, last="result.json")

    def adopt_checkpoint(self, task_id: str, attempt: int, folder: str) -> str:
        """Link the checkpoint and the artifacts."""
        parts = ("attempts", for_disk(task_file_name(task_id)), str(attempt))
        if os.path.isdir(f"{folder}/artifacts"):
            link_tree(f"{folder}/artifacts", self._make(*parts, "artifacts"))
        link_file(f"{folder}/checkpoint.json", f"{self._make(*parts)}/checkpoint.json")  # last: it speaks of the rest
        return "/".join((str(self._dir), *parts, "artifacts"))

    def save_spent(self, task_id: str, attempt: int, document: Document) -> None:
        """Save ``attempts/<task>/<n>/spent.json``; not synced, since the source has it too."""
        folder = self._make("attempts", for_disk(task_file_name(task_id)), str(attempt))
        replace_file(f"{folder}/spent.json", dumps(document), sync=False)

    def adopt_task(self, task_id: str, path: str) -> None:
        """Link the document."""
        link_file(path, f"{self._make('details')}/{os.path.basename(path)}")

    def record_resource(self, name: str, document: Document) -> None:
        """Save ``resources/<name>.json``: small, and not synced: a machine that goes down takes sandboxes along."""
        replace_file(f"{self._make('resources')}/{name}.json", dumps(document), sync=False)

    def drop_resource(self, name: str) -> None:
        """Remove ``resources/<name>.json``."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._dir / "resources" / f"{name}.json")

    async def close(self) -> None:
        """Finish pending writes and close the streams."""
        await self._writer.close()
        for stream in self._streams.values():
            os.close(stream)
        self._streams.clear()

    def _make(self, *parts: str) -> str:
        """Make the folders *parts* below the run's, and return the last one's path."""
        path = str(self._dir)
        for depth, part in enumerate(parts):
            path = f"{path}/{part}"
            if path not in self._made:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(path)
                if depth == 0:  # those of single tasks are too many to remember
                    self._made.add(path)
        return path

    async def _replace(self, name: str, data: bytes, sync: bool = True) -> None:
        await self._in_thread(replace_file, f"{self._dir}/{name}", data, sync)

    async def _in_thread(self, function: Callable[..., object], *args: Any) -> None:
        """Call *function* in the writer's thread; a write that has begun is finished, whoever is cancelled."""
        await self._writer.do(partial(function, *args))


_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_INDENTED = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=2).encode


def dumps(document: Any, indent: int | None = None) -> bytes:
    """Return *document* as JSON in UTF-8; what JSON cannot hold becomes text, lone surrogates become escapes."""
    try:
        text = _COMPACT(document) if indent is None else _INDENTED(document)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(jsonable(document), ensure_ascii=False, allow_nan=False, indent=indent)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(jsonable(document), ensure_ascii=True, allow_nan=False, indent=indent).encode("ascii")


def _with_lines(document: Document, name: str) -> bytes:
    """Return *document* as indented JSON, but for the entries of the mapping *name*, which are one line each."""
    entries = document.get(name)
    if not entries or len(document) == 1:
        return dumps(document, indent=2)
    head = dumps({key: value for key, value in document.items() if key != name}, indent=2)
    lines = b",\n    ".join(dumps(key) + b": " + dumps(entry) for key, entry in entries.items())
    return head[: -len(b"\n}")] + b",\n  " + dumps(name) + b": {\n    " + lines + b"\n  }\n}"


def for_disk(name: str) -> str:
    """Return *name* so that the system gets its UTF-8, whatever the locale says of file names."""
    return os.fsdecode(name.encode("utf-8", "surrogateescape"))


def replace_file(path: str, data: bytes, sync: bool = True) -> None:
    """Put *data* in the place of *path*, whole or not at all."""
    folder, name = os.path.split(path)
    temporary = f"{folder}/.{name}.tmp"
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
    parent = Path(results_dir, *map(for_disk, levels)).absolute()
    try:
        parent.mkdir(parents=True, exist_ok=True)
        return _reserve_in(parent, for_disk(run_id), exact)
    except (OSError, ValueError) as exc:  # ValueError: a path that no system takes
        reason = getattr(exc, "strerror", None) or str(exc)
        raise UsageError(
            "runtime.results_dir", f"{results_dir!r} cannot be written ({reason})", "choose another folder"
        ) from None


def _reserve_in(parent: Path, run_id: str, exact: bool) -> Path:
    name = run_id
    for number in range(2, 10_000):
        try:
            (parent / name).mkdir()
        except FileExistsError:
            if exact:
                raise UsageError("output.run_id", f"{run_id!r} exists in {parent}", "choose another") from None
            name = f"{run_id}_{number}"
        else:
            return parent / name
    raise UsageError("output.run_id", f"{run_id!r} is taken too often in {parent}", "choose another")
