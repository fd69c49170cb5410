"""The fields of the sections ``execution`` and ``runtime``, and those that every benchmark has.

Sources of the defaults: the user guide's run controls and timeouts pages; each is written here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import UsageError
from ..model.request import AttemptPlan, Execution, Runtime, Strategy, TaskSelection
from .artifacts import ARTIFACTS
from .fields import (
    Field,
    Section,
    choice,
    count,
    flag,
    names,
    nested,
    non_negative,
    nullable,
    parse_section,
    patterns,
    positive_factor,
    positive_seconds,
    table,
    text,
)
from .layers import mapping
from .words import AGGREGATION_MODES, LEVELS, PROGRESS_MODES

DEFAULT_PROVIDER_LIMIT = 128
DEFAULT_REMOTE_OPEN_QPS = 10.0

_seconds = nullable(positive_seconds)
_factor = nullable(positive_factor)


def _strategy(value: Any, path: str) -> Strategy:
    return Strategy(choice(*Strategy)(value, path))


ATTEMPTS: Section = (
    Field("k", "integer", 1, "Attempts per task.", count(1)),
    Field(
        "strategy",
        "avg | pass",
        Strategy.AVG,
        "How attempts become a task's value; pass needs a binary primary metric and stops at the first success.",
        _strategy,
    ),
)
_attempts = nested(ATTEMPTS, AttemptPlan)

EXECUTION: Section = (
    Field("task_concurrency", "integer", 32, "Attempt executions at the same time, retries included.", count(1)),
    Field("attempts", "mapping", _attempts({}, "attempts"), "Attempts per task: k and strategy.", _attempts),
    Field("keep_environment", "boolean", False, "Leave every sandbox open, for debugging.", flag),
    Field("max_retries", "integer", 0, "Extra executions that one attempt may use, for whatever reason.", count(0)),
    Field(
        "retry_pattern_list",
        "list of regular expressions or null",
        None,
        "Which ERROR issues are retried, by message or code; FATAL always is, WARNING never.",
        patterns,
    ),
    Field("retry_min_delay_seconds", "seconds", 5.0, "Longest wait before the first retry; doubles.", positive_seconds),
    Field("retry_max_delay_seconds", "seconds", 60.0, "Longest wait before any retry.", positive_seconds),
    Field("run_timeout_seconds", "seconds or null", None, "Budget of one run of the agent; null inherits.", _seconds),
    Field("evaluation_timeout_seconds", "seconds or null", None, "Budget of one grading; null inherits.", _seconds),
    Field("timeout_multiplier", "factor", 1.0, "Stretches both budgets, wherever they come from.", positive_factor),
    Field("run_timeout_multiplier", "factor or null", None, "Replaces timeout_multiplier for the run.", _factor),
    Field("evaluation_timeout_multiplier", "factor or null", None, "Replaces it for the grading.", _factor),
    Field(
        "run_timer_compensation_seconds",
        "seconds",
        120.0,
        "What the outer limit adds to the harness's own budget.",
        positive_seconds,
    ),
    Field(
        "runresult_collect_timeout_seconds",
        "seconds",
        60.0,
        "Budget of collecting the harness's result.",
        positive_seconds,
    ),
    Field("speculative", "boolean", False, "With strategy pass: start attempts before earlier ones have failed.", flag),
    *ARTIFACTS,
    Field("enabled_recipes", "list of recipe ids", (), "Only these recipes; [] for all that are on by default.", names),
)

RUNTIME: Section = (
    Field("store", "id of a store", "json_files", "What keeps the records of a run.", text),
    Field("results_dir", "path", "results", "Where run directories go.", text),
    Field("data_dir", "path", "data", "Where benchmarks keep what they download.", text),
    Field("timeout_seconds", "seconds", 360000.0, "Deadline of the whole run; 0 for none.", non_negative),
    Field("cleanup_grace_seconds", "seconds", 30.0, "How long a stopped run may tidy up.", non_negative),
    Field(
        "provider_limits",
        "mapping from environment to integer",
        {},
        f"Attempt executions at the same time on one provider; {DEFAULT_PROVIDER_LIMIT} unless given, 0 for no limit.",
        table(count(0)),
    ),
    Field(
        "env_open_qps",
        "mapping from environment to number",
        {},
        f"Sandboxes opened per second on one provider; 0 for no pacing, which is the default of local providers "
        f"(remote ones: {DEFAULT_REMOTE_OPEN_QPS:g}).",
        table(non_negative),
    ),
    Field("reuse", "boolean", False, "Keep what an earlier run of the same place has finished.", flag),
    Field("reuse_run_id", "text or null", None, "That run by its id; null for the latest.", nullable(text)),
    Field("checkpoint_resume", "boolean", True, "Grade saved work of an earlier run without running the agent.", flag),
    Field("progress", "auto | plain | none", "auto", "What the terminal shows while running.", choice(*PROGRESS_MODES)),
    Field("log_level", "level", "INFO", "Least level of messages on the terminal.", choice(*LEVELS)),
    Field("file_log_level", "level", "DEBUG", "Least level of messages in the run's log file.", choice(*LEVELS)),
)

_ALIASES = {"harness_result_timeout_seconds": "runresult_collect_timeout_seconds"}


def _ids(value: Any, path: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    items = [value] if isinstance(value, str | int) and not isinstance(value, bool) else value
    if not isinstance(items, list) or not all(isinstance(i, str | int) and not isinstance(i, bool) for i in items):
        raise UsageError(path, f"{value!r} is not a list of task ids", "give a list")
    return tuple(str(item) for item in items)


SELECTION: Section = (
    Field("sample_ids", "list of task ids or null", None, "Only these tasks.", _ids),
    Field("limit", "integer or null", None, "Only the first so many tasks.", nullable(count(1))),
    Field(
        "aggregation_mode",
        " | ".join(AGGREGATION_MODES),
        AGGREGATION_MODES[0],
        "How task values become one: all tasks alike, categories alike, or by category_hierarchy.",
        choice(*AGGREGATION_MODES),
    ),
    Field("category_hierarchy", "mapping or null", None, "A tree of categories with weights.", nullable(mapping)),
    Field(
        "cluster_by",
        "text or null",
        None,
        "What makes tasks depend on each other: category, or a path into their metadata (metadata.repo).",
        nullable(text),
    ),
)


def without_aliases(given: Any, path: str) -> tuple[dict[str, Any], list[str]]:
    """Return the section *given* with former names replaced, and a warning for each.

    Raises:
        UsageError: the former and the present name are both given, with different values.
    """
    values, warnings = dict(mapping(given, path)), []
    if "download_artifacts" in values:
        raise UsageError(f"{path}.download_artifacts", "is not a key any more", "use save_artifacts")
    for old, new in _ALIASES.items():
        if old in values:
            value = values.pop(old)
            if values.setdefault(new, value) != value:
                raise UsageError(f"{path}.{old}", f"is the former name of {new}, which differs", f"give only {new}")
            warnings.append(f"{path}.{old} is deprecated: use {path}.{new}")
    return values, warnings


def parse_execution(given: Mapping[str, Any]) -> tuple[Execution, list[str]]:
    """Return the rules of execution, and warnings for the user.

    Raises:
        UsageError: a key or a value is wrong, or the delays contradict each other.
    """
    values, warnings = without_aliases(given, "execution")
    execution = Execution(**parse_section(EXECUTION, values, "execution"))
    if execution.retry_max_delay_seconds < execution.retry_min_delay_seconds:
        raise UsageError(
            "execution.retry_max_delay_seconds",
            f"{execution.retry_max_delay_seconds:g} is below retry_min_delay_seconds",
            f"give {execution.retry_min_delay_seconds:g} or more",
        )
    return execution, warnings


def parse_runtime(given: Mapping[str, Any]) -> Runtime:
    """Return the rules of the process.

    Raises:
        UsageError: a key or a value is wrong.
    """
    return Runtime(**parse_section(RUNTIME, given, "runtime"))


def parse_selection(given: Mapping[str, Any], path: str) -> tuple[TaskSelection, dict[str, Any]]:
    """Split a benchmark's parameters into those that every benchmark has and its own.

    Raises:
        UsageError: a value is wrong.
    """
    common = {field.name for field in SELECTION}
    mine = {key: value for key, value in given.items() if key in common}
    selection = TaskSelection(**parse_section(SELECTION, mine, path))
    if selection.aggregation_mode == "category_hierarchy" and not selection.category_hierarchy:
        raise UsageError(f"{path}.category_hierarchy", "is missing", "aggregation_mode category_hierarchy needs it")
    return selection, {key: value for key, value in given.items() if key not in common}
