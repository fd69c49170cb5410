"""A run directory read back, one document at a time."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from agentcompass.core.errors import AgentCompassError, UsageError
from agentcompass.core.metrics.contract import MetricContract
from agentcompass.core.metrics.observation import Observation, TaskKey
from agentcompass.core.model.request import AttemptPlan
from agentcompass.core.records.legacy import UNCLASSIFIED, current_run_info, is_old, planned
from agentcompass.core.records.reading import (
    RecordError,
    attempt_plan_of,
    contract_of,
    observations_of,
    planned_task,
    require_schema,
)
from agentcompass.core.records.run_info import SCHEMA as RUN_INFO_SCHEMA

from .documents import object_in, read_document
from .old_runs import OldRecords

log = logging.getLogger("agentcompass.records")

_T = TypeVar("_T")
_ANOTHER = "give the folder of another run"


class SavedRun:
    """The run in *run_dir*; one of a former format shows itself as one of the present.

    Raises:
        UsageError: there is none, or none of a format that is known.
    """

    def __init__(self, run_dir: str) -> None:
        self.path = Path(run_dir)
        self._info_file = self.path / "run_info.json"
        if not self._info_file.is_file():
            raise UsageError("RUN_DIR", f"{run_dir!r} has no run_info.json", "give the folder of one run")
        self.info = read_document(self._info_file)
        self.old: OldRecords | None = None  #: what it was converted from
        if is_old(self.info):
            self.old = OldRecords(self.path / "details")
            params = self.path / "params.json"
            self.info = current_run_info(self.info, read_document(params) if params.is_file() else {}, self.old.known)

        self._checked(lambda: require_schema(self.info, RUN_INFO_SCHEMA, self.where))

    @property
    def request(self) -> Mapping[str, Any]:
        """The request, whose components have ids.

        Raises:
            UsageError: it has none.
        """
        request = self.info.get("request")
        for section in ("benchmark", "harness", "environment"):
            chosen = request.get(section) if isinstance(request, Mapping) else None
            if not isinstance(chosen, Mapping) or not isinstance(chosen.get("id"), str):
                raise UsageError("RUN_DIR", f"{self.where}: request.{section}.id is missing", _ANOTHER)
        assert isinstance(request, Mapping)
        return request

    @property
    def contract(self) -> MetricContract:
        """What was measured.

        Raises:
            UsageError: the record does not tell.
        """
        return self._checked(lambda: contract_of(self.info, self.where))

    @property
    def plan(self) -> AttemptPlan:
        """How many attempts there were, and how they become a value.

        Raises:
            UsageError: the record does not tell.
        """
        return self._checked(lambda: attempt_plan_of(self.info, self.where))

    @staticmethod
    def _checked(read: Callable[[], _T]) -> _T:
        try:
            return read()
        except RecordError as exc:
            raise UsageError("RUN_DIR", str(exc), _ANOTHER) from None

    @property
    def where(self) -> str:
        """The path of the run's own record, for messages."""
        return str(self._info_file)

    def tasks(self) -> list[TaskKey]:
        """Return the planned tasks.

        Raises:
            UsageError: the run never got as far as planning them.
        """
        if self.old is not None:
            return planned(self.info, self.old.known)
        path = self.path / "tasks.jsonl"
        if not path.is_file():
            raise UsageError("RUN_DIR", f"{str(self.path)!r} has no tasks.jsonl", "the run ended before it had tasks")
        found = []
        with path.open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                found.append(planned_task(object_in(line, f"{path}:{number}"), f"{path}:{number}"))
        return found

    def digests(self) -> Mapping[str, str]:
        """Return what told each planned task from others of its id, where that was noted."""
        try:
            lines = (self.path / "tasks.jsonl").read_text("utf-8").splitlines()
            planned = [json.loads(line) for line in lines]
            return {line["task_id"]: line["digest"] for line in planned if "digest" in line}
        except (OSError, ValueError, LookupError, TypeError):
            return {}

    def observations(self, contract: MetricContract) -> Iterator[Observation]:
        """Yield what is known of every finished task; a record that cannot be read is named, and costs itself only."""
        if self.old is not None:
            yield from self._old_observations(self.old, contract)
            return
        for path in sorted((self.path / "details").glob("*.json")):
            try:
                yield from observations_of(read_document(path), contract, str(path))
            except (AgentCompassError, OSError) as exc:
                log.warning("left out: %s", exc)

    def _old_observations(self, old: OldRecords, contract: MetricContract) -> Iterator[Observation]:
        unknown = 0
        for where, task in old:
            unknown += sum(
                issue["code"] == UNCLASSIFIED for attempt in task["attempts"].values() for issue in attempt["issues"]
            )
            try:
                yield from observations_of(task, contract, where)
            except AgentCompassError as exc:
                log.warning("left out: %s", exc)
        if unknown:
            log.warning(
                "%d attempts of a former format failed for a reason in words only: they have no value; a run with "
                "--reuse executes them again",
                unknown,
            )
