"""The report for people: the headline with its uncertainty and its counts, then the tables, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .markdown import digits, escaped, number, table
from .reducers import Reducer
from .report import Counts, Curve, GroupScore, Interval, MetricReport, MetricSeries, Quantity, Score

_SENTENCE = 1000  #: characters of a line that may hold several names
_COUNTS = ("Evaluated", "Unavailable", "Invalidated", "Error", "Total")
_FORMULAS = {
    Reducer.NATIVE: "the value",
    Reducer.AVG: "mean of k attempts",
    Reducer.PASS: "any of k attempts succeeds",
}


def headline_text(report: MetricReport) -> str:
    """Return the first number of *report* in a line: ``0.533 ± 0.170 (95 % CI 0.06–1.00, n=5 tasks × 3)``."""
    series, score = report.headline, report.headline.score
    if score.shown is None:
        return "no score: no task was evaluated"
    most = series.display.precision
    coarse = digits(score.standard_error, most)
    fine = min(coarse + 1, most)
    error = "" if score.standard_error is None else f" ± {number(score.standard_error, fine)}"
    interval = _interval(score.interval, coarse)
    certainty = f"{_level(score.interval)} CI {interval}" if interval else f"no interval: {score.interval.note}"
    reference = " (reference)" if report.evaluation_failed else ""
    return f"{number(score.shown, fine)}{error} ({certainty}, {_size(series)}){reference}"


def counts_text(report: MetricReport) -> str:
    """Return the counts of the first series in a line, as the sum that they are."""
    counts, attempts = report.headline.counts, report.attempts
    return (
        f"{counts.total} tasks = {counts.evaluated} evaluated + {counts.unavailable} unavailable + "
        f"{counts.invalidated} invalidated; {counts.error} of {attempts.finished} finished attempts ended with ERROR "
        "or FATAL"
    )


def summary_markdown(report: MetricReport, facts: Mapping[str, str]) -> str:
    """Return summary.md: *facts* (Benchmark, Model, Run id, …) are shown in their order, the benchmark as title."""
    benchmark = next((value for key, value in facts.items() if key.lower() == "benchmark"), "")
    title = f"{escaped(benchmark.upper())} Evaluation Results".strip()
    lines = [f"# {title}", "", *table(["Fact", "Value"], 2, ([escaped(k), escaped(v)] for k, v in facts.items()))]
    lines += _headline(report) + _metrics(report) + _curves(report.curves) + _groups(report) + _resources(report)
    if report.evaluation_failed:
        invalid, total = report.headline.counts.invalidated, report.headline.counts.total
        lines.append(
            f"**No official score: FATAL issues invalidated {invalid} of {total} tasks. "
            "Values marked (reference) cover the remaining tasks only.**"
        )
    return "\n".join(lines).rstrip("\n") + "\n"


def _headline(report: MetricReport) -> list[str]:
    series = report.headline
    lines = [f"**{_label(series)}: {escaped(headline_text(report), _SENTENCE)}**", "", f"{counts_text(report)}.", ""]
    if report.k > 1:
        plan = report.attempts
        lines += [
            f"Attempt plan: k={report.k}, strategy {report.strategy}; {plan.planned} planned = "
            f"{plan.finished} finished + {plan.not_needed} not needed + {plan.missing} missing.",
            "",
        ]
    lines += [
        f"{text}\n" for text in (bounds_text(report), _partial_text(series), escaped(series.note, _SENTENCE)) if text
    ]
    return lines


def bounds_text(report: MetricReport) -> str:
    """Return what the first number could be if tasks without a value had one; empty if all have."""
    series = report.headline
    if series.bounds is None:
        return ""
    total, precision = series.covered.total, series.display.precision
    low, high = number(series.bounds.low, precision), number(series.bounds.high, precision)
    missing = total - series.covered.evaluated
    return f"{missing} of {total} tasks have no value: with all of them at worst {low}, at best {high}."


def _partial_text(series: MetricSeries) -> str:
    if series.partial is None:
        return ""
    value = number(series.partial.value, series.display.precision)
    return (
        f"Partial mean, not official: {value} over {series.partial.tasks} tasks, "
        f"{series.partial.incomplete} of them with fewer than {series.k} values."
    )


def _metrics(report: MetricReport) -> list[str]:
    header = ["Metric", "Role", "Formula", "Value", "SE", "95 % CI", *_COUNTS]
    return ["## Metrics", "", *table(header, 3, (_metric_row(series, report) for series in report.series))]


def _metric_row(series: MetricSeries, report: MetricReport) -> list[str]:
    precision = series.display.precision
    return [
        _label(series),
        series.role.value,
        _FORMULAS[series.reducer],
        _value(series.score, precision),
        number(series.score.standard_error, precision),
        _interval(series.score.interval, precision) or "-",
        *_count_cells(series.counts),
    ]


def _curves(curves: Iterable[Curve]) -> list[str]:
    lines = []
    for curve in curves:
        lines += [
            f"## Curve: {escaped(curve.curve_id)}",
            "",
            f"{curve.formula} for c successes in k attempts; {curve.counts.evaluated} tasks",
            "",
        ]
        rows = (
            [str(p.j), _value(p.score, 4), number(p.score.standard_error, 4), _interval(p.score.interval, 4) or "-"]
            for p in curve.points
        )
        lines += table(["j", "Value", "SE", "95 % CI"], 0, rows)
    return lines


def _groups(report: MetricReport) -> list[str]:
    lines = []
    if len(report.headline.categories) > 1:
        lines += _group_table("category", report, {s.series_id: s.categories for s in report.series})
    if report.headline.hierarchy:
        lines += _group_table("hierarchy", report, {s.series_id: s.hierarchy for s in report.series})
    return lines


def _group_table(kind: str, report: MetricReport, scores: Mapping[str, Mapping[str, GroupScore]]) -> list[str]:
    """Each series has a column of values; counts, weight and interval are the first one's."""
    first = report.headline
    header = [kind.capitalize(), *map(_label, report.series), "95 % CI", "Weight", *_COUNTS]
    rows = (
        [
            escaped(name),
            *(_value(scores[s.series_id][name].score, s.display.precision) for s in report.series),
            _interval(group.score.interval, first.display.precision) or "-",
            number(group.aggregation_weight, 4),
            *_count_cells(group.counts),
        ]
        for name, group in scores[first.series_id].items()
    )
    return [f"## Details: {kind}", "", *table(header, 1, rows)]


def _count_cells(counts: Counts) -> list[str]:
    return [str(n) for n in (counts.evaluated, counts.unavailable, counts.invalidated, counts.error, counts.total)]


def _resources(report: MetricReport) -> list[str]:
    found = report.resources
    known = [quantity for quantity in found.quantities if quantity.attempts]
    header = ["Resource", "Mean per task", "95 % CI", "Tasks", "Total", "Attempts"]
    lines = ["## Resources", ""]
    if known:
        lines += table(header, 1, (_quantity_row(quantity) for quantity in known))
        lines += [f"Tasks: of {found.tasks} with all their attempts. Attempts: of {found.attempts} finished.", ""]
    if found.cost_per_success is not None:
        lines += [f"Cost per success: ${found.cost_per_success:.4f} ({found.priced_successes} successes).", ""]
    retried = f"{found.retried_tasks} tasks show an attempt that was a retry"
    return [*lines, f"Retries: {found.retries}, of {found.retried_attempts} attempts; {retried}.", ""]


def _quantity_row(quantity: Quantity) -> list[str]:
    precision = 4 if quantity.unit == "USD" else 1
    return [
        f"{escaped(quantity.id)} ({quantity.unit})",
        number(quantity.mean, precision),
        _interval(quantity.interval, precision) or "-",
        str(quantity.tasks),
        number(quantity.total, precision if isinstance(quantity.total, float) else 0),
        str(quantity.attempts),
    ]


def _label(series: MetricSeries) -> str:
    name = escaped(series.display.label)
    return name if series.k == 1 else f"{name} ({series.reducer}@{series.k})"


def _value(score: Score, precision: int) -> str:
    reference = score.value is None and score.reference_value is not None
    return number(score.shown, precision) + (" (reference)" if reference else "")


def _interval(interval: Interval, precision: int) -> str:
    if interval.low is None or interval.high is None:
        return ""
    return f"{number(interval.low, precision)}–{number(interval.high, precision)}"


def _level(interval: Interval) -> str:
    return f"{interval.level * 100:g} %"


def _size(series: MetricSeries) -> str:
    n = series.covered.evaluated
    return f"n={n} task{'' if n == 1 else 's'}" + (f" × {series.k}" if series.k > 1 else "")
