"""Reads ``task.yaml``, the format of Terminal-Bench 1, as a task of today's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agentcompass.core.model.task import Finding

from . import readers as read
from .files import LONGEST_CONFIG, error, read_bytes
from .notes import Notes, Path, Table
from .values import AgentPhase, Config, Format, HarborTask, VerifierPhase
from .yaml_text import YamlError, read_yaml

RUN_TESTS = "run-tests.sh"
AGENT_TIMEOUT = 360.0  #: the format's own defaults, in seconds
TEST_TIMEOUT = 60.0
_DESCRIBING = (
    *("author_name", "author_email", "difficulty", "category", "tags", "expert_time_estimate_min"),
    *("junior_time_estimate_min", "estimated_duration_sec", "run_tests_in_same_shell", "disable_asciinema"),
)
_KEPT = ("difficulty", "category", "tags")


def parse(data: bytes, file: str, *, warn: bool = True) -> tuple[str, Config, list[Finding]]:
    """Return the instruction and the settings in *file*, whose bytes are *data*, and what is wrong with them."""
    text = data.decode("utf-8-sig", "replace")
    try:
        document = read_yaml(text)
    except YamlError as exc:
        return "", Config(), [error(f"{file}:{exc.line}", str(exc))]
    if "\ufffd" in text:
        line = text[: text.index("\ufffd")].count("\n") + 1
        return "", Config(), [error(f"{file}:{line}", "is not UTF-8")]
    if not isinstance(document, dict):
        return "", Config(), [error(f"{file}:1", "is no mapping")]
    notes = Notes()
    instruction, config = _config(Table({str(key): value for key, value in document.items()}, (), notes))
    return instruction, config, list(notes.findings(file, text, _line_of, warn=warn))


def _line_of(text: str, path: Path) -> int:
    """Return the line of the key that *path* begins with."""
    found = re.search(rf"^[\"']?{re.escape(str(path[0]))}[\"']?\s*:", text, re.MULTILINE)
    return text[: found.start()].count("\n") + 1 if found else 1


def _config(top: Table) -> tuple[str, Config]:
    for key in _DESCRIBING:
        top.take(key, read.any_value, None)
    if top.take("parser_name", read.text, "pytest") != "pytest":
        top.error("parser_name", f"{top.values['parser_name']!r} is not supported; only pytest is")
    metadata: dict[str, Any] = {key: top.values[key] for key in _KEPT if key in top.values}
    agent = AgentPhase(timeout_seconds=top.take("max_agent_timeout_sec", read.positive, None))
    verifier = VerifierPhase(timeout_seconds=top.take("max_test_timeout_sec", read.positive, None))
    instruction = top.need("instruction", read.words, "")
    return instruction, Config(metadata=metadata, agent=agent, verifier=verifier)


def read_folder(folder: str, parts: frozenset[str], findings: list[Finding], warn: bool) -> HarborTask | None:
    """Return the task in *folder*; *findings* get what is wrong with it."""
    file = f"{folder}/task.yaml"
    data = read_bytes(file, LONGEST_CONFIG, findings)
    if data is None:
        return None
    instruction, config, found = parse(data, file, warn=warn)
    findings.extend(found)
    findings.extend(error(f"{folder}/{name}", "is missing") for name in ("Dockerfile", RUN_TESTS) if name not in parts)
    _require_one_service(folder, parts, findings)
    name = folder.rpartition("/")[2]
    return HarborTask(folder, name, config, instruction, parts, folder, Format.TERMINAL_BENCH)


def _require_one_service(folder: str, parts: frozenset[str], findings: list[Finding]) -> None:
    """Refuse side-cars: the Dockerfile makes the sandbox, and nothing would make them."""
    for name in ("docker-compose.yaml", "docker-compose.yml"):
        if name not in parts:
            continue
        data = read_bytes(f"{folder}/{name}", LONGEST_CONFIG, findings) or b""
        try:
            document = read_yaml(data.decode("utf-8-sig", "replace"))
        except YamlError as exc:
            findings.append(error(f"{folder}/{name}:{exc.line}", str(exc)))
            continue
        services: Mapping[str, Any] = document.get("services") or {} if isinstance(document, dict) else {}
        if len(services) > 1:
            message = f"has the services {', '.join(map(str, services))}; Terminal-Bench 1 tasks may have one"
            findings.append(error(f"{folder}/{name}", message))


def solution_script(folder: str) -> str:
    """Return the commands of ``solution.yaml`` as a script; what it types into programs cannot be played back."""
    with open(f"{folder}/solution.yaml", "rb") as file:
        document = read_yaml(file.read(LONGEST_CONFIG).decode("utf-8-sig", "replace"))
    commands = [str(entry.get("command", "")) for entry in document or () if isinstance(entry, dict)]
    return "\n".join(["#!/bin/bash", *commands, ""])
