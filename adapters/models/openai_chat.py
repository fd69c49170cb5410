"""Chat completions through the official ``openai`` package, with its failures classified."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import openai

from agentcompass.core.errors import PhaseFailed, UsageError
from agentcompass.core.model.issue import Issue, IssuePhase, Severity
from agentcompass.core.model.result import Usage
from agentcompass.core.model.task import Message
from agentcompass.ports.model import Completion

#: Statuses that say nothing of the model: credentials, quota, and the server itself (every 5xx too).
FATAL_STATUSES = frozenset({401, 402, 403, 429})


class OpenAIChatModel:
    """One model behind one endpoint; the client library repeats failed requests itself, up to *max_retries* times."""

    def __init__(self, model: str, base_url: str, api_key: str, timeout: float = 600, max_retries: int = 2) -> None:
        self._model, self._timeout = model, float(timeout)
        if base_url and not base_url.startswith(("http://", "https://")):
            raise UsageError("--model-base-url", f"{base_url!r} is no URL", "write http://host:port/v1")
        try:
            self._client = openai.AsyncOpenAI(
                api_key=api_key or ("none" if base_url else None),
                base_url=base_url or None,
                timeout=self._timeout,
                max_retries=max_retries,
            )
        except openai.OpenAIError as exc:
            raise UsageError("--model-api-key", f"is missing ({exc})", "give it, or --model-base-url") from None

    async def complete(self, messages: Sequence[Message], params: Mapping[str, Any]) -> Completion:
        """Return the answer to *messages*; *params* are sent as they are."""
        sent = {key: value for key, value in params.items() if key not in ("timeout", "max_retries")}
        body = {
            "model": self._model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            **sent,
        }
        try:
            answer = await self._client.post("/chat/completions", body=body, cast_to=object)
        except openai.APITimeoutError as exc:
            message = f"no answer within {self._timeout:g} s, the limit model.params.timeout"
            raise _failed(Severity.ERROR, "model_timeout", message) from exc
        except openai.APIStatusError as exc:
            raise _status(exc) from exc
        except openai.APIConnectionError as exc:
            reason = exc.__cause__ or exc
            message = f"{self._client.base_url} cannot be reached: {type(reason).__name__}: {reason}"
            raise _failed(Severity.FATAL, "model_failed", message) from exc
        except openai.OpenAIError as exc:
            raise _failed(Severity.ERROR, "model_failed", f"{type(exc).__name__}: {exc}") from exc
        except ValueError as exc:
            message = f"the endpoint's answer is no JSON ({type(exc).__name__}: {exc})"
            raise _failed(Severity.ERROR, "model_invalid_output", message) from exc
        return completion_of(answer)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def _failed(severity: Severity, code: str, message: str, retry_after: float | None = None) -> PhaseFailed:
    return PhaseFailed(Issue(severity, IssuePhase.RUN, code, " ".join(message.split())), retry_after=retry_after)


def _status(exc: openai.APIStatusError) -> PhaseFailed:
    fatal = exc.status_code in FATAL_STATUSES or exc.status_code >= 500
    severity = Severity.FATAL if fatal else Severity.ERROR
    return _failed(severity, "model_failed", f"HTTP {exc.status_code}: {exc.message[:500]}", _retry_after(exc))


def _retry_after(exc: openai.APIStatusError) -> float | None:
    try:
        return float(exc.response.headers["retry-after"])
    except (KeyError, ValueError):  # absent, or a date, which nobody sends
        return None


def completion_of(answer: Any) -> Completion:
    """Return the completion that the endpoint's *answer* holds.

    Raises:
        PhaseFailed: it holds none (ERROR `model_invalid_output`).
    """
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        content = message.get("content")
        text = content if isinstance(content, str) else _joined(content)
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        return Completion(
            text,
            reasoning if isinstance(reasoning, str) else None,
            choice.get("finish_reason"),
            _usage(answer.get("usage") or {}),
            answer.get("model"),
        )
    except (AttributeError, IndexError, KeyError, TypeError) as exc:
        message = f"the endpoint's answer is no chat completion ({type(exc).__name__}: {exc}): {str(answer)[:200]!r}"
        raise _failed(Severity.ERROR, "model_invalid_output", message) from exc


def _joined(content: Any) -> str:
    """Return the text of an answer in parts."""
    return "".join(part["text"] for part in content or [] if part.get("type") == "text")


def _usage(counts: Mapping[str, Any]) -> Usage:
    details = counts.get("prompt_tokens_details") or {}
    cost = counts.get("cost")
    return Usage(
        prompt_tokens=_count(counts.get("prompt_tokens")),
        cached_tokens=_count(details.get("cached_tokens")),
        completion_tokens=_count(counts.get("completion_tokens")),
        model_calls=1,
        cost_usd=float(cost) if isinstance(cost, int | float) and 0 <= cost < math.inf else None,
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
