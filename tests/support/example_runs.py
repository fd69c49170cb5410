"""Runs of every kind, of the scripted benchmark by the scripted harness."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from agentcompass.adapters.config.requests import prepare
from agentcompass.adapters.engine.evaluate import evaluate
from agentcompass.core.config.request import Choices
from agentcompass.core.model.request import Output

from .scripted import scripted_host

PLAIN = [{"id": "a/B", "category": "x", "cluster": "c", "truth": {"is": [1, None]}}, {"id": "任务 二"}]
EVERYTHING = [
    {"id": "good", "category": "password"},
    {"id": "reset-password", "category": "x", "run": ["warning"]},
    {"id": "fatal", "run": ["fatal"]},
    {"id": "error", "run": ["error"], "grade": ["wrong"]},
    {"id": "crash", "grade": ["crash"]},
    {"id": "sandbox", "run": ["sandbox"]},
    {"id": "nan", "grade": ["nan"]},
    {"id": "mended", "run": ["fatal", "ok"], "grade": ["fatal", "ok"]},
]
TREE = {
    "overall": {
        "aggregation": "unweighted",
        "children": {"token": {"aggregation": "unweighted", "children": {"password": {}}}, "x": {}},
    }
}
SCALED = [{"id": "good", "category": "password"}, {"id": "bad", "category": "x", "grade": ["wrong"]}]
QUICK = {"retry_min_delay_seconds": 0.001, "retry_max_delay_seconds": 0.001}
RETRIED = {"max_retries": 2, "retry_pattern_list": ["^harness_failed$"], **QUICK}

#: parameters of the benchmark, of the execution, of the runtime, by a name for the run
KINDS = {
    "plain": ({"tasks": PLAIN}, {}, {}),
    "attempts": ({"tasks": EVERYTHING, "mode": "reuse"}, {"attempts": {"k": 2}}, {}),
    "retries": ({"tasks": EVERYTHING, "mode": "fresh"}, RETRIED, {}),
    "early-stop": ({"tasks": PLAIN}, {"attempts": {"k": 3, "strategy": "pass"}}, {}),
    "budgets": (
        {"tasks": PLAIN},
        {"run_timeout_seconds": 9, "evaluation_timeout_seconds": 8, "timeout_multiplier": 2},
        {},
    ),
    "hierarchy": ({"tasks": SCALED, "aggregation_mode": "category_hierarchy", "category_hierarchy": TREE}, {}, {}),
    "artifacts": ({"tasks": PLAIN, "mode": "fresh", "artifacts": ["kept.txt", "missing.txt"]}, {}, {}),
    "kept": ({"tasks": PLAIN}, {"keep_environment": True}, {}),
    "rejected": ({"tasks": PLAIN, "rejected": 2}, {}, {}),
    "unloadable": ({"tasks": [], "broken": "the data is gone"}, {}, {}),
    "continued": ({"tasks": EVERYTHING}, RETRIED, {"reuse": True}),
    "expired": ({"tasks": PLAIN}, {}, {"timeout_seconds": 1e-9}),
}


def scripted_run(results: Path, name: str) -> Path:
    """Make the run called *name*, and the one that it continues, and return its folder."""
    benchmark, execution, runtime = KINDS[name]
    if runtime.get("reuse"):
        _run(results, "source", benchmark, {}, {})
    return _run(results, "the-run", benchmark, execution, runtime)


def _run(results: Path, run_id: str, benchmark: Any, execution: Any, runtime: Any) -> Path:
    choices = Choices(
        "scripted",
        "scripted",
        "recording",
        benchmark_params=benchmark,
        execution=execution,
        runtime={"results_dir": str(results), "progress": "none", **runtime},
    )
    output = Output("group/inner", run_id)
    result = asyncio.run(evaluate(prepare(choices, output=output, env={}, host=scripted_host())))
    return Path(result.paths["run_dir"])
