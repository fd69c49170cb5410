"""Several requests as one operation: checked together, executed in one pool, each with its own outcome."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from agentcompass.core.errors import AgentCompassError
from agentcompass.core.records.names import safe_name
from agentcompass.core.redaction import Redactor
from agentcompass.core.runtime.effects import Stop
from agentcompass.ports.reporter import Reporter

from ..config.requests import Prepared
from ..stores.json_files import dumps, replace_file
from .compose import build_components
from .evaluate import EvaluationResult, evaluate
from .hall import Hall
from .player import StopSignal
from .run import Run, Seat

log = logging.getLogger("agentcompass.launch")
SCHEMA = "agentcompass.launch.v1"


@dataclass(frozen=True, slots=True)
class NamedRequest:
    """A checked request and its name."""

    name: str
    prepared: Prepared


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one request ended: its result, or the error that kept it from beginning."""

    name: str
    result: EvaluationResult | None
    error: str | None

    @property
    def status(self) -> str:
        """The status of the run; failed for a request that never began."""
        return self.result.status if self.result else "failed"


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """How an orchestration ended, request by request."""

    id: str
    status: str
    outcomes: tuple[Outcome, ...]

    def document(self) -> dict[str, Any]:
        """Return it as one JSON document."""
        return {
            "id": self.id,
            "status": self.status,
            "requests": [
                {"name": o.name, "status": o.status, "error": o.error, **(o.result.document() if o.result else {})}
                for o in self.outcomes
            ],
        }


async def check(requests: Sequence[NamedRequest]) -> None:
    """Build the components of every request and let them go, so that what contradicts itself is refused at once.

    Raises:
        UsageError: a request cannot run, whatever answers here.
    """
    for request in requests:
        components = await build_components(request.prepared, answering=False)
        await components.close()


class Launch:
    """One orchestration, ready to go: `await execute()` once."""

    def __init__(
        self,
        requests: Sequence[NamedRequest],
        slots: int,
        reporters: Callable[[str], Sequence[Reporter]] = lambda name: (),
    ) -> None:
        self._requests, self._reporters = requests, reporters
        self._runtime = requests[0].prepared.runtime
        self.redactor = Redactor.of_all(request.prepared.redactor for request in requests)
        self.id = datetime.now().astimezone().strftime("%Y%m%d_%H%M%S_%f")
        self.stop = StopSignal()
        self._hall = Hall(
            len(requests),
            slots,
            self._runtime.provider_limits,
            self._runtime.env_open_qps,
            self.stop,
            self._runtime.cleanup_grace_seconds,
        )
        self._states: list[dict[str, Any]] = [
            {"name": request.name, "index": index, "state": "waiting", "run_dir": None, "error": None}
            for index, request in enumerate(requests)
        ]

    async def execute(self) -> LaunchResult:
        """Run every request to its end, whatever becomes of the others."""
        timer = None
        if self._runtime.timeout_seconds:
            timer = asyncio.get_running_loop().call_later(self._runtime.timeout_seconds, self._expire)
        self._record("running")
        try:
            outcomes = await asyncio.gather(*(self._request(index) for index in range(len(self._requests))))
        finally:
            if timer is not None:
                timer.cancel()
        status = self._status(outcomes)
        self._record(status)
        return LaunchResult(self.id, status, tuple(outcomes))

    def _expire(self) -> None:
        seconds = self._runtime.timeout_seconds
        self.stop.set(Stop.EXPIRED, f"stopped after {seconds:g} s, the limit runtime.timeout_seconds of all requests")

    async def _request(self, index: int) -> Outcome:
        request = self._requests[index]
        orchestration = {
            "orchestration_id": self.id,
            "request_key": f"{index}:{safe_name(request.name)}",
            "request_name": request.name,
            "request_index": index,
        }
        seat = Seat(self._hall, index, self.stop, orchestration)

        def on_ready(run: Run) -> None:
            self._states[index] |= {"state": "running", "run_dir": str(run.store.paths.get("run_dir", ""))}
            self._record("running")

        try:
            result = await evaluate(request.prepared, self._reporters(request.name), on_ready, seat=seat)
            outcome = Outcome(request.name, result, result.error)
        except AgentCompassError as exc:
            log.error("%s: %s", request.name, exc)
            outcome = Outcome(request.name, None, str(exc))
        except Exception as exc:  # a defect costs its own request
            log.exception("%s: a defect of AgentCompass stopped the request", request.name)
            outcome = Outcome(request.name, None, f"unexpected {type(exc).__name__}: {exc}")
        finally:
            self._hall.leave(index)
        self._states[index] |= {"state": outcome.status, "error": outcome.error}
        self._record("running")
        return outcome

    def _status(self, outcomes: Sequence[Outcome]) -> str:
        if self.stop.reason is Stop.EXPIRED:
            return "timed_out"
        if self.stop.reason is Stop.INTERRUPTED:
            return "cancelled"
        completed = sum(outcome.status == "completed" for outcome in outcomes)
        if completed == len(outcomes):
            return "completed"
        return "partial_failure" if completed else "failed"

    def _record(self, status: str) -> None:
        """Replace ``launch.json`` in the results folder; that it cannot be written is told, and stops nothing."""
        document = {"schema_version": SCHEMA, "id": self.id, "status": status, "requests": self._states}
        folder = Path(self._runtime.results_dir)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(str(folder.absolute() / "launch.json"), dumps(self.redactor.document(document), indent=2))
        except OSError as exc:
            log.warning("launch.json could not be written: %s", exc)


def named(name: str, prepared: Prepared) -> NamedRequest:
    """Return *prepared* as a request called *name*, whose runs lie in a folder of that name."""
    return NamedRequest(name, replace(prepared, namespace=safe_name(name)))
