"""Finds the run that a new one continues, and reads what it has of each task."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from agentcompass.core.errors import AgentCompassError, UsageError
from agentcompass.core.model.request import RunRequest
from agentcompass.core.model.result import Usage
from agentcompass.core.records.names import safe_name, task_file_name
from agentcompass.core.records.results import ATTEMPT_SCHEMA
from agentcompass.core.reuse import require_compatible, spent_on, usage_of

from .documents import read_document
from .json_files import for_disk
from .old_runs import OldRecords
from .saved_run import SavedRun

log = logging.getLogger("agentcompass.reuse")


class Source(SavedRun):
    """A run that is continued. One that was killed while it took over its own source still has that behind it."""

    def __init__(self, run_dir: str) -> None:
        super().__init__(run_dir)
        self._place = str(self.path)  # joined for each of very many attempts
        self._behind: Source | None = None
        self._looked = False

    @property
    def run_id(self) -> str:
        """Its id."""
        return str(self.info.get("run_id", self.path.name))

    def attempts(self, task_id: str) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
        """Yield number, folder and document of each final attempt of a task; what cannot be read is named, and left.

        The folder is empty for an attempt of a former format, whose files are others.
        """
        if self.old is not None:
            yield from self._old_attempts(self.old, task_id)
            return
        seen = set()
        for number, folder in self._folders(task_id):
            try:
                document = read_document(f"{folder}/result.json")
            except FileNotFoundError:
                continue
            except (AgentCompassError, OSError) as exc:
                log.warning("left out: %s", exc)
                continue
            seen.add(number)
            yield number, folder, document
        behind = self._source()
        for number, folder, document in behind.attempts(task_id) if behind else ():
            if number not in seen:
                yield number, folder, document

    def begun(self, task_id: str) -> set[int]:
        """Return the attempts of a task of which there is anything."""
        behind = self._source()
        found = {number for number, _ in self._folders(task_id)}
        return found | behind.begun(task_id) if behind else found

    def checkpoint(self, task_id: str, attempt: int) -> tuple[str, Mapping[str, Any]] | None:
        """Return folder and document of an attempt whose grading is missing, or None."""
        for number, folder in self._folders(task_id):
            path = Path(folder, "checkpoint.json")
            if number == attempt and path.is_file():
                return folder, read_document(path)
        behind = self._source()
        return behind.checkpoint(task_id, attempt) if behind else None

    def spent(self, task_id: str, attempt: int) -> Usage:
        """Return what has been consumed in vain on an attempt that has no result; what cannot be read is left out."""
        folder = self.path / "attempts" / for_disk(task_file_name(task_id)) / str(attempt)
        earlier = list(_readable([folder / "spent.json"]))
        records, lone = _replaced(folder / "retries")
        spent = spent_on(earlier[0] if earlier else None, _readable(records))
        for checkpoint in _readable(lone):
            spent = spent.plus(usage_of(checkpoint.get("run_result")))
        behind = self._source()
        return behind.spent(task_id, attempt) if behind and spent == Usage() else spent

    def worked(self, task_id: str, attempt: int) -> Usage:
        """Return what the work has consumed whose checkpoint there is, as far as that can be read."""
        try:
            found = self.checkpoint(task_id, attempt)
        except (AgentCompassError, OSError):
            return Usage()
        return usage_of(found[1].get("run_result")) if found else Usage()

    def finished(self, task_id: str) -> str | None:
        """Return the path of a finished task's document, or None if there is none of the present format."""
        if self.old is not None:
            return None
        name = f"{for_disk(task_file_name(task_id))}.json"
        places = (f"{self._place}/details/{name}", f"{self._place}/details/_error_{name}")
        return next((path for path in places if os.path.isfile(path)), None)

    def _folders(self, task_id: str) -> list[tuple[int, str]]:
        folder = f"{self._place}/attempts/{for_disk(task_file_name(task_id))}"
        try:
            names = os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted((int(name), f"{folder}/{name}") for name in names if name.isdecimal())

    def _old_attempts(self, old: OldRecords, task_id: str) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
        try:
            task = old.task(task_id)
        except (AgentCompassError, OSError) as exc:
            log.warning("left out: %s", exc)
            return
        if task is None:
            return
        for number, attempt in task["attempts"].items():
            identity = {"task_id": task_id, "category": task["category"], "attempt": int(number)}
            yield int(number), "", {"schema_version": ATTEMPT_SCHEMA, **identity, **attempt}

    def _source(self) -> Source | None:
        reused = self.info.get("reused_from")
        if not self._looked and isinstance(reused, dict) and not reused.get("complete"):
            try:
                self._behind = Source(str(reused["path"]))
            except (AgentCompassError, OSError, KeyError) as exc:
                log.warning("the run behind %s cannot be read: %s", self.path, exc)
        self._looked = True
        return self._behind


def _replaced(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the records of replaced executions, and the checkpoints of those whose record a kill has prevented."""
    paths = sorted(folder.glob("*.json"))
    records = [path for path in paths if not path.name.endswith(".checkpoint.json")]
    told = {path.name.partition(".")[0] for path in records}
    return records, [path for path in paths if path not in records and path.name.partition(".")[0] not in told]


def _readable(paths: Sequence[Path]) -> Iterator[Mapping[str, Any]]:
    for path in paths:
        try:
            yield read_document(path)
        except FileNotFoundError:
            continue
        except (AgentCompassError, OSError) as exc:
            log.warning("left out: %s", exc)


def find_source(results_dir: str, levels: tuple[str, ...], request: RunRequest) -> Source | None:
    """Return the run that *request* wants to continue: the one with its id, or the latest that fits; None for none.

    Raises:
        UsageError: the run that was named is not there, or does not fit.
    """
    parent = Path(results_dir, *map(for_disk, levels)).absolute()
    if request.reuse.run_id is not None:
        name = for_disk(safe_name(request.reuse.run_id))
        if not (parent / name / "run_info.json").is_file():
            raise UsageError(
                "--reuse", f"there is no run {request.reuse.run_id!r} in {parent}", "name one that is there"
            )
        source = _read(parent / name)
        require_compatible(source.info, request, str(source.path))
        return source
    for path in _latest_first(parent):
        try:
            source = _read(path)
            require_compatible(source.info, request, str(path))
        except UsageError as exc:
            log.warning("passed over: %s", exc)
        else:
            return source
    log.warning("--reuse: there is no run to continue in %s", parent)
    return None


def _read(path: Path) -> Source:
    try:
        return Source(str(path))
    except (AgentCompassError, OSError) as exc:
        raise UsageError("--reuse", f"{path} cannot be read: {exc}", "choose another run") from None


def _latest_first(parent: Path) -> list[Path]:
    """Return the run folders in *parent*, the one that was begun last first.

    A run that another has continued comes after all that none has, whatever clocks have said.
    """
    found, continued = [], set()
    for path in parent.glob("*/run_info.json"):
        moment = written = 0.0
        try:
            info = read_document(path)
            written = path.stat().st_mtime
            continued.add(Path(info.get("reused_from", {}).get("path", "")).name)  # it lies in the same folder
            moment = datetime.fromisoformat(info["started_at"]).timestamp()
        except (AgentCompassError, OSError, LookupError, TypeError, ValueError, AttributeError):
            pass  # whoever takes it is told what is wrong with it
        found.append((moment, written, path.parent))
    return [path for _, _, path in sorted(found, key=lambda run: (run[2].name not in continued, *run), reverse=True)]
