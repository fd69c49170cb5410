"""Reads one task's folder: a task if nothing forbids it, and all that is wrong with it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agentcompass.core.model.task import Finding

from . import tb1_task, toml_task
from .files import LONGEST_CONFIG, error, read_bytes, read_text
from .values import BUILD_FILES, HarborTask, Step

_DEEPEST = 4  #: parts of a path that anything asks for
_CANARY = re.compile(r"(<!--.*canary.*-->|#.*canary.*)", re.IGNORECASE)
_WORKDIR = re.compile(r"^\s*WORKDIR\s+(\S+)\s*$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Inspected:
    """What a folder holds: a task, unless one of the *findings* is an error."""

    task: HarborTask | None
    findings: Sequence[Finding] = ()

    @property
    def errors(self) -> Sequence[Finding]:
        """What keeps the folder from being a task."""
        return [finding for finding in self.findings if finding.is_error]


def inspect(folder: str, *, warn: bool = False) -> Inspected:
    """Read the task in *folder*; nothing in there makes this raise. Warnings cost time, and come if asked to *warn*."""
    try:
        findings: list[Finding] = []
        parts = frozenset(_walk(folder, findings))
        if "task.toml" in parts:
            task = _harbor(folder, parts, findings, warn)
        elif "task.yaml" in parts:
            task = tb1_task.read_folder(folder, parts, findings, warn)
        else:
            findings.append(error(folder, "holds neither task.toml nor task.yaml"))
            task = None
    except (OSError, RecursionError) as exc:
        findings, task = [error(getattr(exc, "filename", None) or folder, f"cannot be read: {exc}")], None
    fine = task is not None and not any(finding.is_error for finding in findings)
    return Inspected(task if fine else None, findings)


def _walk(folder: str, findings: list[Finding]) -> Iterator[str]:
    """Yield what is in *folder*, by its path below; links that lead out are errors."""
    home = os.path.realpath(folder)
    waiting = [(folder, "", 1)]
    while waiting:
        place, below, depth = waiting.pop()
        with os.scandir(place) as entries:
            for entry in entries:
                name = below + entry.name
                if entry.is_symlink():
                    target = os.path.realpath(entry.path)
                    if not f"{target}/".startswith(f"{home}/"):
                        findings.append(error(entry.path, f"is a link that leaves the task, to {target}"))
                elif entry.is_dir():
                    waiting.append((entry.path, f"{name}/", depth + 1))
                if depth <= _DEEPEST:
                    yield name


def _harbor(folder: str, parts: frozenset[str], findings: list[Finding], warn: bool) -> HarborTask | None:
    file = f"{folder}/task.toml"
    data = read_bytes(file, LONGEST_CONFIG, findings)
    if data is None:
        return None
    # Only relative artifacts want to know, and the file is one more to open for each of thousands of tasks.
    workdir = image_workdir(folder, parts) if b"artifacts" in data else None
    config, found = toml_task.parse(data, file, workdir, warn=warn)
    findings.extend(found)
    task = HarborTask(folder, config.name or os.path.basename(folder), config, "", parts)
    task = replace(task, build=_build(task, findings))
    for step in config.steps or (None,):
        _require_tests(task, step, findings)
    if not config.steps:
        return replace(task, instruction=_instruction(f"{folder}/instruction.md", parts, folder, findings))
    steps = tuple(_with_instruction(task, step, findings) for step in config.steps)
    return replace(task, config=replace(config, steps=steps), instruction=steps[0].instruction)


def _with_instruction(task: HarborTask, step: Step, findings: list[Finding]) -> Step:
    file = task.path("steps", step.name, "instruction.md")
    return replace(step, instruction=_instruction(file, task.parts, task.folder, findings))


def _instruction(file: str, parts: frozenset[str], folder: str, findings: list[Finding]) -> str:
    if file[len(folder) + 1 :] not in parts:
        findings.append(error(file, "is missing"))
        return ""
    text = read_text(file, findings)
    text = None if text is None else without_canary(text)
    if text is not None and not text.strip():
        findings.append(error(f"{file}:1", "says nothing"))
    return text or ""


def without_canary(text: str) -> str:
    """Return *text* without leading lines that only mark it for the filters of training data."""
    lines = text.split("\n")
    start = 0
    while start < len(lines) and _CANARY.fullmatch(lines[start].strip()):
        start += 1
        while start < len(lines) and not lines[start].strip():
            start += 1
    return "\n".join(lines[start:]) if start else text


def _build(task: HarborTask, findings: list[Finding]) -> str | None:
    """Return the folder that the image is made of, None for a finished one."""
    machine, folder = task.config.machine, task.path("environment")
    if task.has("environment", "docker-compose.yaml"):
        return folder
    if machine.image is not None:
        return None
    if not task.has("environment"):
        findings.append(error(folder, "is missing, and there is no [environment].docker_image"))
    elif not task.bakes_tests("environment"):
        findings.append(error(folder, f"has neither {' nor '.join(BUILD_FILES)}, and there is no docker_image"))
    return folder


def _require_tests(task: HarborTask, step: Step | None, findings: list[Finding]) -> None:
    """Note that nothing grades *step* (None: the task)."""
    verifier = task.config.verifier_of(step)
    bundled = verifier.separate and (task.bakes_tests() or (verifier.machine and verifier.machine.image))
    own = step is not None and task.has("steps", step.name, "tests", "test.sh")
    if not (bundled or own or task.has("tests", "test.sh")):
        where = task.path("tests", "test.sh") if step is None else task.path("steps", step.name, "tests", "test.sh")
        findings.append(error(where, "is missing"))


def image_workdir(folder: str, parts: frozenset[str]) -> str | None:
    """Return the last absolute WORKDIR that the Dockerfile sets, None if it says nothing plain."""
    if "environment/Dockerfile" not in parts:
        return None
    text = (read_bytes(f"{folder}/environment/Dockerfile", LONGEST_CONFIG, []) or b"").decode("utf-8", "replace")
    found = [name for name in _WORKDIR.findall(text) if name.startswith("/") and "$" not in name]
    return found[-1] if found else None
