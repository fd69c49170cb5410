"""Reads YAML, which only the tasks of Terminal-Bench 1 are written in."""

from __future__ import annotations

from typing import Any


class YamlError(Exception):
    """A text is no YAML; *line* says where."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


def read_yaml(text: str) -> Any:
    """Return what *text* says.

    Raises:
        YamlError: it says nothing.
    """
    import yaml  # thousands of today's tasks load without it

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        mark = getattr(exc, "problem_mark", None)
        reason = getattr(exc, "problem", None) or " ".join(str(exc).split())
        raise YamlError(mark.line + 1 if mark else 1, f"is no YAML: {reason}") from None
