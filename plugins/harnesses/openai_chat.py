"""The harness that asks a model once."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import Any

from agentcompass.core.errors import PhaseFailed
from agentcompass.core.model.issue import Issue, IssuePhase, Severity
from agentcompass.core.model.result import HarnessResult, Usage
from agentcompass.core.model.task import Message, PreparedTask
from agentcompass.ports.harness import AttemptContext, Harness
from agentcompass.ports.model import Completion

_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n`]*\n(.*?)^[ \t]*\1[`~]*[ \t\r]*$", re.MULTILINE | re.DOTALL)


@dataclass(slots=True)
class _Session:
    context: AttemptContext
    messages: tuple[Message, ...]
    completion: Completion | None = None
    seconds: float = 0.0


class OpenAIChat(Harness):
    """Sends the task's messages, or its prompt as one, and takes the answer as it comes."""

    version = "1"
    protocols = ("openai-chat",)
    isolated = True

    def __init__(self, system_prompt: str | None = None) -> None:
        self._system = (Message("system", system_prompt),) if system_prompt else ()

    async def open_session(self, context: AttemptContext, prepared: PreparedTask) -> _Session:
        """Lay the messages out."""
        prompt = prepared.prompt
        messages = (Message("user", prompt),) if isinstance(prompt, str) else prompt
        return _Session(context, self._system + messages)

    async def execute_task(self, session: _Session, prepared: PreparedTask, *, timeout: float | None) -> None:
        """Call the model, and write the file that the task asks for."""
        context = session.context
        assert context.model is not None
        began = time.monotonic()
        completion = await context.model.complete(session.messages, context.model_params)
        session.seconds = time.monotonic() - began
        session.completion = completion
        if not completion.text.strip():
            finish = completion.finish_reason or "unknown"
            message = f"the model's answer is empty (finish reason: {finish})"
            raise PhaseFailed(Issue(Severity.ERROR, IssuePhase.RUN, "model_empty_output", message))
        if prepared.outputs:
            data = last_fenced_block(completion.text).encode("utf-8", "surrogatepass")
            await context.environment.write_file(prepared.outputs[0].path, data)

    async def collect_result(self, session: _Session, prepared: PreparedTask) -> HarnessResult:
        """Bring back the answer, the exchange as a trajectory, and the usage."""
        completion = session.completion
        if completion is None:
            return HarnessResult(trajectory=None, usage=Usage(model_calls=1))
        usage = replace(completion.usage, model_seconds=round(session.seconds, 6))
        return HarnessResult(completion.text, trajectory(session.messages, completion, self.version), usage)

    async def close_session(self, session: _Session) -> None:
        """Release nothing: the model's connections are the run's."""


def last_fenced_block(text: str) -> str:
    """Return what the last fenced block of *text* holds, or all of it when there is none."""
    blocks = list(_FENCED.finditer(text))
    return blocks[-1][2] if blocks else text


def trajectory(messages: tuple[Message, ...], completion: Completion, version: str) -> dict[str, Any]:
    """Return the exchange as an ATIF-v1.8 document."""
    steps: list[dict[str, Any]] = []
    for message in messages:
        source = message.role if message.role in ("system", "user") else "user"
        steps.append({"step_id": len(steps) + 1, "source": source, "message": message.content})
    answer: dict[str, Any] = {"step_id": len(steps) + 1, "source": "agent", "message": completion.text}
    if completion.model:
        answer["model_name"] = completion.model
    if completion.reasoning:
        answer["reasoning_content"] = completion.reasoning
    usage = completion.usage
    counts = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
    }
    known = {name: count for name, count in counts.items() if count is not None}
    if known:
        answer["metrics"] = known
    return {
        "schema_version": "ATIF-v1.8",
        "agent": {"name": "openai_chat", "version": version},
        "steps": [*steps, answer],
        "final_metrics": {f"total_{name}": count for name, count in known.items()} | {"total_steps": len(steps) + 1},
    }
