"""Finds the records of open sandboxes that runs have left below a results folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ResourceRecord:
    """One record: which provider's sandbox, and where the record lies."""

    provider: str
    id: str
    path: Path


def resource_records(results_dir: str) -> list[ResourceRecord]:
    """Return the records of all runs below *results_dir*; what cannot be read is passed over."""
    found = []
    for path in sorted(Path(results_dir).glob("**/resources/*.json")):
        try:
            document = json.loads(path.read_text("utf-8"))
            found.append(ResourceRecord(document["provider"], document["resource"]["id"], path))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def forget(records: Iterable[ResourceRecord]) -> None:
    """Remove *records*: what they speak of is gone."""
    for record in records:
        record.path.unlink(missing_ok=True)
