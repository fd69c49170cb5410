"""The schemas of a run's files, applied: which file has which, and what is wrong with a document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from agentcompass import schemas

#: Files without a schema are for people.
READABLE = (
    r"summary\.md",
    r"run\.log",
    r"logs/\d{8}_\d{6}\.log",
    r"attempts/[^/]+/\d+/artifacts/.*",
    r"attempts/[^/]+/\d+/retries/\d+\.artifacts/.*",
)
SCHEMAS = {
    r"run_info\.json": "run_info.v3",
    r"params\.json": "params.v1",
    r"tasks\.jsonl": "planned_task.v1",
    r"plans\.jsonl": "plan.v1",
    r"progress\.json": "progress.v1",
    r"progress\.jsonl": "event.v1",
    r"metrics\.json": "metrics.v1",
    r"attempts/[^/]+/\d+/(retries/[1-9]\d*\.)?checkpoint\.json": "checkpoint.v4",
    r"attempts/[^/]+/\d+/spent\.json": "spent.v1",
    r"resources/[0-9a-f]{32}\.json": "resource.v1",
    r"details/[^/]+\.json": "task.v3",
    r"attempts/[^/]+/[1-9]\d*/result\.json": "attempt.v3",
    r"attempts/[^/]+/[1-9]\d*/trajectory\.json": "trajectory.atif-1.8",
    r"attempts/[^/]+/[1-9]\d*/retries/[1-9]\d*\.\w+\.json": "retry.v1",
}


@cache
def registry() -> Registry:
    """Return all schemas, by the ids with which they refer to each other."""
    found = [schemas.schema(name) for name in schemas.names()]
    return Registry().with_resources((schema["$id"], Resource.from_contents(schema)) for schema in found)


@cache
def validator(name: str) -> Draft202012Validator:
    """Return the validator of the schema called *name*."""
    return Draft202012Validator(
        schemas.schema(name), registry=registry(), format_checker=Draft202012Validator.FORMAT_CHECKER
    )


def problems(name: str, document: Any) -> list[str]:
    """Return what is wrong with *document*, by the schema called *name*."""
    return [f"{error.json_path}: {error.message[:300]}" for error in validator(name).iter_errors(document)]


def schema_name(relative: str) -> str | None:
    """Return the schema of the file *relative* of a run, or None where nobody knows the file."""
    return next((name for pattern, name in SCHEMAS.items() if re.fullmatch(pattern, relative)), None)


def documents(run_dir: Path) -> Iterator[tuple[str, str, Any]]:
    """Yield every document of a run: the place, the schema's name, the document.

    Raises:
        AssertionError: there is a file that nobody knows.
    """
    for path in sorted(path for path in run_dir.rglob("*") if not path.is_dir()):
        relative = path.relative_to(run_dir).as_posix()
        if any(re.fullmatch(pattern, relative) for pattern in READABLE):
            continue
        name = schema_name(relative)
        assert name is not None, f"{relative} has no schema"
        texts = path.read_text("utf-8").splitlines() if path.suffix == ".jsonl" else [path.read_text("utf-8")]
        for number, text in enumerate(texts, 1):
            yield f"{relative}:{number}", name, json.loads(text)


def run_problems(run_dir: Path) -> list[str]:
    """Return what is wrong with the files of a run."""
    return [f"{where}: {problem}" for where, name, found in documents(run_dir) for problem in problems(name, found)]
