"""The result of a run as a short table on stdout."""

from __future__ import annotations

import sys

from agentcompass.core.metrics.summary import counts_text, headline_text
from agentcompass.core.redaction import Redactor

from ..engine.evaluate import EvaluationResult


def print_result(result: EvaluationResult, redactor: Redactor) -> None:
    """Print what a person wants to know first, and where the rest is."""
    request = result.request
    rows = [
        ("run", f"{request.benchmark.id} / {request.harness.id}" + (f" / {request.model.id}" if request.model else ""))
    ]
    rows.append(("status", result.status + (f": {result.error}" if result.error else "")))
    if result.report is not None:
        rows.append(("score", headline_text(result.report)))
        rows.append(("tasks", counts_text(result.report)))
    rows.append(("files", result.paths["run_dir"]))
    for name, value in rows:
        print(f"{name:<8} {redactor.text(value)}", file=sys.stdout)
