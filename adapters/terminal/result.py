"""The result of a run as a short table on stdout."""

from __future__ import annotations

from agentcompass.core.metrics.report import MetricReport
from agentcompass.core.metrics.summary import bounds_text, counts_text, headline_text
from agentcompass.core.redaction import Redactor

from ..engine.evaluate import EvaluationResult


def print_result(result: EvaluationResult, redactor: Redactor) -> None:
    """Print what a person wants to know first, and where the rest is."""
    for name, value in rows(result):
        print(f"{name:<8} {redactor.text(value)}")


def rows(result: EvaluationResult) -> list[tuple[str, str]]:
    """Return the lines of the table: a name and a value each."""
    request, report = result.request, result.report
    parties = [request.benchmark.id, request.harness.id, request.model.id if request.model else ""]
    found = [
        ("run", " / ".join(filter(None, parties))),
        ("status", result.status + (f": {result.error}" if result.error else "")),
    ]
    if report is not None:
        found += [("score", headline_text(report)), ("tasks", counts_text(report))]
        if bounds_text(report):
            found.append(("bounds", bounds_text(report)))
        usage = usage_text(report)
        if usage:
            found.append(("usage", usage))
    found += [("time", duration(result.elapsed_seconds)), ("files", result.paths["run_dir"])]
    return found


def usage_text(report: MetricReport) -> str:
    """Return tokens and cost in words, as far as they are known."""
    totals = {quantity.id: quantity.total for quantity in report.resources.quantities}
    tokens = [
        f"{totals[name]:,.0f} {word} tokens"
        for name, word in (
            ("prompt_tokens", "prompt"),
            ("cached_tokens", "cached"),
            ("completion_tokens", "completion"),
        )
        if totals.get(name) is not None
    ]
    cost = totals.get("cost_usd")
    lost = [totals.get(f"discarded_{name}_tokens") for name in ("prompt", "completion")]
    discarded = sum(amount for amount in lost if amount is not None)
    retried = [f"{discarded:,.0f} more tokens in executions that were retried"] if discarded else []
    return ", ".join([*tokens, *([f"${cost:,.4f}"] if cost is not None else []), *retried])


def duration(seconds: float) -> str:
    """Return *seconds* as a person would say it."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest:.0f} s" if minutes else f"{rest:.1f} s"
