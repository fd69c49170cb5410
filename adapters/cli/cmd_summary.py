"""``agentcompass summary``: aggregate a run again from its files, and rewrite only the summary's."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

from agentcompass.core.config.layers import merge
from agentcompass.core.config.sections import parse_selection
from agentcompass.core.errors import unknown_key
from agentcompass.core.metrics.aggregate import aggregate
from agentcompass.core.metrics.hierarchy import check_hierarchy
from agentcompass.core.metrics.report import MetricReport
from agentcompass.core.metrics.summary import counts_text, headline_text, summary_markdown
from agentcompass.core.redaction import Redactor, secrets_among

from ..logs import attached, console
from ..stores.json_files import dumps, replace_file
from ..stores.saved_run import SavedRun
from .options import json_object

_CHANGEABLE = ("aggregation_mode", "category_hierarchy")


def run(args: argparse.Namespace) -> int:
    """Aggregate, write (or only print), and return 0 if there are official scores, else 1."""
    redactor = Redactor(secrets_among(os.environ))
    with attached(console(logging.getLevelName(logging.WARNING), redactor)):
        saved = SavedRun(args.run_dir)
        report = summarized(saved, json_object(args.benchmark_params, "--benchmark-params"))
    document, text = redactor.document(report.document()), redactor.text(summary_markdown(report, facts(saved.info)))
    if not args.dry_run:
        replace_file(str(saved.path / "metrics.json"), dumps(document, indent=2))
        replace_file(str(saved.path / "summary.md"), text.encode("utf-8", "replace"))
    if args.output == "json":
        print(json.dumps(document, indent=2, ensure_ascii=False))
    elif args.dry_run:
        sys.stdout.write(text)
    else:
        print(f"score    {headline_text(report)}\ntasks    {counts_text(report)}\nfiles    {saved.path}")
    return 0 if not report.evaluation_failed and report.headline.score.value is not None else 1


def summarized(saved: SavedRun, override: Mapping[str, Any]) -> MetricReport:
    """Return the numbers of *saved*, with other aggregation parameters where *override* has them."""
    for key in override:
        if key not in _CHANGEABLE:
            raise unknown_key("--benchmark-params", key, _CHANGEABLE)
    contract = saved.contract
    params = merge(saved.request["benchmark"].get("params", {}), override)
    selection, _ = parse_selection(params, "--benchmark-params")
    if selection.category_hierarchy:
        check_hierarchy(selection.category_hierarchy)
    return aggregate(
        contract=contract,
        plan=saved.plan,
        tasks=saved.tasks(),
        observations=saved.observations(contract),
        mode=selection.aggregation_mode,
        hierarchy=selection.category_hierarchy,
    )


def facts(info: Mapping[str, Any]) -> dict[str, str]:
    """Return what the head of a summary says of a run."""
    request = info["request"]
    named = {
        "Benchmark": request["benchmark"]["id"],
        "Model": request.get("model", {}).get("id", "none"),
        "Harness": request["harness"]["id"],
        "Environment": request["environment"]["id"],
        "Run": info.get("run_id"),
        "Status": info.get("status", "unfinished"),
        "Reason": info.get("error"),
    }
    return {name: str(value) for name, value in named.items() if value is not None}
