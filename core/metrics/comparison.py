"""Comparisons for people and programs: one document, as text, as JSON, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from .intervals import LEVEL
from .markdown import digits, escaped, number, table
from .paired import BOOTSTRAP_SEED, RESAMPLES, Comparison, Side, compare, holm
from .sides import COSTS, Measured

_NAMED = 20  #: task ids that a text names of each kind; the document has all


@dataclass(frozen=True, slots=True)
class Compared:
    """One run against the first: scores, and what each cost differs by."""

    scores: Comparison
    costs: dict[str, Comparison]


def compared(first: Measured, others: Sequence[Measured]) -> list[Compared]:
    """Return each of *others* against *first*, its p adjusted for their number."""
    scores = [compare(first.side, other.side) for other in others]
    adjusted = holm([found.decisive_p for found in scores])
    return [
        Compared(replace(found, adjusted=p), _costs(first, other))
        for found, p, other in zip(scores, adjusted, others, strict=True)
    ]


def _costs(first: Measured, other: Measured) -> dict[str, Comparison]:
    found = {}
    for label, _, _ in COSTS:
        sides = [Side(run.side.name, run.costs[label]) for run in (first, other)]
        if sides[0].values and sides[1].values:
            found[label] = compare(*sides)
    return found


def document(first: Measured, found: Sequence[Compared]) -> dict[str, Any]:
    """Return all numbers as JSON."""
    return {
        "baseline": first.side.name,
        "series": first.series,
        "level": LEVEL,
        "bootstrap": {"seed": BOOTSTRAP_SEED, "resamples": RESAMPLES},
        "comparisons": [
            {**asdict(entry.scores), "costs": {label: _cost(cost) for label, cost in entry.costs.items()}}
            for entry in found
        ],
    }


def _cost(cost: Comparison) -> dict[str, Any]:
    return {
        "tasks": cost.common,
        "means": cost.means,
        "difference": cost.difference,
        "standard_error": cost.standard_error,
        "interval": cost.bootstrap or cost.interval,
    }


def lines(found: Compared) -> list[str]:
    """Return one comparison as lines of text."""
    score = found.scores
    told = [f"{score.second} against {score.first}, on the {score.common} tasks that both have"]
    if score.means is None or score.difference is None:
        return [*told, "  nothing to compare"]
    places = digits(score.standard_error, 4)
    fine = min(places + 1, 4)
    told.append(
        f"  score       {number(score.means[0], fine)} -> {number(score.means[1], fine)}, "
        f"difference {_signed(score.difference, fine)}{_certainty(score, places)}"
    )
    told += [f"  {line}" for line in _tests(score)]
    told += [f"  {line}" for line in _flips(score)]
    for label, unit, _ in COSTS:
        if label in found.costs:
            told.append(f"  {label:<11} {_cost_line(found.costs[label], unit)}")
    for name, ids in ((score.first, score.only_first), (score.second, score.only_second)):
        if ids:
            told.append(f"  only {name} has {len(ids)} tasks: {_listed(ids)}")
    return told


def _certainty(score: Comparison, places: int) -> str:
    if score.standard_error is None or score.interval is None:
        return " (too few tasks for an interval)"
    low, high = score.interval
    clustered = ", clustered" if score.clustered else ""
    return (
        f" ± {number(score.standard_error, min(places + 1, 4))} "
        f"({LEVEL:.0%} CI {_signed(low, places)} to {_signed(high, places)}, paired{clustered})"
    )


def _tests(score: Comparison) -> list[str]:
    told = []
    if score.decisive_p is not None:
        name = "exact test" if score.exact is not None else "t test"
        several = f", {score.adjusted:.3g} among all comparisons (Holm)" if score.adjusted != score.decisive_p else ""
        told.append(f"{name:<11} p = {score.decisive_p:.3g}{several}")
    if score.detectable is not None:
        told.append(f"could show   a true difference of {number(score.detectable, 3)}, four times in five")
    return told


def _flips(score: Comparison) -> list[str]:
    flips = score.flips
    if flips is None:
        return []
    told = [f"both right   {flips.both}, neither {flips.neither}"]
    for name, ids in ((score.first, flips.first), (score.second, flips.second)):
        told.append(f"only {name}: {len(ids)}{f': {_listed(ids)}' if ids else ''}")
    return told


def _cost_line(cost: Comparison, unit: str) -> str:
    assert cost.means is not None
    assert cost.difference is not None
    ends = cost.bootstrap or cost.interval
    interval = f" ({LEVEL:.0%} CI {_signed(ends[0], 4)} to {_signed(ends[1], 4)})" if ends else ""
    means = f"{number(cost.means[0], 4)} -> {number(cost.means[1], 4)} {unit}"
    return f"{means}, difference {_signed(cost.difference, 4)}{interval}"


def _signed(value: float, places: int) -> str:
    return f"{'+' if value > 0 else ''}{number(value, places)}"


def _listed(ids: Sequence[str]) -> str:
    more = len(ids) - _NAMED
    return ", ".join(ids[:_NAMED]) + (f", and {more} more" if more > 0 else "")


def markdown(first: Measured, found: Sequence[Compared]) -> str:
    """Return the comparisons as a Markdown page."""
    told = [f"# Against {escaped(first.side.name)}", "", f"Series: {escaped(first.series)}.", ""]
    header = ["Run", "Tasks", "Baseline", "Run's", "Difference", "Standard error", f"{LEVEL:.0%} CI", "p", "p (Holm)"]
    told += table(header, 1, [_row(entry.scores) for entry in found])
    for entry in found:
        told += [f"## {escaped(entry.scores.second)}", ""]
        told += [*(f"- {escaped(line.strip(), 2000)}" for line in lines(entry)[1:]), ""]
    return "\n".join(told).rstrip("\n") + "\n"


def _row(score: Comparison) -> list[str]:
    means = score.means or (None, None)
    ends = score.interval
    p, holm_p = score.decisive_p, score.adjusted
    return [
        escaped(score.second),
        str(score.common),
        number(means[0], 4),
        number(means[1], 4),
        number(score.difference, 4),
        number(score.standard_error, 4),
        f"{number(ends[0], 4)} to {number(ends[1], 4)}" if ends else "-",
        "-" if p is None else f"{p:.3g}",
        "-" if holm_p is None else f"{holm_p:.3g}",
    ]
