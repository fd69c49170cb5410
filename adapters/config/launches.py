"""Orchestration files become checked requests."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentcompass.core.config.fields import count
from agentcompass.core.config.launch import LaunchRequest, Orchestration, parse_launch
from agentcompass.core.errors import UsageError
from agentcompass.core.model.request import Output

from ..engine.host import Host
from .files import load
from .requests import Prepared, prepare


@dataclass(frozen=True, slots=True)
class PreparedLaunch:
    """The requests of an orchestration, checked, in order, and how many executions they share."""

    requests: tuple[tuple[str, Prepared], ...]
    slots: int


def prepare_launch(
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    runtime: Mapping[str, Any] | None = None,
    task_concurrency: int | None = None,
    run_id: str | None = None,
    config_paths: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    host: Host | None = None,
) -> PreparedLaunch:
    """Return the checked requests of a file or document; *runtime* and *task_concurrency* lie over it.

    Raises:
        UsageError: anything about it is wrong; the error names the request. Nothing has been created.
    """
    env = os.environ if env is None else env
    host = host or Host()
    document = source if isinstance(source, Mapping) else load(Path(source))
    orchestration = parse_launch(document, env, runtime or {})
    prepared = tuple(
        (request.name, _prepared(request, run_id, config_paths, env, host)) for request in orchestration.requests
    )
    slots = _slots(orchestration, prepared[0][1], task_concurrency)
    return PreparedLaunch(tuple((name, _sharing(one, slots)) for name, one in prepared), slots)


def _sharing(prepared: Prepared, slots: int) -> Prepared:
    """Return *prepared* with the slots of all requests, which it is recorded with."""
    execution = replace(prepared.request.execution, task_concurrency=slots)
    return replace(prepared, request=replace(prepared.request, execution=execution))


def _prepared(
    request: LaunchRequest, run_id: str | None, config_paths: Sequence[str], env: Mapping[str, str], host: Host
) -> Prepared:
    output = Output(request.run_name, run_id if run_id is not None else request.run_id)
    try:
        return prepare(request.choices, config_paths=config_paths, output=output, env=env, host=host)
    except UsageError as exc:
        raise UsageError(f"request {request.name!r}: {exc.field}", exc.problem, exc.mend) from exc


def _slots(orchestration: Orchestration, first: Prepared, wanted: int | None) -> int:
    if wanted is not None:
        return int(count(1)(wanted, "--task-concurrency"))
    if orchestration.task_concurrency is not None:
        return orchestration.task_concurrency
    return first.request.execution.task_concurrency
