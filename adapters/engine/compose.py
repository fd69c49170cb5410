"""The composition root: builds the components of a prepared request, reserves its folder, makes the run."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from agentcompass.core.errors import UsageError
from agentcompass.core.model.component import Kind
from agentcompass.core.model.request import ModelSpec
from agentcompass.core.records.names import run_levels, run_namespace, safe_name
from agentcompass.ports.harness import Harness
from agentcompass.ports.model import Model
from agentcompass.ports.recipe import Recipe
from agentcompass.ports.reporter import Reporter

from ..clocks import SystemClock
from ..config.requests import HARNESS_FREE, Prepared, with_run_id
from ..stores.json_files import reserve
from ..stores.sources import Source, find_source
from .host import Host
from .observers import PluginObservers
from .parameters import validated
from .parts import Components
from .reuse import Continuation
from .run import Run, Seat


async def build_components(
    prepared: Prepared, reporters: Sequence[Reporter] = (), *, answering: bool = True
) -> Components:
    """Build and check the chosen components, that the provider answers too; still, nothing has been created.

    Raises:
        UsageError: an extra is missing, the parts do not fit together, or the provider cannot work here.
    """
    request, host = prepared.request, prepared.host
    benchmark = host.build(Kind.BENCHMARK, request.benchmark.id, **prepared.benchmark_params)
    harness = None
    if request.harness.id != HARNESS_FREE:
        harness = host.build(Kind.HARNESS, prepared.harness_id or request.harness.id, **prepared.harness_params)
    provider = host.build(Kind.ENVIRONMENT, request.environment.id, **prepared.environment_params)
    needs_model = bool(harness is not None and harness.needs_model)
    if needs_model and request.model is None:
        raise UsageError("model", f"the harness {request.harness.id} needs one", "name it after the harness")
    model = _model(prepared, request.model, harness) if request.model and needs_model else None
    observers = [PluginObservers(host.observers)] if host.observers else []
    recipes = build_recipes(host, request.execution.enabled_recipes)
    components = Components(benchmark, harness, provider, model, [*reporters, *observers], recipes)
    components.check(request)
    if answering:
        await provider.check()
    return components


Continues = tuple[Source, type[Continuation]]  #: a run that is continued, and how


def build_recipes(host: Host, enabled: Sequence[str]) -> list[tuple[str, Recipe]]:
    """Return the recipes that may apply, in their order: those *enabled*, or all that are on by default."""
    names = enabled or host.ids(Kind.RECIPE)
    built: list[tuple[str, Recipe]] = [(name, host.build(Kind.RECIPE, name)) for name in names]
    wanted = [(name, recipe) for name, recipe in built if enabled or recipe.enabled_by_default]
    return sorted(wanted, key=lambda entry: (entry[1].priority, entry[0]))


def _model(prepared: Prepared, spec: ModelSpec, harness: Harness | None) -> Model | None:
    assert harness is not None
    wanted = spec.api_protocols or harness.protocols[:1]
    for protocol in wanted:
        if protocol not in prepared.host.ids(Kind.MODEL):
            prepared.host.component(Kind.MODEL, protocol)
    fitting = [protocol for protocol in wanted if protocol in harness.protocols]
    if not fitting:
        if not harness.protocols:
            return None  # it brings its own client
        speaks = ", ".join(harness.protocols)
        raise UsageError(
            "--model-api-protocol", f"{', '.join(wanted)!r} is not spoken by the harness", f"it speaks {speaks}"
        )
    component = prepared.host.component(Kind.MODEL, fitting[0])
    own = {key: value for key, value in spec.params.items() if key in component.properties}
    params = validated(component, own, "model.params")
    built: Model = prepared.host.build(
        Kind.MODEL, fitting[0], model=spec.id, base_url=spec.base_url, api_key=spec.api_key, **params
    )
    return built


def _levels(prepared: Prepared) -> tuple[str, ...]:
    """Return the folders of the request's runs below the results folder."""
    request = prepared.request
    model = request.model.id if request.model else None
    namespace = prepared.namespace or run_namespace(model, request.benchmark.id, request.harness.id)
    return (*run_levels(request.output.run_name), namespace)


def reserve_run(prepared: Prepared) -> tuple[Prepared, Path]:
    """Make the run's folder, and return it with the request that knows its id.

    Raises:
        UsageError: the folder cannot be made, or an explicit run id is taken.
    """
    request = prepared.request
    wanted = request.output.run_id
    run_id = safe_name(wanted) if wanted is not None else datetime.now().astimezone().strftime("%Y%m%d_%H%M%S")
    folder = reserve(prepared.runtime.results_dir, _levels(prepared), run_id, exact=wanted is not None)
    return with_run_id(prepared, folder.name), folder


def source_of(prepared: Prepared) -> Continues | None:
    """Return the run that the request continues, if it wants that and there is one, and how.

    Raises:
        UsageError: the run that it names is not there, or does not fit.
    """
    if not prepared.request.reuse.wanted:
        return None
    source = find_source(prepared.runtime.results_dir, _levels(prepared), prepared.request)
    return None if source is None else (source, Continuation)


def make_run(
    prepared: Prepared,
    components: Components,
    folder: Path,
    continues: Continues | None = None,
    seat: Seat | None = None,
) -> Run:
    """Return the run that will write to *folder*."""
    source, continuation = continues or (None, Continuation)
    return Run(
        prepared.request,
        prepared.runtime,
        components,
        prepared.host.build(Kind.STORE, prepared.runtime.store, run_dir=folder),
        SystemClock(),
        prepared.redactor,
        versions(prepared, components),
        source,
        continuation,
        seat,
    )


def versions(prepared: Prepared, components: Components) -> dict[str, str]:
    """Return the versions that a score depends on."""
    found: dict[str, Any] = {
        "agentcompass": own_version(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        f"benchmark {prepared.request.benchmark.id}": getattr(components.benchmark, "version", None),
        f"harness {prepared.request.harness.id}": getattr(components.harness, "version", None),
    }
    return {name: str(value) for name, value in found.items() if value is not None}


def own_version() -> str:
    """Return the version of the installed distribution."""
    try:
        return version("agentcompass")
    except PackageNotFoundError:
        return "unknown"
