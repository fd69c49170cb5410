"""AgentCompass: know how good an AI agent really is.

    from agentcompass import run_evaluation

    result = run_evaluation(benchmark="humaneval", harness="oracle")
    print(result.headline)

Everything here is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentcompass.adapters.config.requests import Prepared as Prepared
    from agentcompass.adapters.engine.evaluate import EvaluationResult as EvaluationResult
    from agentcompass.adapters.engine.launch import LaunchResult as LaunchResult
    from agentcompass.adapters.engine.run import Run as Run
    from agentcompass.core.errors import AgentCompassError as AgentCompassError
    from agentcompass.core.errors import PhaseFailed as PhaseFailed
    from agentcompass.core.errors import RunFailedError as RunFailedError
    from agentcompass.core.errors import SandboxError as SandboxError
    from agentcompass.core.errors import UsageError as UsageError
    from agentcompass.core.model.component import Component as Component
    from agentcompass.core.model.component import parameters as parameters
    from agentcompass.ports.hookspecs import hookimpl as hookimpl

    from .api import async_run_evaluation as async_run_evaluation
    from .api import build_run_request as build_run_request
    from .api import run_evaluation as run_evaluation
    from .api import run_request as run_request
    from .launches import async_launch as async_launch
    from .launches import launch as launch

_HOMES = {
    "AgentCompassError": "agentcompass.core.errors",
    "Component": "agentcompass.core.model.component",
    "EvaluationResult": "agentcompass.adapters.engine.evaluate",
    "LaunchResult": "agentcompass.adapters.engine.launch",
    "PhaseFailed": "agentcompass.core.errors",
    "Prepared": "agentcompass.adapters.config.requests",
    "Run": "agentcompass.adapters.engine.run",
    "RunFailedError": "agentcompass.core.errors",
    "SandboxError": "agentcompass.core.errors",
    "UsageError": "agentcompass.core.errors",
    "async_launch": "agentcompass.launches",
    "async_run_evaluation": "agentcompass.api",
    "build_run_request": "agentcompass.api",
    "hookimpl": "agentcompass.ports.hookspecs",
    "launch": "agentcompass.launches",
    "parameters": "agentcompass.core.model.component",
    "run_evaluation": "agentcompass.api",
    "run_request": "agentcompass.api",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("agentcompass")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_HOMES, "__version__"]
