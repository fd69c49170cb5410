"""The chosen components of one run, built, and what all its performers share."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentcompass.core.errors import UsageError
from agentcompass.core.metrics.contract import require_strategy
from agentcompass.core.model.plan import EvaluationMode
from agentcompass.core.model.request import RunRequest
from agentcompass.core.planning import Parts
from agentcompass.ports.benchmark import Benchmark
from agentcompass.ports.environment import EnvironmentProvider
from agentcompass.ports.harness import Harness
from agentcompass.ports.model import Model
from agentcompass.ports.reporter import Reporter

log = logging.getLogger("agentcompass.engine")


@dataclass(frozen=True, slots=True)
class Components:
    """The parties to an evaluation; *harness* is None for a benchmark that runs itself."""

    benchmark: Benchmark
    harness: Harness | None
    provider: EnvironmentProvider
    model: Model | None = None
    reporters: Sequence[Reporter] = field(default=())

    def declared(self, build_seconds: float | None = None) -> Parts:
        """Return what planning needs to know of them."""
        harness = self.harness
        return Parts(
            metrics=self.benchmark.metrics,
            evaluation_mode=EvaluationMode(self.benchmark.evaluation_mode),
            has_harness=harness is not None,
            default_run_timeout_seconds=harness.default_run_timeout_seconds if harness else None,
            capabilities=self.provider.capabilities,
            build_seconds=build_seconds,
        )

    @property
    def overlap(self) -> bool:
        """Tell whether attempts of one task may run at the same time: both sides keep their state apart."""
        return self.benchmark.isolated and (self.harness is None or self.harness.isolated)

    def check(self, request: RunRequest) -> None:
        """Refuse what does not fit together.

        Raises:
            UsageError: harness, benchmark, model, strategy and variables contradict each other.
        """
        require_strategy(self.benchmark.metrics, request.execution.attempts)
        mode = EvaluationMode(self.benchmark.evaluation_mode)
        if request.variables.verifier_start is not None and mode is not EvaluationMode.FRESH:
            raise UsageError(
                f"environments.{request.environment.id}.evaluation_environment_env_variables",
                f"needs the evaluation mode fresh, and {request.benchmark.id} is graded with {mode.value!r}",
                "use evaluation_env_variables",
            )
        if self.benchmark.runs_itself and self.harness is not None:
            raise UsageError("harness", f"{request.benchmark.id} runs its tasks itself", "use the harness 'none'")
        if not self.benchmark.runs_itself and self.harness is None:
            raise UsageError("harness", f"{request.benchmark.id} needs a harness", "see: agentcompass list harness")

    async def close(self) -> None:
        """Release what the run shared, and let the observers go; a failure is logged."""
        if self.model is not None:
            try:
                await self.model.close()
            except Exception as exc:
                log.warning("closing the model client failed: %s: %s", type(exc).__name__, exc)
        for reporter in self.reporters:
            try:
                reporter.close()
            except Exception as exc:
                log.warning("closing a reporter failed: %s: %s", type(exc).__name__, exc)
