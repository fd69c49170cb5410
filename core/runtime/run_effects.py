"""Effects of a whole run, and what they give back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..metrics.observation import Observation
from ..metrics.report import MetricReport
from ..model.task import RejectedItem, Task
from .effects import Effect, Stop


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a benchmark's data holds."""

    tasks: Sequence[Task]
    rejected: tuple[RejectedItem, ...] = ()
    tolerated: bool = False  #: the user knows of the rejected items


@dataclass(frozen=True, slots=True)
class Executed:
    """What became of the work: an observation per final attempt, and why it stopped early, if it did."""

    observations: Sequence[Observation]
    stop: Stop | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LoadTasks(Effect[Loaded]):
    """Read the benchmark's tasks; raises `UsageError` for data that is missing or broken."""


@dataclass(frozen=True, slots=True)
class ExecuteTasks(Effect[Executed]):
    """Execute every attempt of *tasks*; when the run is stopped, it tidies up and returns what there is."""

    shielded = True
    tasks: Sequence[Task]


@dataclass(frozen=True, slots=True)
class SaveReport(Effect[None]):
    """Save the numbers and their readable form."""

    shielded = True
    report: MetricReport
    status: str
    error: str | None


@dataclass(frozen=True, slots=True)
class SaveRunInfo(Effect[None]):
    """Save the record of the run, with its end if it has come."""

    shielded = True
    status: str | None = None
    error: str | None = None
    report: MetricReport | None = None
