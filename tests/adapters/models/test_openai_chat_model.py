"""Chat completions: what is sent, what is read of the answer, how refusals are repeated."""

from __future__ import annotations

import asyncio
import json

import pytest
from support.endpoint import Reply, answer, serving
from support.humaneval import asked, right

from agentcompass.adapters.models.openai_chat import OpenAIChatModel
from agentcompass.core.errors import PhaseFailed
from agentcompass.core.model.result import Usage
from agentcompass.core.model.task import Message

QUESTION = (Message("system", "Be brief."), Message("user", "1 + 1?"))


def _ask(script, params=None, **options):
    """Return what the endpoint was asked, and the model's completion or failure."""

    async def ask(endpoint):
        model = OpenAIChatModel("M", endpoint.url, "key-of-the-test", **options)
        try:
            return await model.complete(QUESTION, params or {})
        except PhaseFailed as failure:
            return failure
        finally:
            await model.close()
            await model.close()

    with serving(script) as endpoint:
        return endpoint, asyncio.run(ask(endpoint))


def test_the_request_holds_model_messages_and_nothing_else():
    """Without parameters nothing is made up."""
    endpoint, _ = _ask(lambda body: answer("2"))

    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 + 1?"}]
    assert [{"model": "M", "messages": messages}] == endpoint.requests
    assert ["Bearer key-of-the-test"] == endpoint.keys


def test_parameters_are_sent_as_given():
    """Those that we know and those that we do not; only the client's own two stay here."""
    params = {
        "temperature": 0.0,
        "top_p": 0.95,
        "max_tokens": 64,
        "stop": ["\n\n"],
        "seed": 7,
        "chat_template_kwargs": {"thinking": False},
    }
    endpoint, _ = _ask(lambda body: answer("2"), {**params, "timeout": 5, "max_retries": 0})

    assert params == {key: value for key, value in endpoint.requests[0].items() if key not in ("model", "messages")}


def test_parameters_reach_the_endpoint_from_the_command_line(command):
    """And the client's own two are obeyed instead of sent."""

    def script(body):
        return right(asked(body)[1])

    params = {"temperature": 0.25, "max_retries": 0, "timeout": 9}
    with serving(script) as endpoint:
        words = ("--model-base-url", endpoint.url, "--model-params", json.dumps(params), "--limit", "1")
        ran = command("humaneval", "openai_chat", "org/M:free", *words)

    sent = endpoint.requests[0]
    assert (0, 0.25, "org/M:free", False, False) == (
        ran.status,
        sent["temperature"],
        sent["model"],
        "timeout" in sent,
        "max_retries" in sent,
    )
    assert params == ran.document("params.json")["model"]["params"]


def test_what_is_read_of_an_answer():
    """Text as it came, reasoning, finish reason, model and usage, cached tokens and cost among it."""
    message = {"role": "assistant", "content": " 2\n", "reasoning_content": "one and one"}
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 64},
        "cost": 0.0125,
    }
    body = {"model": "M-2026", "choices": [{"message": message, "finish_reason": "length"}], "usage": usage}
    _, completion = _ask(lambda asked: Reply(body))

    assert (" 2\n", "one and one", "length", "M-2026") == (
        completion.text,
        completion.reasoning,
        completion.finish_reason,
        completion.model,
    )
    assert Usage(100, 64, 5, model_calls=1, cost_usd=0.0125) == completion.usage


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": -1, "completion_tokens": True, "cost": "free"}])
def test_unknown_usage_is_no_zero(usage):
    """What the endpoint does not say, or says wrongly, stays unknown."""
    body = {"choices": [{"message": {"content": "2"}}], "usage": usage}
    _, completion = _ask(lambda asked: Reply(body))

    assert Usage(model_calls=1) == completion.usage


@pytest.mark.parametrize("cost", ["NaN", "Infinity", "-1"])
def test_a_cost_that_is_none_is_unknown(cost):
    """No total is spoilt by it."""
    body = '{"choices": [{"message": {"content": "2"}}], "usage": {"cost": COST}}'.replace("COST", cost).encode()
    _, completion = _ask(lambda asked: Reply(body))

    assert completion.usage.cost_usd is None


@pytest.mark.parametrize(("retries", "calls"), [(0, 1), (1, 2), (2, 3)])
def test_refusals_are_repeated_by_the_library(retries, calls):
    """So often as `max_retries` says, after the time that the endpoint asks for."""
    refusal = Reply({"error": {"message": "later"}}, 503, {"retry-after-ms": "1", "retry-after": "0"})
    endpoint, failure = _ask(lambda body: refusal, max_retries=retries)

    assert (calls, "model_failed") == (len(endpoint.requests), failure.issue.code)


def test_a_refusal_that_is_over_leaves_no_trace():
    """The answer after it is an answer."""
    replies = [Reply({}, 429, {"retry-after-ms": "1"}), answer("2")]
    endpoint, completion = _ask(lambda body: replies.pop(0))

    assert (2, "2") == (len(endpoint.requests), completion.text)


@pytest.mark.parametrize(("status", "calls"), [(400, 1), (401, 1), (404, 1)])
def test_what_cannot_get_better_is_not_repeated(status, calls):
    """The library repeats no request that is wrong."""
    endpoint, failure = _ask(lambda body: Reply({"error": {"message": "no"}}, status))

    assert (calls, f"HTTP {status}: ") == (len(endpoint.requests), failure.issue.message[:10])


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ({"retry-after": "17"}, 17.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "Wed, 21 Oct 2026"}, None),
        ({}, None),
    ],
)
def test_a_wish_to_be_left_alone_is_passed_on(header, seconds):
    """So that the runtime's own retry honours it."""
    _, failure = _ask(lambda body: Reply({}, 429, header), max_retries=0)

    assert seconds == failure.retry_after


def test_the_runtime_waits_as_long_as_the_endpoint_wishes(command):
    """From the header to the delay of the retry."""
    replies = [Reply({}, 429, {"retry-after": "0.3"})]

    def script(body):
        return replies.pop() if replies else right(asked(body)[1])

    rules = {"retry_min_delay_seconds": 0.001, "retry_max_delay_seconds": 0.002, "max_retries": 1}
    with serving(script) as endpoint:
        ran = command(
            *("humaneval", "openai_chat", "M", "--model-base-url", endpoint.url, "--limit", "1"),
            *("--model-params", '{"max_retries": 0}', "--execution-params", json.dumps(rules)),
        )

    (retry,) = [event for event in ran.events() if event["event"] == "attempt_retry"]
    assert (0, 0.3) == (ran.status, retry["payload"]["retry_delay_seconds"])


def test_a_local_endpoint_needs_no_key(command):
    """Inference servers of one's own have none; something is sent, since the protocol wants it."""
    with serving(lambda body: right(asked(body)[1])) as endpoint:
        ran = command("humaneval", "openai_chat", "M", "--model-base-url", endpoint.url, "--limit", "1")

    assert (0, ["Bearer none"]) == (ran.status, endpoint.keys)


def test_endpoint_and_key_may_be_variables(command, monkeypatch):
    """`${NAME}` as the whole option is read from the environment, and neither is recorded in clear."""
    with serving(lambda body: right(asked(body)[1])) as endpoint:
        monkeypatch.setenv("TOY_URL", endpoint.url)
        monkeypatch.setenv("TOY_KEY", "very-secret-toy-key")
        options = ("--model-base-url", "${TOY_URL}", "--model-api-key", "${TOY_KEY}", "--limit", "1")
        ran = command("humaneval", "openai_chat", "M", *options)

    assert (0, ["Bearer very-secret-toy-key"]) == (ran.status, endpoint.keys)
    assert "very-secret" not in (ran.run_dir / "run_info.json").read_text()
