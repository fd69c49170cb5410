"""``agentcompass power``: how many tasks show a difference, and which difference so many tasks show."""

from __future__ import annotations

import argparse
import json
import logging
import math
import statistics

from agentcompass.core.errors import UsageError
from agentcompass.core.metrics.paired import POWER, SIZE, Side, compare, least_difference, tasks_needed
from agentcompass.core.redaction import Redactor

from ..logs import attached, console
from .cmd_compare import measured_runs
from .options import number


def run(args: argparse.Namespace) -> int:
    """Print the answer for the spread that was given, or that one run or two show."""
    difference = _positive(number(args.difference, "--difference", float), "--difference", 0.05)
    spread, tasks = _assumed(args)
    document = {
        "difference": difference,
        "spread": spread,
        "size": SIZE,
        "power": POWER,
        "tasks_needed": tasks_needed(difference, spread),
        "tasks": tasks,
        "detectable": least_difference(spread / math.sqrt(tasks)) if tasks else None,
    }
    if args.output == "json":
        print(json.dumps(document, indent=2))
        return 0
    print(
        f"{document['tasks_needed']} tasks show a difference of {difference:g}, with chance {POWER:.0%} at {SIZE:.0%}"
    )
    print(f"assumed: differences within tasks have the standard deviation {spread:.3g}")
    if tasks:
        print(f"{tasks} tasks show a difference of {document['detectable']:.3g}")
    return 0


def _assumed(args: argparse.Namespace) -> tuple[float, int | None]:
    """Return the spread of the differences, and how many tasks there are."""
    tasks = number(args.tasks, "--tasks", int)
    if tasks is not None and tasks < 2:
        raise UsageError("--tasks", f"{tasks} tasks show nothing", "give 2 or more")
    if not args.runs:
        return _positive(number(args.spread, "--spread", float), "--spread", 0.5), tasks
    if len(args.runs) > 2 or args.spread is not None:
        raise UsageError("power", "takes one run, or two, or --spread", "give one of them")
    with attached(console(logging.getLevelName(logging.WARNING), Redactor([]))):
        sides = [run.side for run in measured_runs(args.runs)]
    if len(sides) == 1:
        return _alone(sides[0]), tasks or len(sides[0].values)
    found = compare(*sides)
    if not found.standard_error:
        raise UsageError("power", "the two runs show no spread of differences", "give --spread")
    return found.standard_error * math.sqrt(found.common), tasks or found.common


def _alone(side: Side) -> float:
    """Return the spread of the differences to a run that scatters like *side*, and whose tasks go their own ways.

    Two runs of the same tasks mostly go together, and differ less.
    """
    values = list(side.values.values())
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    if not spread:
        raise UsageError("power", "the run shows no spread between tasks", "give --spread")
    return math.sqrt(2) * spread


def _positive(value: float | None, option: str, default: float) -> float:
    if value is None:
        return default
    if not (math.isfinite(value) and value > 0):
        raise UsageError(option, f"{value} is not a finite positive number", "give a number above 0")
    return value
