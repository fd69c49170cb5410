"""``agentcompass compare``: runs against a baseline, paired by task."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence

from agentcompass.core.errors import UsageError
from agentcompass.core.metrics.comparison import compared, document, lines, markdown
from agentcompass.core.metrics.sides import Measured, measured
from agentcompass.core.redaction import Redactor, secrets_among

from ..logs import attached, console
from ..stores.saved_run import SavedRun

_NAMED = 5  # tasks that a warning names


def run(args: argparse.Namespace) -> int:
    """Print the comparison."""
    redactor = Redactor(secrets_among(os.environ))
    with attached(console(logging.getLevelName(logging.WARNING), redactor)):
        first, *others = measured_runs([args.baseline, *args.others])
    found = compared(first, others)
    if args.output == "json":
        print(json.dumps(redactor.document(document(first, found)), indent=2, ensure_ascii=False))
    elif args.output == "markdown":
        sys.stdout.write(redactor.text(markdown(first, found)))
    else:
        print("\n\n".join(redactor.text("\n".join(lines(entry))) for entry in found))
    return 0


def measured_runs(folders: Sequence[str]) -> list[Measured]:
    """Return the runs in *folders*, which have to be of one benchmark and one measure.

    Raises:
        UsageError: they are not, or one is no run.
    """
    saved = [SavedRun(folder) for folder in folders]
    names = _names(saved)
    found = []
    for name, one in zip(names, saved, strict=True):
        contract = one.contract
        found.append(measured(name, contract, one.plan, one.tasks(), one.observations(contract)))
        _require_alike(saved[0], one, found[0], found[-1])
    return found


def _names(saved: Sequence[SavedRun]) -> list[str]:
    """Return what tells the runs apart: their ids, else their folders."""
    ids = [str(one.info.get("run_id", one.path.name)) for one in saved]
    return ids if len(set(ids)) == len(ids) else [str(one.path) for one in saved]


def _require_alike(first: SavedRun, other: SavedRun, baseline: Measured, run: Measured) -> None:
    benchmarks = [one.request["benchmark"]["id"] for one in (first, other)]
    if benchmarks[0] != benchmarks[1]:
        problem = f"is a run of {benchmarks[1]!r}, the baseline one of {benchmarks[0]!r}"
        raise UsageError(str(other.path), problem, "compare runs of one benchmark")
    if baseline.series.partition(".")[0] != run.series.partition(".")[0]:
        raise UsageError(
            str(other.path), f"measures {run.series}, the baseline {baseline.series}", "use the same metric"
        )
    if baseline.series != run.series:
        text = f"warning: {run.side.name} is measured by {run.series}, the baseline by {baseline.series}"
        print(text, file=sys.stderr)
    before, now = first.digests(), other.digests()
    changed = [task for task in before if task in now and before[task] != now[task]]
    if changed:
        names = ", ".join(changed[:_NAMED]) + (", ..." if len(changed) > _NAMED else "")
        text = f"warning: in {run.side.name}, {len(changed)} tasks ask or expect something else: {names}"
        print(text, file=sys.stderr)
