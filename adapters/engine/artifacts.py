"""Copies artifacts between a sandbox and the attempt's folder: staged, fingerprinted, put in place in one step."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator

from agentcompass.core.errors import PhaseFailed, SandboxError, StorageError, TransferLimitError
from agentcompass.core.model.artifact import Artifact, ArtifactCommand, ArtifactPlan, ArtifactStatus, SavedArtifact
from agentcompass.core.model.environment import TransferLimits
from agentcompass.core.model.issue import Issue, IssuePhase, Severity
from agentcompass.ports.environment import Environment

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_TAIL = 2000  # characters of a failed command's output that are kept


async def prepare(env: Environment, command: ArtifactCommand, number: int, within: float) -> None:
    """Run one of the commands that make artifacts ready.

    Raises:
        PhaseFailed: it failed, or took too long; its output goes to the diagnostics.
    """
    ran = await env.exec(command.command, user=command.user, timeout=within)
    if ran.exit_code == 0:
        return
    how = f"was stopped after {within:g} s" if ran.timed_out else f"ended with exit code {ran.exit_code}"
    message = f"command {number + 1} of artifact_collect {how}"
    issue = Issue(Severity.ERROR, IssuePhase.COLLECT, "artifact_prepare_failed", message)
    raise PhaseFailed(issue, f"{command.command}\n{ran.text[-_TAIL:]}")


async def download(
    env: Environment, folder: str, artifact: Artifact, plan: ArtifactPlan, used: tuple[int, int]
) -> SavedArtifact:
    """Copy *artifact* to its place below *folder*, whole or not at all; *used* are bytes and files of earlier ones.

    Raises:
        PhaseFailed: it is more than the limits allow.
        SandboxError: the sandbox failed.
        StorageError: there is no room for it among the results.
    """
    staging = f"{folder}/.staging-{secrets.token_hex(6)}"
    limits = TransferLimits(max(plan.max_bytes - used[0], 0), max(plan.max_files - used[1], 0))
    try:
        with _storage_errors():
            await asyncio.to_thread(os.makedirs, staging)
        try:
            refused = await env.download(artifact.source, f"{staging}/root", exclude=artifact.exclude, limits=limits)
        except FileNotFoundError:
            return SavedArtifact(artifact.source, artifact.destination, ArtifactStatus.MISSING)
        except TransferLimitError as exc:
            raise _too_much(artifact, plan, exc) from exc
        except SandboxError as exc:
            if isinstance(exc.__cause__, OSError) and exc.__cause__.errno in _NO_ROOM:  # where it is written to
                raise StorageError(str(exc)) from exc
            raise
        with _storage_errors():
            return await asyncio.to_thread(_keep, staging, folder, artifact, tuple(refused))
    finally:
        await asyncio.shield(asyncio.to_thread(shutil.rmtree, staging, ignore_errors=True))


@contextlib.contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise StorageError(str(exc)) from exc


def _too_much(artifact: Artifact, plan: ArtifactPlan, exc: TransferLimitError) -> PhaseFailed:
    limit = f"{plan.max_files} files (execution.artifact_limits.max_files)"
    if exc.limit == "max_bytes":
        limit = f"{plan.max_bytes / 1048576:g} MiB (execution.artifact_limits.max_mb)"
    message = f"with {artifact.source}, the artifacts are more than {limit}"
    return PhaseFailed(Issue(Severity.ERROR, IssuePhase.COLLECT, "artifact_transfer_failed", message))


def _keep(staging: str, folder: str, artifact: Artifact, refused: tuple[str, ...]) -> SavedArtifact:
    source, target = f"{staging}/root", f"{folder}/{artifact.destination}"
    if not os.path.lexists(source):  # everything in it was refused
        return SavedArtifact(
            artifact.source, artifact.destination, ArtifactStatus.NOT_COLLECTED, refused=refused or ("all of it",)
        )
    files, size, digest = fingerprint(source)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.lexists(target):  # of an earlier execution
        os.replace(target, f"{staging}/old")
    os.replace(source, target)
    return SavedArtifact(artifact.source, artifact.destination, ArtifactStatus.COLLECTED, files, size, digest, refused)


async def restore(env: Environment, folder: str, entry: SavedArtifact) -> None:
    """Put the saved *entry* where it came from, in place of what is there.

    Raises:
        SandboxError: what is saved is not what was saved, or the sandbox failed.
    """
    saved = f"{folder}/{entry.destination}"
    if (await asyncio.to_thread(fingerprint, saved))[2] != entry.fingerprint:
        raise SandboxError(f"{saved} has changed since it was saved: its fingerprint is another")
    if entry.source.startswith("/"):
        await env.remove(entry.source)
    await env.upload(saved, entry.source)


def fingerprint(root: str) -> tuple[int, int, str]:
    """Return the number of entries of the file or tree *root*, the bytes of its files, and a SHA-256 over it all.

    The digest covers names, kinds, permission bits, contents and the targets of links; not owners and times.
    """
    files = size = 0
    whole = hashlib.sha256()
    for path, name in _walk(root):
        status = os.lstat(path)
        files += 1
        kind = stat.S_IFMT(status.st_mode)
        whole.update(f"{len(name.encode(errors='surrogateescape'))}:".encode() + name.encode(errors="surrogateescape"))
        whole.update(f":{kind:o}:{status.st_mode & 0o777 if kind != stat.S_IFLNK else 0:o}:".encode())
        if stat.S_ISREG(kind):
            size += status.st_size
            with open(path, "rb") as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())
        elif stat.S_ISLNK(kind):
            whole.update(os.fsencode(os.readlink(path)) + b"\0")
    return files, size, whole.hexdigest()


def _walk(root: str) -> Iterator[tuple[str, str]]:
    stack = [(root, "")]
    while stack:
        path, name = stack.pop()
        yield path, name
        if stat.S_ISDIR(os.lstat(path).st_mode):
            stack.extend((f"{path}/{entry}", f"{name}/{entry}") for entry in sorted(os.listdir(path), reverse=True))
