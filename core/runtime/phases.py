"""The phases of an attempt, and which may follow which: the table that the attempt's diagram is made from."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """Where an attempt is; the words of the progress stream."""

    PLAN = "plan"
    OPEN_ENVIRONMENT = "open_environment"
    PREPARE_TASK = "prepare_task"
    START_HARNESS = "start_harness"
    RUN_HARNESS = "run_harness"
    RUN_TASK = "run_task"
    COLLECT_HARNESS_RESULT = "collect_harness_result"
    COLLECT_ARTIFACTS = "collect_artifacts"
    DOWNLOAD_ARTIFACTS = "download_artifacts"
    EVALUATE_ENVIRONMENT = "evaluate_environment"
    EVALUATE = "evaluate"
    RETRY_WAIT = "retry_wait"
    SAVE_PARTIAL = "save_partial"


_ANYWHERE = frozenset({Phase.RETRY_WAIT, Phase.SAVE_PARTIAL})  # a phase that fails for good goes straight there
_KEEPING = frozenset({Phase.COLLECT_ARTIFACTS, Phase.DOWNLOAD_ARTIFACTS})
_GRADING = frozenset({Phase.EVALUATE_ENVIRONMENT, Phase.EVALUATE})

FOLLOWERS: dict[Phase | None, frozenset[Phase]] = {
    None: frozenset({Phase.PLAN}),
    Phase.PLAN: frozenset({Phase.OPEN_ENVIRONMENT}) | _ANYWHERE,
    Phase.OPEN_ENVIRONMENT: frozenset({Phase.PREPARE_TASK}) | _ANYWHERE,
    Phase.PREPARE_TASK: frozenset({Phase.START_HARNESS, Phase.RUN_TASK}) | _ANYWHERE,
    Phase.START_HARNESS: frozenset({Phase.RUN_HARNESS}) | _ANYWHERE,
    Phase.RUN_HARNESS: frozenset({Phase.COLLECT_HARNESS_RESULT}) | _ANYWHERE,
    Phase.COLLECT_HARNESS_RESULT: _KEEPING | _GRADING | _ANYWHERE,
    Phase.RUN_TASK: _KEEPING | _GRADING | _ANYWHERE,
    Phase.COLLECT_ARTIFACTS: frozenset({Phase.DOWNLOAD_ARTIFACTS}) | _GRADING | _ANYWHERE,
    Phase.DOWNLOAD_ARTIFACTS: _GRADING | _ANYWHERE,
    Phase.EVALUATE_ENVIRONMENT: frozenset({Phase.EVALUATE}) | _ANYWHERE,
    Phase.EVALUATE: _ANYWHERE | frozenset({Phase.PREPARE_TASK}),  # of a further step
    Phase.RETRY_WAIT: frozenset({Phase.PLAN, Phase.OPEN_ENVIRONMENT}) | _GRADING,
    Phase.SAVE_PARTIAL: frozenset(),
}


def may_follow(before: Phase | None, after: Phase) -> bool:
    """Tell whether an attempt in phase *before* (None: not started) may enter *after*."""
    return after in FOLLOWERS[before]
