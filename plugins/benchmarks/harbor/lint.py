"""Finds what authors should mend in their tasks: all that the loader refuses, and what it lets pass."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from agentcompass.core.model.task import Finding

from .files import LONGEST_TEXT, read_bytes
from .loader import load
from .values import BUILD_FILES, Format, HarborTask
from .variables import references

_LARGE = 50 * 1024 * 1024
_REWARD = re.compile(rb"reward\.(txt|json)|/logs/verifier")
_FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?", re.IGNORECASE)
_COPY = re.compile(r"^\s*(?:COPY|ADD)\s+(.*)$", re.IGNORECASE)
_HIDDEN = re.compile(r"(^|[\s\"'/])(tests|solution|solve\.sh|test\.sh)(/|[\s\"',\]]|$)")
_SECRET = re.compile(
    r"\b(sk-[A-Za-z0-9_-]{20,}|ghp_[A-Za-z0-9]{30,}|AKIA[0-9A-Z]{16}|xox[abp]-[A-Za-z0-9-]{10,}|hf_[A-Za-z0-9]{30,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
_STARTED = ("test.sh", "solve.sh", "setup.sh", "run-tests.sh")
_TEXTS = (".sh", ".py", ".toml", ".yaml", ".yml", ".md", ".json", ".txt", ".env", "Dockerfile")


def lint(path: str, dataset: str | None = None, data_dir: str = "data") -> Sequence[Finding]:
    """Return all findings about the tasks at *path*; a folder can be loaded if none about it is an error.

    Raises:
        UsageError: there is nothing there to be read.
    """
    loaded = load(path, dataset, data_dir, warn=True)
    return [*loaded.findings, *(finding for task in loaded.tasks for finding in advice(task))]


def advice(task: HarborTask) -> Iterator[Finding]:
    """Yield warnings about a task that can be loaded."""
    if task.format is Format.HARBOR:
        yield from _settings(task)
        yield from _parts(task)
        yield from _verifiers(task)
    for name in sorted(task.parts):
        if name.endswith("Dockerfile"):
            yield from _dockerfile(task, name)
    yield from _files(task)


def _settings(task: HarborTask) -> Iterator[Finding]:
    file, config = task.path("task.toml"), task.config
    for step in config.steps or (None,):
        of = f" of the step {step.name}" if step else ""
        if config.agent_of(step).timeout_seconds is None:
            yield Finding(file, f"agent.timeout_sec{of} is missing: the agent may take for ever")
        if config.verifier_of(step).timeout_seconds is None:
            yield Finding(file, f"verifier.timeout_sec{of} is missing: 600 s are assumed")
    tables = [("environment.env", config.machine.env), ("verifier.env", config.verifier.env)]
    for table, variables in [*tables, ("solution.env", config.solution_env)]:
        for key, name in references(variables).items():
            yield Finding(file, f"{table}.{key} takes {name} from the machine that runs the task")
    if config.separate and not (config.artifacts or any(step.artifacts for step in config.steps)):
        yield Finding(file, "a separate verifier gets to see only /logs/artifacts: no artifacts are declared")


def _parts(task: HarborTask) -> Iterator[Finding]:
    for step in task.config.steps or (None,):
        own = step is not None and task.has("steps", step.name, "solution", "solve.sh")
        if not own and not task.has("solution", "solve.sh"):
            of = f"steps/{step.name}/" if step else ""
            yield Finding(task.path(f"{of}solution", "solve.sh"), "is missing: nothing proves that it can be solved")
    if not task.config.separate and task.bakes_tests():
        yield Finding(task.path("tests"), f"its {' or '.join(BUILD_FILES)} has no effect: the verifier is shared")
    for name in sorted(task.parts):
        if name.rpartition("/")[2] == ".harborignore":
            yield Finding(task.path(name), "is not honoured: everything is uploaded")


def _verifiers(task: HarborTask) -> Iterator[Finding]:
    for name in sorted(task.parts):
        if name != "tests/test.sh" and not re.fullmatch(r"steps/[^/]+/tests/test\.sh", name):
            continue
        folder = task.path(name.rpartition("/")[0])
        if not any(_REWARD.search(data) for data in _contents(folder)):
            yield Finding(task.path(name), "nothing beside it mentions /logs/verifier/reward.txt or reward.json")


def _contents(folder: str) -> Iterator[bytes]:
    for place, _, names in os.walk(folder):
        for name in names:
            yield read_bytes(os.path.join(place, name), LONGEST_TEXT, []) or b""


def _dockerfile(task: HarborTask, name: str) -> Iterator[Finding]:
    text = (read_bytes(task.path(name), LONGEST_TEXT, []) or b"").decode("utf-8", "replace")
    stages: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{task.path(name)}:{number}"
        base, copied = _FROM.match(line), _COPY.match(line)
        if base and base[1].lower() not in stages and not _is_pinned(base[1]):
            yield Finding(where, f"FROM {base[1]} is not pinned: it will be another image some day")
        if base and base[2]:
            stages.add(base[2].lower())
        if copied and name.startswith(("environment/", "Dockerfile")) and _HIDDEN.search(copied[1]):
            yield Finding(where, "copies tests or the solution into the image, where the agent finds them")


def _is_pinned(image: str) -> bool:
    """Tell whether *image* names a version: a digest, or a tag that is not ``latest``."""
    if image.lower() == "scratch" or "@sha256:" in image or "$" in image:
        return True
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag not in ("", "latest")


def _files(task: HarborTask) -> Iterator[Finding]:
    for place, _, names in os.walk(task.folder):
        for name in sorted(names):
            path = os.path.join(place, name)
            if not os.path.isfile(path):
                continue
            if os.path.getsize(path) > _LARGE:
                yield Finding(path, f"is larger than {_LARGE // 2**20} MB")
            elif name.endswith(_TEXTS):
                yield from _text(path, name)


def _text(path: str, name: str) -> Iterator[Finding]:
    data = read_bytes(path, LONGEST_TEXT, []) or b""
    if data.startswith(b"version https://git-lfs"):
        yield Finding(path, "is a pointer of Git LFS, not the file that it stands for")
    if name.endswith(".sh"):
        if b"\r\n" in data:
            first = data[: data.index(b"\r\n")].count(b"\n") + 1
            yield Finding(f"{path}:{first}", "ends with CR LF, which shells do not understand")
        if name in _STARTED and not data.startswith(b"#!"):
            yield Finding(f"{path}:1", "does not say which program runs it: begin with #!/bin/bash")
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        if _SECRET.search(line):
            yield Finding(f"{path}:{number}", "holds what looks like a key")
