"""Builds a checked request: files, choices and registered components come together here; nothing is created yet."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentcompass.core.config.environment import ENVIRONMENT_KEYS, split_environment
from agentcompass.core.config.layers import stack
from agentcompass.core.config.request import COMPONENT_SECTIONS, Choices, Merged, check_config, merged, model_spec
from agentcompass.core.config.sections import parse_execution, parse_runtime, parse_selection
from agentcompass.core.errors import UsageError, unknown_key
from agentcompass.core.metrics.hierarchy import check_hierarchy
from agentcompass.core.model.component import Component, Kind
from agentcompass.core.model.request import Choice, ModelSpec, Output, Reuse, RunRequest, Runtime
from agentcompass.core.redaction import Redactor, is_secret_name, secrets_among

from ..engine.host import Host
from ..engine.parameters import validated
from .files import config_layers

HARNESS_FREE = "none"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that may run: checked values, and what its components are to be built with."""

    request: RunRequest
    runtime: Runtime
    host: Host
    benchmark_params: Mapping[str, Any]
    harness_params: Mapping[str, Any]
    environment_params: Mapping[str, Any]
    redactor: Redactor
    warnings: Sequence[str]
    harness_id: str | None = None  #: what is built, where the record names another
    namespace: str | None = None  #: the folder of its runs, where that is not the combination's


def prepare(
    choices: Choices,
    *,
    config_paths: Sequence[str] = (),
    output: Output = Output(),  # noqa: B008  (frozen)
    env: Mapping[str, str] | None = None,
    host: Host | None = None,
) -> Prepared:
    """Return the request that *choices* over the configuration files make.

    Raises:
        UsageError: anything about it is wrong; nothing has been created.
    """
    env = os.environ if env is None else env
    host = host or Host()
    for folder in choices.recipe_dirs:
        host.add_folder(folder)
    layers, files = config_layers(config_paths, env, Path.cwd())
    config = stack(layers)
    check_config(config, {section: host.ids(kind) for section, kind in COMPONENT_SECTIONS.items()})
    benchmark = host.component(Kind.BENCHMARK, choices.benchmark)
    provider = host.component(Kind.ENVIRONMENT, choices.environment)
    sections = merged(config, choices, env)
    execution, warnings = parse_execution(sections.execution)
    for name in execution.enabled_recipes:
        host.component(Kind.RECIPE, name)
    selection, own = parse_selection(sections.benchmark, f"benchmarks.{choices.benchmark}")
    if selection.category_hierarchy:
        check_hierarchy(selection.category_hierarchy)
    sandbox, provider_own = split_environment(sections.environment, f"environments.{choices.environment}")
    runtime = _runtime(sections.runtime, host)
    environment_params = validated(provider, provider_own, f"environments.{choices.environment}", ENVIRONMENT_KEYS)
    model = model_spec(choices, env)
    request = RunRequest(
        Choice(choices.benchmark, own),
        Choice(choices.harness, dict(sections.harness)),
        Choice(choices.environment, dict(sections.environment)),
        model,
        selection,
        execution,
        output,
        _metadata(files, choices.recipe_dirs),
        sandbox,
        Reuse(runtime.reuse, runtime.reuse_run_id, runtime.checkpoint_resume),
    )
    return Prepared(
        request,
        runtime,
        host,
        _benchmark_params(benchmark, own, runtime),
        _harness_params(host, choices.harness, sections),
        environment_params,
        _redactor(env, sections, model),
        warnings,
    )


def _metadata(files: Sequence[str], recipe_dirs: Sequence[str]) -> dict[str, Any]:
    """Return where the request came from."""
    found: dict[str, Any] = {}
    if files:
        found["config_path"] = files[0] if len(files) == 1 else json.dumps(files, ensure_ascii=False)
    if recipe_dirs:
        found["recipe_dirs"] = [os.path.abspath(folder) for folder in recipe_dirs]
    return found


def _runtime(given: Mapping[str, Any], host: Host) -> Runtime:
    """Return the rules of the process; limits are those of environments that exist."""
    runtime = parse_runtime(given)
    known = host.ids(Kind.ENVIRONMENT)
    for field, limits in (("provider_limits", runtime.provider_limits), ("env_open_qps", runtime.env_open_qps)):
        for provider in limits:
            if provider not in known:
                raise unknown_key(f"runtime.{field}", provider, known)
    host.component(Kind.STORE, runtime.store)
    return runtime


def _benchmark_params(benchmark: Component, own: Mapping[str, Any], runtime: Runtime) -> dict[str, Any]:
    """Return the benchmark's parameters; one that keeps downloads takes `data_dir`, and gets the common folder."""
    if "data_dir" in benchmark.properties:
        own = {"data_dir": runtime.data_dir, **own}
    return validated(benchmark, own, f"benchmarks.{benchmark.id}")


def _harness_params(host: Host, harness: str, sections: Merged) -> dict[str, Any]:
    if harness == HARNESS_FREE:
        if sections.harness:
            raise UsageError("harnesses.none", "takes no parameters", "leave them out")
        return {}
    if "env" in sections.harness:
        raise UsageError(f"harnesses.{harness}.env", "is not a key any more", "use the environment's variables")
    return validated(host.component(Kind.HARNESS, harness), sections.harness, f"harnesses.{harness}")


def _redactor(env: Mapping[str, str], sections: Merged, model: ModelSpec | None) -> Redactor:
    redactor = Redactor(secrets_among(env))
    redactor.learn(value for name, value in sections.referenced.items() if is_secret_name(name))
    redactor.learn(_secret_values([sections.benchmark, sections.harness, sections.environment]))
    if model:
        redactor.learn([model.api_key, *_secret_values(model.params)])
    return redactor


def _secret_values(value: Any, secret: bool = False) -> list[str]:
    """Return the texts in *value* that stand under a telling name."""
    if isinstance(value, Mapping):
        return [text for key, entry in value.items() for text in _secret_values(entry, secret or is_secret_name(key))]
    if isinstance(value, list | tuple):
        return [text for entry in value for text in _secret_values(entry, secret)]
    return [value] if secret and isinstance(value, str) else []


def with_run_id(prepared: Prepared, run_id: str) -> Prepared:
    """Return *prepared* with the id that was reserved for it."""
    output = replace(prepared.request.output, run_id=run_id)
    return replace(prepared, request=replace(prepared.request, output=output))
