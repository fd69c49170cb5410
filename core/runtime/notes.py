"""What is known of an execution so far; a frozen result is made of it at the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import PhaseFailed
from ..model.artifact import Manifest, SavedArtifact
from ..model.issue import Issue, Severity, deduplicated
from ..model.result import HarnessResult, RunResult, Verdict
from ..model.task import PreparedTask


@dataclass(slots=True)
class Notes:
    """The growing account of one execution; *inferred* once everything before the grading has succeeded."""

    issues: list[Issue] = field(default_factory=list)
    diagnostics: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    collected: HarnessResult = field(default_factory=HarnessResult)
    prepared: PreparedTask | None = None
    killed: int | None = None
    manifest: Manifest | None = None
    artifacts_before: int = 0  #: how many entries of the manifest are of earlier steps
    verdicts: list[Verdict] = field(default_factory=list)  #: of the steps, where there are several
    metrics: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    retry_after: float | None = None
    cancelled: bool = False
    inferred: bool = False
    phase: str = "plan"
    failed_in: str | None = None  #: the phase in which the first FATAL or ERROR was detected

    def fail(self, failure: PhaseFailed) -> None:
        """Take down what a phase failed with."""
        self._take((failure.issue,))
        if failure.diagnostics:
            self.diagnostics.append(failure.diagnostics)
        if failure.retry_after is not None:
            self.retry_after = max(self.retry_after or 0.0, failure.retry_after)

    def collect(self, collected: HarnessResult) -> None:
        """Take down what the harness brought back (in this step: what it used in earlier ones stays used)."""
        self.collected = replace(collected, usage=self.collected.usage.plus(collected.usage))
        self._take(collected.issues)

    def count_killed(self, number: int) -> None:
        """Take down how many processes had outlived the agent."""
        self.killed = (self.killed or 0) + number

    def keep_artifact(self, entry: SavedArtifact) -> None:
        """Take down an artifact that was looked for."""
        assert self.manifest is not None
        self.manifest = replace(self.manifest, entries=(*self.manifest.entries, entry))

    def begin_step(self, prepared: PreparedTask) -> None:
        """Go on to a further step of the task."""
        self.prepared, self.inferred = prepared, False
        self.artifacts_before = len(self.manifest.entries) if self.manifest else 0

    def judge(self, verdict: Verdict) -> None:
        """Take down what the grader says."""
        self.metrics, self.evidence = verdict.metrics, verdict.evidence
        self._take(verdict.issues)

    def _take(self, issues: Iterable[Issue]) -> None:
        for issue in issues:
            self.issues.append(issue)
            if self.failed_in is None and issue.severity is not Severity.WARNING:
                self.failed_in = self.phase

    @property
    def gradeable(self) -> bool:
        """Tell whether nothing FATAL stands against grading."""
        return self.inferred and not any(issue.severity is Severity.FATAL for issue in self.issues)

    @property
    def fatal(self) -> bool:
        """Tell whether there is a FATAL issue."""
        return any(issue.severity is Severity.FATAL for issue in self.issues)

    def without_grading(self) -> Notes:
        """Return what was known before the grading, for another one."""
        kept = [issue for issue in self.issues if issue.phase != "evaluate"]
        return replace(
            self, issues=kept, metrics={}, evidence={}, retry_after=None, seconds=dict(self.seconds), failed_in=None
        )

    def result(self) -> RunResult:
        """Return the account so far as a value."""
        return RunResult(
            metrics=self.metrics,
            issues=deduplicated(self.issues),
            final_answer=self.collected.final_answer,
            trajectory=self.collected.trajectory,
            usage=self.collected.usage,
            artifacts=self.collected.artifacts,
            telemetry=self.collected.telemetry,
            evidence=self.evidence,
            killed_processes=self.killed,
            seconds=self.seconds,
            diagnostics=tuple(self.diagnostics),
            manifest=self.manifest,
            cancelled=self.cancelled,
        )
