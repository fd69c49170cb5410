"""One prepared request from start to end: components, folder, log, run, and what is to be told of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentcompass.core.metrics.report import MetricReport
from agentcompass.core.metrics.summary import counts_text, headline_text
from agentcompass.core.model.request import RunRequest
from agentcompass.ports.environment import EnvironmentProvider
from agentcompass.ports.reporter import Reporter

from ..config.requests import Prepared
from ..logs import run_log
from .compose import Continues, build_components, make_run, reserve_run, source_of
from .resources import reap
from .run import Run, Seat

log = logging.getLogger("agentcompass.engine")


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """How an evaluation ended: its status, its numbers (None if it never had tasks), where its files are."""

    status: str
    request: RunRequest
    report: MetricReport | None
    error: str | None
    paths: Mapping[str, str]
    elapsed_seconds: float

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.request.output.run_id or ""

    @property
    def headline(self) -> str | None:
        """The first number in a line, with its interval."""
        return headline_text(self.report) if self.report else None

    @property
    def score(self) -> float | None:
        """The official value of the first number; None when there is none."""
        return self.report.headline.score.value if self.report else None

    def document(self) -> dict[str, Any]:
        """Return the result as one JSON document."""
        report = self.report
        return {
            "status": self.status,
            "run_id": self.run_id,
            "error": self.error,
            "model": self.request.model.id if self.request.model else None,
            "benchmark": self.request.benchmark.id,
            "harness": self.request.harness.id,
            "environment": self.request.environment.id,
            "headline": self.headline,
            "counts": counts_text(report) if report else None,
            "elapsed_seconds": self.elapsed_seconds,
            "metrics": report.document() if report else None,
            "paths": dict(self.paths),
        }


async def evaluate(
    prepared: Prepared,
    reporters: Sequence[Reporter] = (),
    on_ready: Callable[[Run], None] = lambda run: None,
    continues: Continues | None = None,
    seat: Seat | None = None,
) -> EvaluationResult:
    """Run *prepared* to its end; *on_ready* gets the run before it starts, so that it can be stopped.

    *continues* is another run and what is done with it, None for what the request says of reuse; *seat* is the place
    in an orchestration.

    Raises:
        UsageError: the request cannot run; no folder has been made.
    """
    components = await build_components(prepared, reporters)
    continues = continues or source_of(prepared)
    prepared, folder = reserve_run(prepared)
    with run_log(folder, prepared.runtime.file_log_level, prepared.redactor):
        run = make_run(prepared, components, folder, continues, seat)
        on_ready(run)
        await _reap(prepared.request.environment.id, components.provider)
        outcome = await run.execute()
    return EvaluationResult(
        outcome.state.value,
        prepared.request,
        outcome.report,
        outcome.error,
        run.store.paths,
        run.progress.elapsed_seconds,
    )


async def _reap(name: str, provider: EnvironmentProvider) -> None:
    """Remove what killed runs have left on *provider*; that it cannot is no reason not to run."""
    try:
        await reap(provider)
    except Exception as exc:
        log.warning("what killed runs may have left on %s cannot be looked for: %s", name, exc)
