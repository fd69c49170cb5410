"""Markdown that shows what it is given: numbers, and text of users that must not become markup."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

_MARKUP = re.compile(r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_HUGE = 1e12


def escaped(text: str, longest: int = 200) -> str:
    """Return *text* for a table cell: one line, no markup, no invisible characters, at most *longest* characters.

    An underscore within a word stays as it is, because it is no markup there.
    """
    line = " ".join("".join(char if char.isprintable() or char.isspace() else "\ufffd" for char in text).split())
    short = line if len(line) <= longest else line[: longest - 1] + "…"
    html = "".join(_ENTITIES.get(char, char) for char in short)
    return _MARKUP.sub(r"\\\g<0>", html)


def table(header: Sequence[str], text_columns: int, rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table with its numbers, right of *text_columns*, aligned; cells are already escaped."""
    rule = ["---" if index < text_columns else "---:" for index in range(len(header))]
    return [f"| {' | '.join(row)} |" for row in (header, rule, *rows)] + [""]


def number(value: float | None, precision: int) -> str:
    """Return *value* with *precision* digits after the point, ``-`` for None, never ``-0``."""
    if value is None:
        return "-"
    if abs(value) >= _HUGE:
        return f"{value:.6g}"
    return f"{round(value, precision) + 0.0:.{precision}f}"


def digits(error: float | None, most: int) -> int:
    """Return after how many digits a number with this standard error has nothing more to say: two of the error's."""
    if error is None or error <= 0:
        return min(2, most)
    return max(0, min(math.ceil(-math.log10(error)) + 1, most))
