"""The chosen components of one run, built, and what all its performers share."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from agentcompass.core.errors import UsageError
from agentcompass.core.metrics.contract import require_strategy
from agentcompass.core.model.plan import EvaluationMode, Plan, TaskPlan
from agentcompass.core.model.request import ModelSpec, RunRequest
from agentcompass.core.model.task import Task
from agentcompass.core.planning import resolve_plan
from agentcompass.core.requirements import Parts, require_possible
from agentcompass.ports.benchmark import Benchmark
from agentcompass.ports.environment import EnvironmentProvider
from agentcompass.ports.harness import Harness
from agentcompass.ports.model import Model
from agentcompass.ports.recipe import Recipe
from agentcompass.ports.reporter import Reporter

T = TypeVar("T")
log = logging.getLogger("agentcompass.engine")


def expect(kind: type[T], value: Any, method: str) -> T:
    """Return *value*, which *method* of a component returned, if it is of the right *kind*."""
    if not isinstance(value, kind):
        raise TypeError(f"{method} returned a {type(value).__name__} instead of a {kind.__name__}")
    return value


@dataclass(frozen=True, slots=True)
class Components:
    """The parties to an evaluation; *harness* is None for a benchmark that runs itself."""

    benchmark: Benchmark
    harness: Harness | None
    provider: EnvironmentProvider
    model: Model | None = None
    reporters: Sequence[Reporter] = field(default=())
    recipes: Sequence[tuple[str, Recipe]] = field(default=())  #: by id, in the order in which they apply

    def declared(self, request: RunRequest) -> Parts:
        """Return what planning needs to know of them."""
        harness = self.harness
        return Parts(
            metrics=self.benchmark.metrics,
            evaluation_mode=EvaluationMode(self.benchmark.evaluation_mode),
            has_harness=harness is not None,
            default_run_timeout_seconds=harness.default_run_timeout_seconds if harness else None,
            capabilities=self.provider.capabilities,
            collects_artifacts=self.benchmark.collects_artifacts,
            model_host=_endpoint(request.model) if harness and harness.calls_model_from_sandbox else None,
        )

    def plan(self, request: RunRequest, parts: Parts, task: Task) -> Plan:
        """Return the plan of *task*'s attempts: what the benchmark asks, changed by recipes, under the user's options.

        Raises:
            UsageError: it cannot be done.
        """
        asked = expect(TaskPlan, self.benchmark.plan(task), "plan")
        applied = []
        for name, recipe in self.recipes:
            if recipe.matches(request, task, asked):
                asked = expect(TaskPlan, recipe.apply(request, task, asked), f"the recipe {name}")
                applied.append(name)
        return resolve_plan(request, parts, task, asked, tuple(applied))

    @property
    def overlap(self) -> bool:
        """Tell whether attempts of one task may run at the same time: both sides keep their state apart."""
        return self.benchmark.isolated and (self.harness is None or self.harness.isolated)

    def check(self, request: RunRequest) -> None:
        """Refuse what does not fit together.

        Raises:
            UsageError: components and options contradict each other.
        """
        require_strategy(self.benchmark.metrics, request.execution.attempts)
        require_possible(request, self.declared(request))
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


def _endpoint(model: ModelSpec | None) -> str | None:
    """Return host and port of the model's endpoint."""
    if model is None or not model.base_url:
        return None
    url = urlsplit(model.base_url)
    port = url.port or (443 if url.scheme == "https" else 80)
    host = url.hostname or ""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
