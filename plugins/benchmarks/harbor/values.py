"""What a task's files say, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agentcompass.core.model.artifact import Artifact, ArtifactCommand
from agentcompass.core.model.environment import Resources
from agentcompass.core.model.network import NetworkPolicy

VERIFIER_TIMEOUT = 600.0  #: the format's own default, in seconds
BUILD_TIMEOUT = 600.0  #: likewise


class Format(StrEnum):
    """How a task is written down, and thereby how its tests say how it went."""

    HARBOR = "harbor"
    TERMINAL_BENCH = "terminal-bench"


@dataclass(frozen=True, slots=True)
class Healthcheck:
    """A command that has to succeed before the agent starts; *retries* failures in a row are too many."""

    command: str
    interval_seconds: float = 5.0
    timeout_seconds: float = 30.0
    start_period_seconds: float = 0.0
    start_interval_seconds: float = 5.0
    retries: int = 3


@dataclass(frozen=True, slots=True)
class AgentPhase:
    """The table ``[agent]``; None where it says nothing."""

    timeout_seconds: float | None = None
    user: str | None = None
    network: NetworkPolicy | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """The table ``[environment]``: what the sandbox is made of."""

    build_timeout_seconds: float | None = None
    image: str | None = None
    resources: Resources = Resources()
    network: NetworkPolicy = NetworkPolicy()
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    skills_dir: str | None = None
    mcp_servers: tuple[Mapping[str, Any], ...] = ()
    healthcheck: Healthcheck | None = None


@dataclass(frozen=True, slots=True)
class VerifierPhase:
    """The table ``[verifier]``; *separate* is None where it says nothing."""

    timeout_seconds: float | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    separate: bool | None = None
    network: NetworkPolicy | None = None
    machine: Machine | None = None
    collect: tuple[ArtifactCommand, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One of ``[[steps]]``; what it says replaces what the task says."""

    name: str
    agent: AgentPhase = AgentPhase()
    verifier: VerifierPhase = VerifierPhase()
    min_reward: float | Mapping[str, float] | None = None
    healthcheck: Healthcheck | None = None
    artifacts: tuple[Artifact, ...] = ()
    instruction: str = ""


@dataclass(frozen=True, slots=True)
class Config:
    """All that ``task.toml`` says."""

    name: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    artifacts: tuple[Artifact, ...] = ()
    final_step_counts: bool = False
    agent: AgentPhase = AgentPhase()
    verifier: VerifierPhase = VerifierPhase()
    machine: Machine = Machine()
    solution_env: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()

    @property
    def separate(self) -> bool:
        """Tell whether grading happens in a sandbox of its own."""
        return any(self.verifier_of(step).separate for step in self.steps or (None,))

    def verifier_of(self, step: Step | None) -> VerifierPhase:
        """Return how *step* (None: the task) is graded."""
        base = self.verifier
        if step is None:
            return base
        own = step.verifier
        return VerifierPhase(
            timeout_seconds=base.timeout_seconds if own.timeout_seconds is None else own.timeout_seconds,
            env={**base.env, **own.env},
            user=base.user if own.user is None else own.user,
            separate=base.separate if own.separate is None else own.separate,
            network=base.network if own.network is None else own.network,
            machine=own.machine or base.machine,
            collect=(*base.collect, *own.collect),
        )

    def agent_of(self, step: Step | None) -> AgentPhase:
        """Return how the agent works on *step* (None: the task)."""
        base = self.agent
        if step is None:
            return base
        own = step.agent
        return AgentPhase(
            base.timeout_seconds if own.timeout_seconds is None else own.timeout_seconds,
            base.user if own.user is None else own.user,
            base.network if own.network is None else own.network,
        )


@dataclass(frozen=True, slots=True)
class HarborTask:
    """One task: its folder, what its files say, and which of the optional ones there are.

    *parts* are paths below *folder*. *build* is the folder that its image is made of, None for a finished image.
    """

    folder: str
    name: str
    config: Config
    instruction: str
    parts: frozenset[str] = frozenset()
    build: str | None = None
    format: Format = Format.HARBOR

    def path(self, *names: str) -> str:
        """Return a path below the folder."""
        return "/".join((self.folder, *names))

    def has(self, *names: str) -> bool:
        """Tell whether there is something at this path."""
        return "/".join(names) in self.parts

    def bakes_tests(self, folder: str = "tests") -> bool:
        """Tell whether *folder* makes an image of its own, with the tests in it."""
        return any(self.has(folder, name) for name in BUILD_FILES)


BUILD_FILES = ("Dockerfile", "docker-compose.yaml")
