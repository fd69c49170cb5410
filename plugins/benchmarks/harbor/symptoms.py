"""Tells a verifier that could not start from one whose tests failed: the first is nobody's zero."""

from __future__ import annotations

import re

_STARTED = re.compile(
    r"test session starts|short test summary|collected \d+ items?|^Ran \d+ tests? in|^(not )?ok \d+\b|^TAP version"
    r"|\d+ (passed|failed)\b",
    re.MULTILINE | re.IGNORECASE,
)
_BROKEN = (
    (r"Could not get lock /var/lib/(?:dpkg|apt)\S*", "apt is locked"),
    (r"E: (?:Failed to fetch|Unable to fetch some archives)|Temporary failure resolving", "apt cannot fetch packages"),
    (r"curl: \(6\) Could not resolve host", "curl cannot resolve a host"),
    (r"(?:error|Caused by): (?:Failed to (?:download|fetch)|dns error)", "uv cannot download"),
    (r"Failed to establish a new connection: .*(?:Name or service|name resolution)", "pip cannot download"),
    (r"\b(?:uvx?|curl): (?:command )?not found", "a tool of the verifier is missing"),
)


def setup_failure(output: str) -> str | None:
    """Return why the verifier could not start its tests, None if it did, or if nothing says otherwise."""
    if _STARTED.search(output):
        return None
    for pattern, reason in _BROKEN:
        found = re.search(pattern, output)
        if found:
            return f"{reason}: {found[0]}"
    return None


def start_failure(exit_code: int | None, stderr: str, script: str) -> str | None:
    """Return why *script* itself, or its shell, could not be started; None if it ran."""
    if exit_code not in (126, 127):
        return None
    lines = [line for line in stderr.splitlines() if line.strip()]
    ran = any(line.startswith((f"{script}: line ", f"{script}: ")) and "bash: " not in line for line in lines)
    return None if ran else f"exit code {exit_code}: {' '.join(lines[-1:]) or 'bash or the script cannot be started'}"


_SUMMARY = re.compile(r"^(PASSED|FAILED|SKIPPED|XFAIL|XPASS|ERROR)\s+(\S+)", re.MULTILINE)


def pytest_summary(output: str) -> dict[str, str] | None:
    """Return how each test ended, by pytest's own summary at the end of *output*; None if there is none."""
    _, found, summary = output.rpartition("short test summary info")
    return {name: status for status, name in _SUMMARY.findall(summary)} if found else None
