"""The Python API: the command line's options as keyword arguments."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

from agentcompass.adapters.config.requests import Prepared, prepare
from agentcompass.adapters.engine.evaluate import EvaluationResult, evaluate
from agentcompass.adapters.engine.loops import run_alone
from agentcompass.adapters.logs import attached, console
from agentcompass.adapters.terminal.reporters import terminal_reporters
from agentcompass.core.config.layers import merge
from agentcompass.core.config.request import Choices
from agentcompass.core.errors import RunFailedError
from agentcompass.core.model.event import Event
from agentcompass.core.model.request import Output
from agentcompass.core.records.progress import Progress
from agentcompass.ports.reporter import Reporter

T = TypeVar("T")
JsonObject = Mapping[str, Any]
OnProgress = Callable[[Event, Progress], None]


def build_run_request(
    *,
    benchmark: str,
    harness: str,
    model: str | None = None,
    environment: str = "host_process",
    model_base_url: str = "",
    model_api_key: str = "",
    model_api_protocol: str | Sequence[str] = "",
    model_params: JsonObject | None = None,
    benchmark_params: JsonObject | None = None,
    harness_params: JsonObject | None = None,
    environment_params: JsonObject | None = None,
    execution_params: JsonObject | None = None,
    sample_ids: Sequence[str] | None = None,
    limit: int | None = None,
    allow_invalid: bool | None = None,
    task_concurrency: int | None = None,
    k: int | None = None,
    attempt_strategy: str | None = None,
    max_retries: int | None = None,
    retry_pattern_list: Sequence[str] | None = None,
    enabled_recipes: Sequence[str] | None = None,
    recipe_dirs: Sequence[str | os.PathLike[str]] = (),
    keep_environment: bool | None = None,
    provider_limits: Mapping[str, int] | None = None,
    env_open_qps: Mapping[str, float] | None = None,
    timeout_seconds: float | None = None,
    cleanup_grace_seconds: float | None = None,
    results_dir: str | os.PathLike[str] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    run_name: str = "",
    run_id: str | None = None,
    reuse: bool | None = None,
    reuse_run_id: str | None = None,
    checkpoint_resume: bool | None = None,
    progress: str | None = None,
    log_level: str | None = None,
    file_log_level: str | None = None,
    config_path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
) -> Prepared:
    """Return a checked request; None leaves a field to the configuration files and the defaults.

    Raises:
        UsageError: something about it is wrong; nothing has been created.
    """
    return _prepared(locals())


def _prepared(given: Mapping[str, Any]) -> Prepared:
    """Sort the keyword arguments of `build_run_request` into the sections that they belong to."""
    model_params, harness_params, environment_params = (
        given[name] or {} for name in ("model_params", "harness_params", "environment_params")
    )
    selection = _given(
        limit=given["limit"], sample_ids=_listed(given["sample_ids"]), allow_invalid=given["allow_invalid"]
    )
    choices = Choices(
        given["benchmark"],
        given["harness"],
        given["environment"],
        given["model"],
        given["model_base_url"],
        given["model_api_key"],
        given["model_api_protocol"],
        model_params,
        {**(given["benchmark_params"] or {}), **selection},
        harness_params,
        environment_params,
        merge(given["execution_params"] or {}, _execution(given)),
        _runtime(given),
        tuple(os.fspath(folder) for folder in given["recipe_dirs"]),
    )
    paths = given["config_path"]
    paths = [paths] if isinstance(paths, str | os.PathLike) else paths
    output = Output(given["run_name"], given["run_id"])
    return prepare(choices, config_paths=[os.fspath(path) for path in paths], output=output)


def _execution(given: Mapping[str, Any]) -> dict[str, Any]:
    fields = ("task_concurrency", "max_retries", "keep_environment")
    attempts = _given(k=given["k"], strategy=given["attempt_strategy"])
    return _given(
        **{name: given[name] for name in fields},
        attempts=attempts or None,
        retry_pattern_list=_listed(given["retry_pattern_list"]),
        enabled_recipes=_listed(given["enabled_recipes"]),
    )


def _runtime(given: Mapping[str, Any]) -> dict[str, Any]:
    fields = (
        "provider_limits env_open_qps timeout_seconds cleanup_grace_seconds progress log_level file_log_level "
        "reuse reuse_run_id checkpoint_resume"
    )
    folders = {name: os.fspath(given[name]) for name in ("results_dir", "data_dir") if given[name] is not None}
    return _given(**{name: given[name] for name in fields.split()}, **folders)


def _listed(values: Sequence[str] | None) -> list[str] | None:
    return None if values is None else list(values)


async def async_run_evaluation(
    *, on_progress: OnProgress | None = None, reporters: Sequence[Reporter] = (), **arguments: Any
) -> EvaluationResult:
    """Run one evaluation; *arguments* are those of `build_run_request`.

    *on_progress* is called with every event and the state after it; *reporters* take the place of the terminal's.

    Raises:
        UsageError: the request is wrong; nothing has been created.
        RunFailedError: the run ended without official scores; `paths` says where its files are.
    """
    return await run_request(build_run_request(**arguments), on_progress=on_progress, reporters=reporters)


async def run_request(
    prepared: Prepared, *, on_progress: OnProgress | None = None, reporters: Sequence[Reporter] = ()
) -> EvaluationResult:
    """Run a request that `build_run_request` made; otherwise as `async_run_evaluation`."""
    runtime = prepared.runtime
    observers = list(reporters) or list(terminal_reporters(runtime.progress, sys.stderr))
    if on_progress is not None:
        observers.append(_Callback(on_progress))
    with ExitStack() as stack:
        stack.enter_context(attached(console(runtime.log_level, prepared.redactor)))
        result = await evaluate(prepared, observers)
    if result.status != "completed":
        message = result.error or f"the run ended {result.status}"
        raise RunFailedError(prepared.redactor.text(message), result.status, result.paths)
    return result


def run_evaluation(
    *, on_progress: OnProgress | None = None, reporters: Sequence[Reporter] = (), **arguments: Any
) -> EvaluationResult:
    """Run one evaluation and wait for it, also inside a running event loop (a notebook); see `async_run_evaluation`."""
    return _wait(async_run_evaluation(on_progress=on_progress, reporters=reporters, **arguments))


class _Callback(Reporter):
    """Passes events to a function."""

    def __init__(self, function: OnProgress) -> None:
        self._function = function

    def on_event(self, event: Event, progress: Progress) -> None:
        self._function(event, progress)


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _wait(work: Coroutine[Any, Any, T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_alone(work)
    return _in_own_loop(work)


def _in_own_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* in a thread with an event loop of its own: the caller's loop is busy calling us."""
    done: list[T] = []
    failed: list[BaseException] = []

    def call() -> None:
        try:
            done.append(run_alone(work))
        except BaseException as exc:
            failed.append(exc)

    thread = threading.Thread(target=call, name="agentcompass-run")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]
