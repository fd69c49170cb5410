"""What is done in a task's sandbox besides running its agent: folders, uploads, health checks, scripts."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence

from agentcompass.core.errors import PhaseFailed, UsageError
from agentcompass.core.model.environment import ExecResult
from agentcompass.core.model.issue import Issue, IssuePhase, Severity
from agentcompass.ports.environment import Environment

from .values import Healthcheck

_ROOT = ("root", "0")
_SHOWN = 2000
_LOGS = "mkdir -p /logs/agent /logs/verifier /logs/artifacts && chmod 777 /logs/agent /logs/verifier /logs/artifacts"

# The agent may have put links, or folders that hold files, where the verifier is to write. A folder that cannot be
# removed because something is mounted there is as good as new once it is empty.
_FRESH = """\
if [ -L /logs ] || { [ -e /logs ] && [ ! -d /logs ]; }; then rm -f /logs; fi
rm -rf -- %(folders)s /logs/verdict-* 2>/dev/null
mkdir -p -- /logs/agent /logs/artifacts %(folders)s && chmod 755 /tests && chmod 777 /logs/verifier || exit 9
[ -d /logs ] && [ ! -L /logs ] || exit 9
for folder in %(folders)s; do
    [ -d "$folder" ] && [ ! -L "$folder" ] && [ -z "$(ls -A "$folder")" ] || exit 9
done
[ -z "$1" ] || mkdir -m 777 -- "$1" || exit 9
"""


async def run_as(
    environment: Environment,
    command: str | Sequence[str],
    user: str | None,
    *,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> ExecResult:
    """Run *command* as *user*; a sandbox that has only one user runs as that what is meant for root."""
    try:
        return await environment.exec(command, user=user, env=env, timeout=timeout)
    except UsageError:
        if user not in _ROOT:
            raise
    return await environment.exec(command, env=env, timeout=timeout)


async def make_folders(environment: Environment) -> None:
    """Make the folders that the format promises.

    Raises:
        PhaseFailed: they cannot be made.
    """
    ran = await run_as(environment, _LOGS, "root")
    if ran.exit_code:
        raise setup_failed("the folders below /logs cannot be made", ran)


async def renew_folders(environment: Environment, *, keep_tests: bool, verdict: str = "") -> None:
    """Make the verifier's folders anew, whatever is there; with *keep_tests* only that of its result.

    *verdict* is a folder to be made besides, where its result is put away.

    Raises:
        PhaseFailed: something withstands.
    """
    folders = ("/logs/verifier",) if keep_tests else ("/tests", "/logs/verifier")
    script = _FRESH % {"folders": " ".join(folders)}
    if keep_tests:
        script = script.replace("chmod 755 /tests && ", "")
    command = ["sh", "-c", script, "sh", verdict]
    ran = await run_as(environment, command, "root")
    if ran.exit_code:  # files that even root of the sandbox cannot remove; its keeper can
        for folder in folders:
            await environment.remove(folder)
        ran = await run_as(environment, command, "root")
    if ran.exit_code:
        message = f"{' and '.join(folders)} cannot be made anew: exit code {ran.exit_code}"
        issue = Issue(Severity.FATAL, IssuePhase.EVALUATE, "verifier_setup_failed", message)
        raise PhaseFailed(issue, ran.text[-_SHOWN:])


def setup_failed(message: str, ran: ExecResult | None = None) -> PhaseFailed:
    """Return the failure of a task that cannot be made ready, with the output that says why."""
    said = "" if ran is None else ran.text[-_SHOWN:].strip()
    how = "" if ran is None else " (timed out)" if ran.timed_out else f" (exit code {ran.exit_code})"
    last = f": {said.splitlines()[-1][:300]}" if said else ""
    return PhaseFailed(Issue(Severity.FATAL, IssuePhase.SETUP, "setup_failed", f"{message}{how}{last}"), said)


async def wait_until_healthy(environment: Environment, check: Healthcheck) -> None:
    """Repeat *check* until it succeeds; failures count only after its start period.

    Raises:
        PhaseFailed: it failed too often in a row.
    """
    began, failures = time.monotonic(), 0
    while True:
        ran = await environment.exec(["bash", "-c", check.command], timeout=check.timeout_seconds)
        if ran.exit_code == 0:
            return
        starting = time.monotonic() - began < check.start_period_seconds
        failures += not starting
        if failures >= check.retries:
            raise setup_failed(f"the health check failed {failures} times", ran)
        await asyncio.sleep(check.start_interval_seconds if starting else check.interval_seconds)


async def run_setup(environment: Environment, folder: str, *, has_script: bool) -> None:
    """Put the files of a step's *folder* into the workdir, and run its ``setup.sh``.

    Raises:
        PhaseFailed: the script failed.
    """
    await environment.upload(folder, environment.workdir)
    if has_script:
        ran = await environment.exec(["bash", "setup.sh"])
        if ran.exit_code:
            raise setup_failed("setup.sh failed", ran)


def digest(folders: Sequence[str]) -> str:
    """Return a SHA-256 over the names and the bytes of the files in *folders*, one after the other."""
    total = hashlib.sha256()
    for folder in folders:
        for name, path in sorted(_files(folder)):
            with open(path, "rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            total.update(f"{name}\0{content}\n".encode("utf-8", "surrogateescape"))
    return total.hexdigest()


def _files(folder: str) -> Iterator[tuple[str, str]]:
    if os.path.isfile(folder):
        yield os.path.basename(folder), folder
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if os.path.isfile(path):
                yield os.path.relpath(path, folder), path
