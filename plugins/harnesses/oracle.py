"""The harness that knows the answers."""

from __future__ import annotations

from dataclasses import dataclass

from agentcompass.core.errors import PhaseFailed
from agentcompass.core.model.environment import ExecResult
from agentcompass.core.model.issue import Issue, IssuePhase, Severity
from agentcompass.core.model.result import HarnessResult
from agentcompass.core.model.task import PreparedTask
from agentcompass.ports.harness import AttemptContext, Harness


@dataclass(slots=True)
class _Session:
    context: AttemptContext
    ran: ExecResult | None = None


class Oracle(Harness):
    """Writes the files of the reference solution, then runs its command."""

    version = "1"
    needs_model = False
    needs_solution = True
    isolated = True

    async def open_session(self, context: AttemptContext, prepared: PreparedTask) -> _Session:
        """Refuse a task without a reference solution."""
        if prepared.solution is None:
            raise PhaseFailed(
                Issue(Severity.FATAL, IssuePhase.SETUP, "input_missing", "the task has no reference solution")
            )
        return _Session(context)

    async def execute_task(self, session: _Session, prepared: PreparedTask, *, timeout: float | None) -> None:
        """Apply the solution."""
        solution, env = prepared.solution, session.context.environment
        assert solution is not None
        for target, source in solution.uploads.items():
            await env.upload(source, target)
        for path, data in solution.files.items():
            await env.write_file(path, data)
        if solution.command is None:
            return
        session.ran = await env.exec(solution.command, cwd=prepared.workdir, env=solution.env, timeout=timeout)
        if session.ran.timed_out:
            raise PhaseFailed(
                Issue(Severity.ERROR, IssuePhase.RUN, "harness_timeout", f"the solution took more than {timeout:g} s")
            )
        if session.ran.exit_code:
            raise PhaseFailed(
                Issue(
                    Severity.ERROR,
                    IssuePhase.RUN,
                    "harness_failed",
                    f"the solution ended with exit code {session.ran.exit_code}: {session.ran.text[-500:].strip()}",
                )
            )

    async def collect_result(self, session: _Session, prepared: PreparedTask) -> HarnessResult:
        """Bring back the reference answer, and what the solution printed."""
        ran = session.ran
        artifacts = {"output": ran.text, "exit_code": ran.exit_code} if ran else {}
        answer = prepared.solution.answer if prepared.solution else None
        return HarnessResult(final_answer=answer, artifacts=artifacts)

    async def close_session(self, session: _Session) -> None:
        """Release nothing."""
