"""Reads files of a task that may be anything: pipes, gigabytes, other encodings."""

from __future__ import annotations

import os

from agentcompass.core.model.task import Finding

LONGEST_CONFIG = 1024 * 1024
LONGEST_TEXT = 8 * 1024 * 1024


def error(where: str, message: str) -> Finding:
    """Return a finding that keeps a folder from being a task."""
    return Finding(where, message, is_error=True)


def read_bytes(file: str, limit: int, findings: list[Finding]) -> bytes | None:
    """Return the bytes of the regular *file*, or None with a finding: a pipe would never end."""
    if not os.path.isfile(file):
        findings.append(error(file, "is no file"))
        return None
    with open(file, "rb") as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        findings.append(error(file, f"is larger than {limit} bytes"))
        return None
    return data


def read_text(file: str, findings: list[Finding]) -> str | None:
    """Return the text of *file*, or None with a finding that names the line that is none."""
    data = read_bytes(file, LONGEST_TEXT, findings)
    try:
        return None if data is None else data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = exc.object[: exc.start].count(b"\n") + 1
        findings.append(error(f"{file}:{line}", f"is not UTF-8: {exc.reason}"))
        return None
