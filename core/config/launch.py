"""Orchestration files: several named requests over common defaults, wholly explicit.

Source: the user guide's page on ``agentcompass launch``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import UsageError, unknown_key
from ..records.names import run_levels, safe_name
from .fields import count, flag, text
from .layers import mapping, merge
from .references import resolve
from .request import Choices

VERSIONS = (1,)
_TOP = ("version", "task_concurrency", "runtime", "defaults", "requests")
_SECTIONS = ("model", "benchmark", "harness", "environment", "execution", "runtime", "output")
_COMPONENTS = ("benchmark", "harness", "environment")
_MODEL = ("id", "base_url", "api_key", "api_protocol", "params")
_REQUEST_RUNTIME = ("reuse", "reuse_run_id", "checkpoint_resume")
_OUTPUT = ("run_name", "run_id")


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One request of an orchestration: its *name*, and what `prepare` takes."""

    name: str
    choices: Choices
    run_name: str = ""
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class Orchestration:
    """Requests in the order of their declaration; *task_concurrency* None for the configuration's."""

    requests: tuple[LaunchRequest, ...]
    task_concurrency: int | None = None
    runtime: Mapping[str, Any] = field(default_factory=dict)


def parse_launch(document: Mapping[str, Any], env: Mapping[str, str], runtime: Mapping[str, Any]) -> Orchestration:
    """Return the orchestration that *document* declares; *runtime* (of the command line) lies over the file's.

    Raises:
        UsageError: an unknown key, a reference that cannot be resolved, a name that is missing or taken.
    """
    for key in document:
        if key not in _TOP:
            raise unknown_key("", key, _TOP)
    version = document.get("version", VERSIONS[-1])
    if version not in VERSIONS:
        raise UsageError("version", f"{version!r} is not supported", f"use {VERSIONS[-1]}, or leave it out")
    concurrency = document.get("task_concurrency")
    defaults = _sections(mapping(document.get("defaults"), "defaults"), "defaults", env)
    given = document.get("requests")
    if not isinstance(given, list) or not given:
        raise UsageError("requests", f"{given!r} is not a list of requests", "declare at least one")
    common = merge(mapping(document.get("runtime"), "runtime"), runtime)
    requests = tuple(_request(entry, f"requests[{n}]", defaults, common, env) for n, entry in enumerate(given))
    _require_apart(requests)
    return Orchestration(requests, None if concurrency is None else count(1)(concurrency, "task_concurrency"), common)


def _sections(given: Mapping[str, Any], path: str, env: Mapping[str, str]) -> dict[str, Any]:
    """Return the sections of a request or of the defaults, the references of model and ids resolved."""
    for key in given:
        if key not in _SECTIONS:
            raise unknown_key(path, key, (*_SECTIONS, "name") if path != "defaults" else _SECTIONS)
    sections = {name: dict(mapping(given[name], f"{path}.{name}")) for name in _SECTIONS if name in given}
    for name in _COMPONENTS:
        if "params" in sections.get(name, {}):
            raise UsageError(f"{path}.{name}.params", "parameters need no wrapper", "write them beside the id")
    _known(sections.get("model", {}), _MODEL, f"{path}.model")
    _known(sections.get("runtime", {}), _REQUEST_RUNTIME, f"{path}.runtime")
    _known(sections.get("output", {}), _OUTPUT, f"{path}.output")
    if "task_concurrency" in sections.get("execution", {}):
        problem = "belongs to the whole orchestration"
        raise UsageError(f"{path}.execution.task_concurrency", problem, "write task_concurrency at the top")
    for name in ("model", "output", "runtime"):
        if name in sections:
            sections[name] = {k: resolve(v, env, f"{path}.{name}.{k}")[0] for k, v in sections[name].items()}
    for name in _COMPONENTS:
        if "id" in sections.get(name, {}):
            sections[name]["id"] = resolve(sections[name]["id"], env, f"{path}.{name}.id")[0]
    return sections


def _known(given: Mapping[str, Any], known: tuple[str, ...], path: str) -> None:
    for key in given:
        if key not in known:
            raise unknown_key(path, key, known)


def _request(
    given: Any, path: str, defaults: Mapping[str, Any], runtime: Mapping[str, Any], env: Mapping[str, str]
) -> LaunchRequest:
    values = dict(mapping(given, path))
    name = values.pop("name", None)
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"{path}.name", f"{name!r} is no name", "give one that is not empty")
    sections = _sections(values, path, env)
    merged = {section: _over(defaults.get(section, {}), sections.get(section, {}), section) for section in _SECTIONS}
    parts = {}
    for section in _COMPONENTS:
        part = merged[section]
        if not isinstance(part.get("id"), str) or not part["id"]:
            raise UsageError(f"{path}.{section}.id", "is missing", f"name a registered {section}")
        parts[section] = part.pop("id"), part
    model = merged["model"]
    output = merged["output"]
    run_id = output.get("run_id")
    return LaunchRequest(
        name,
        Choices(
            parts["benchmark"][0],
            parts["harness"][0],
            parts["environment"][0],
            model.get("id"),
            model.get("base_url", ""),
            model.get("api_key", ""),
            model.get("api_protocol", ""),
            model.get("params", {}),
            parts["benchmark"][1],
            parts["harness"][1],
            parts["environment"][1],
            merged["execution"],
            {**runtime, **_reuse(merged["runtime"], f"{path}.runtime")},
        ),
        text(output.get("run_name", ""), f"{path}.output.run_name"),
        None if run_id in (None, "") else text(run_id, f"{path}.output.run_id"),
    )


def _over(lower: Mapping[str, Any], upper: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Return *upper* over *lower*; another component takes nothing of the defaults for the first one."""
    if section in _COMPONENTS and "id" in upper and upper["id"] != lower.get("id", upper["id"]):
        return dict(upper)
    return merge(lower, upper)


def _reuse(given: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return what a request says of reuse; naming a source asks for it."""
    found = dict(given)
    for name in ("reuse", "checkpoint_resume"):
        if name in found:
            found[name] = flag(found[name], f"{path}.{name}")
    if found.get("reuse_run_id"):
        found.setdefault("reuse", True)
    return found


def _require_apart(requests: tuple[LaunchRequest, ...]) -> None:
    """Refuse names that are equal, or that are one folder."""
    taken: dict[str, str] = {}
    for index, request in enumerate(requests):
        place = "/".join((*run_levels(request.run_name), safe_name(request.name))).casefold()
        if place in taken:
            problem = f"{request.name!r} and {taken[place]!r} are one folder"
            raise UsageError(f"requests[{index}].name", problem, "give another name")
        taken[place] = request.name
