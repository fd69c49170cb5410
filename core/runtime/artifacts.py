"""What is kept of a sandbox: made ready by commands, downloaded one by one, restored in a fresh verifier."""

from __future__ import annotations

from dataclasses import replace

from ..errors import PhaseFailed
from ..model.artifact import Artifact, ArtifactCommand, ArtifactPlan, ArtifactStatus, Manifest
from ..model.issue import Issue, IssuePhase, Severity
from ..model.plan import Plan
from .effects import (
    Announce,
    DownloadArtifact,
    EnvironmentHandle,
    PrepareArtifacts,
    ReadStopwatch,
    ReserveArtifacts,
    RestoreArtifact,
)
from .notes import Notes
from .phases import Phase
from .script import enter, timed


async def keep_artifacts(plan: Plan, artifacts: ArtifactPlan, notes: Notes, env: EnvironmentHandle) -> None:
    """Make the artifacts ready, and download them if the plan says so.

    Raises:
        PhaseFailed: a command or a transfer failed; what was downloaded before stays, and is noted.
    """
    if artifacts.commands:
        await enter(Phase.COLLECT_ARTIFACTS)
        await _prepare(artifacts, notes, env)
    if artifacts.save:
        await enter(Phase.DOWNLOAD_ARTIFACTS)
        prefix = f"steps/{len(notes.verdicts) + 1}/" if plan.steps > 1 else ""
        await _download(artifacts, notes, env, prefix)


async def _prepare(artifacts: ArtifactPlan, notes: Notes, env: EnvironmentHandle) -> None:
    """Run the commands in order; each has its own limit, and all of them one together."""
    deadline = None if artifacts.group_seconds is None else await ReadStopwatch() + artifacts.group_seconds
    for number, command in enumerate(artifacts.commands):
        within, limit = command.timeout_seconds, f"execution.artifact_collect[{number}].timeout_seconds"
        if deadline is not None:
            left = deadline - await ReadStopwatch()
            if left < within:
                within, limit = max(left, 0.001), "execution.artifact_collect_timeout_seconds"
        await _tell("prepare", f"command {number + 1}", 0, within)
        try:
            await timed(notes, Phase.COLLECT_ARTIFACTS, PrepareArtifacts(env, command, number, within, limit))
        except PhaseFailed as failure:
            if not command.optional:
                raise
            notes.fail(_warning(failure, command))


def _warning(failure: PhaseFailed, command: ArtifactCommand) -> PhaseFailed:
    issue = failure.issue
    return PhaseFailed(Issue(Severity.WARNING, issue.phase, issue.code, issue.message), failure.diagnostics)


async def _download(artifacts: ArtifactPlan, notes: Notes, env: EnvironmentHandle, prefix: str) -> None:
    """Download one after the other, under one limit of time, size and number."""
    folder = await ReserveArtifacts()
    if notes.manifest is None:
        notes.manifest = Manifest(folder)
    began = await ReadStopwatch()
    size = files = 0
    for source in artifacts.sources:
        left = max(artifacts.transfer_seconds - (await ReadStopwatch() - began), 0.001)
        await _tell("download", source.source, size, left)
        download = DownloadArtifact(env, folder, _below(prefix, source), artifacts, size, files, left)
        entry = await timed(notes, Phase.DOWNLOAD_ARTIFACTS, download)
        size, files = size + entry.bytes, files + entry.files
        notes.keep_artifact(entry)
        for line in entry.refused:
            message = f"{entry.source}: left out {line}"
            notes.fail(PhaseFailed(Issue(Severity.WARNING, IssuePhase.COLLECT, "artifact_transfer_failed", message)))


def _below(prefix: str, source: Artifact) -> Artifact:
    return replace(source, destination=prefix + source.destination) if prefix else source


async def restore_artifacts(artifacts: ArtifactPlan, notes: Notes, env: EnvironmentHandle) -> None:
    """Put what was downloaded, in this step, where it came from; parents first."""
    manifest = notes.manifest
    if manifest is None:
        return
    entries = manifest.entries[notes.artifacts_before :]
    collected = [entry for entry in entries if entry.status is ArtifactStatus.COLLECTED]
    began = await ReadStopwatch()
    size = 0
    for entry in sorted(collected, key=lambda entry: entry.source):
        left = max(artifacts.transfer_seconds - (await ReadStopwatch() - began), 0.001)
        await _tell("restore", entry.source, size, left)
        await timed(notes, Phase.EVALUATE_ENVIRONMENT, RestoreArtifact(env, manifest.folder, entry, left))
        size += entry.bytes


async def _tell(operation: str, source: str, size: int, left: float) -> None:
    payload = {"operation": operation, "source": source, "completed_bytes": size, "remaining_seconds": round(left, 3)}
    await Announce("artifact_progress", payload=payload)
