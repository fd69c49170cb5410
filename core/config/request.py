"""From merged configuration and choices to a request: which section goes where, and what is refused.

The parameters of components are checked later, against the schemas that their plugins registered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import UsageError, unknown_key
from ..model.component import Kind
from ..model.request import ModelSpec
from .environment import VARIABLE_KEYS
from .layers import mapping, merge
from .references import expand, resolve

SECTIONS = ("runtime", "execution", "environments", "harnesses", "benchmarks")
COMPONENT_SECTIONS = {
    "environments": Kind.ENVIRONMENT,
    "harnesses": Kind.HARNESS,
    "benchmarks": Kind.BENCHMARK,
}


@dataclass(frozen=True, slots=True)
class Choices:
    """What a caller chooses beside the configuration; mappings lie over the configuration's sections."""

    benchmark: str
    harness: str
    environment: str = "host_process"
    model: str | None = None
    model_base_url: str = ""
    model_api_key: str = ""
    model_api_protocol: Any = ""
    model_params: Mapping[str, Any] = field(default_factory=dict)
    benchmark_params: Mapping[str, Any] = field(default_factory=dict)
    harness_params: Mapping[str, Any] = field(default_factory=dict)
    environment_params: Mapping[str, Any] = field(default_factory=dict)
    execution: Mapping[str, Any] = field(default_factory=dict)
    runtime: Mapping[str, Any] = field(default_factory=dict)
    recipe_dirs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Merged:
    """The sections that concern one request, references resolved; *secrets* came from variables."""

    runtime: Mapping[str, Any]
    execution: Mapping[str, Any]
    benchmark: Mapping[str, Any]
    harness: Mapping[str, Any]
    environment: Mapping[str, Any]
    referenced: Mapping[str, str]


def check_config(config: Mapping[str, Any], known: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse unknown sections and component ids; *known* has the ids that each component section may hold.

    Raises:
        UsageError: naming the nearest known section or id.
    """
    for section in config:
        if section == "models":
            raise UsageError("models", "a configuration holds no models", "choose the model on the command line")
        if section not in SECTIONS:
            raise unknown_key("", section, SECTIONS)
    for section in COMPONENT_SECTIONS:
        for name in mapping(config.get(section), section):
            if name not in known[section]:
                raise unknown_key(section, name, known[section])


def merged(config: Mapping[str, Any], choices: Choices, env: Mapping[str, str]) -> Merged:
    """Return what *config* and *choices* say together, for the chosen components only.

    Raises:
        UsageError: a section is no mapping, or a reference cannot be resolved.
    """
    referenced: dict[str, str] = {}

    def section(
        path: str, *steps: str, over: Mapping[str, Any], expanded: frozenset[str] = frozenset()
    ) -> Mapping[str, Any]:
        found: Any = config
        for step in steps:
            found = mapping(found, path).get(step)
        resolved: dict[str, Any] = {}
        for key, value in merge(mapping(found, path), mapping(over, path)).items():
            replaced, used = (expand if key in expanded else resolve)(value, env, f"{path}.{key}")
            referenced.update(used)
            resolved[key] = replaced
        return resolved

    return Merged(
        section("runtime", "runtime", over=choices.runtime),
        section("execution", "execution", over=choices.execution),
        section(f"benchmarks.{choices.benchmark}", "benchmarks", choices.benchmark, over=choices.benchmark_params),
        section(f"harnesses.{choices.harness}", "harnesses", choices.harness, over=choices.harness_params),
        section(
            f"environments.{choices.environment}",
            "environments",
            choices.environment,
            over=choices.environment_params,
            expanded=VARIABLE_KEYS,
        ),
        referenced,
    )


def model_spec(choices: Choices, env: Mapping[str, str]) -> ModelSpec | None:
    """Return the chosen model; its endpoint and key may be references.

    Raises:
        UsageError: a reference cannot be resolved, or model options are given without a model.
    """
    options = {
        "--model-base-url": choices.model_base_url,
        "--model-api-key": choices.model_api_key,
        "--model-api-protocol": choices.model_api_protocol,
        "--model-params": choices.model_params,
    }
    if choices.model is None:
        for option, value in options.items():
            if value:
                raise UsageError(option, "is given, but no model", "name the model after the harness")
        return None
    if not choices.model.strip():
        raise UsageError("model", "the name is empty", "give the id that the endpoint knows")
    params, _ = resolve(dict(mapping(choices.model_params, "model.params")), env, "model.params")
    return ModelSpec(
        choices.model,
        _whole(choices.model_base_url, env, "--model-base-url"),
        _whole(choices.model_api_key, env, "--model-api-key"),
        _protocols(choices.model_api_protocol),
        params,
    )


def _whole(value: str, env: Mapping[str, str], option: str) -> str:
    if not isinstance(value, str):
        raise UsageError(option, f"{value!r} is not text", "quote it")
    resolved, _ = resolve(value, env, option)
    return str(resolved)


def _protocols(value: Any) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise UsageError("--model-api-protocol", f"{value!r} is neither a name nor a list of names", "give a name")
    names = [name for name in names if name not in ("", "auto")]
    return tuple(dict.fromkeys(names))
