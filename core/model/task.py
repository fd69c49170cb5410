"""Tasks: what a benchmark asks, what an agent is given, what an answer must look like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file that the agent is to write, by its path in the sandbox."""

    path: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Solution:
    """A task's reference solution: files to write into the sandbox, a command to run there, or a plain answer.

    *uploads* are files and trees of this machine by where they go in the sandbox; *env* is for the command.
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    command: str | None = None
    answer: str | None = None
    uploads: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Task:
    """One item of a benchmark.

    *id* is unique within the benchmark; *category* groups tasks in reports, *cluster* names what makes tasks depend on
    each other (a repository, a site) for clustered standard errors. *data* is the benchmark's own, and never leaves
    the process. Budgets are seconds, None for none.
    """

    id: str
    prompt: str | tuple[Message, ...] = ""
    category: str | None = None
    cluster: str | None = None
    ground_truth: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    data: Any = None
    run_timeout_seconds: float | None = None
    evaluation_timeout_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class PreparedTask:
    """A task made ready in a sandbox: what the harness gets to see, and the files that it is to leave behind.

    The agent's commands run as *user*; None for the sandbox's own. *metadata* is JSON.
    """

    prompt: str | tuple[Message, ...]
    outputs: tuple[OutputFile, ...] = ()
    workdir: str | None = None
    user: str | None = None
    solution: Solution | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a benchmark's data that its author should know: *where* is a file, perhaps with its line.

    An *is_error* keeps the item from being a task.
    """

    where: str
    message: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class RejectedItem:
    """An item of a benchmark's data that is no task, with the place and the reason."""

    where: str
    reason: str
