"""The rows of HumanEval, and models that answer its tasks."""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import Any

from agentcompass.plugins.benchmarks.humaneval import data_file

from .endpoint import Reply, answer, prompt_of


@cache
def rows() -> tuple[dict[str, Any], ...]:
    """Return the rows in order."""
    with gzip.open(data_file(), "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


def asked(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Return the number and the row of the task that a request is about."""
    prompt = prompt_of(body)
    return next((number, row) for number, row in enumerate(rows()) if row["prompt"] in prompt)


def right(row: dict[str, Any]) -> Reply:
    """Return an answer that solves *row*."""
    return answer(f"So:\n\n```python\n{row['prompt']}{row['canonical_solution']}```\n")


def code(text: str) -> Reply:
    """Return an answer that holds *text* as its code."""
    return answer(f"```python\n{text}\n```")
