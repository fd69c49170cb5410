"""Model endpoints that refuse, hang or talk nonsense: one issue on one attempt, classified, and the rest unharmed."""

from __future__ import annotations

import json
import socket

import pytest
from support.endpoint import Reply, answer, serving
from support.humaneval import asked, right

OFF = {"max_retries": 0}


def _run(command, url, *options, params=OFF, **more):
    words = ("humaneval", "openai_chat", "M", "--model-base-url", url, "--model-params", json.dumps(params))
    return command(*words, "--limit", "2", *options, **more)


def _first_only(reply):
    """Return a script that gives *reply* for the first task, and solves the second."""

    def script(body):
        number, row = asked(body)
        return right(row) if number else reply

    return script


def _attempt(ran, number):
    return ran.details()[f"HumanEval/{number}"]["attempts"]["1"]


def _completion(**message):
    return {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}]}


REPLIES = {
    "401": (Reply({"error": {"message": "bad key"}}, 401), "fatal", "model_failed", "HTTP 401: "),
    "402": (Reply({"error": {"message": "pay first"}}, 402), "fatal", "model_failed", "pay first"),
    "403": (Reply({"error": {"message": "not yours"}}, 403), "fatal", "model_failed", "HTTP 403: "),
    "429": (Reply({"error": {"message": "slow down"}}, 429), "fatal", "model_failed", "HTTP 429: "),
    "500": (Reply({"error": {"message": "oops"}}, 500), "fatal", "model_failed", "HTTP 500: "),
    "503": (Reply(b"<html>overloaded</html>", 503), "fatal", "model_failed", "HTTP 503: "),
    "404": (Reply({"error": {"message": "no such model"}}, 404), "error", "model_failed", "no such model"),
    "400": (Reply({"error": {"message": "too long"}}, 400), "error", "model_failed", "HTTP 400: "),
    "HTML": (
        Reply(b"<!doctype html><p>Sign in", headers={"content-type": "text/html"}),
        "error",
        "model_invalid_output",
        "is no chat completion",
    ),
    "empty body": (Reply(b""), "error", "model_invalid_output", "is no JSON"),
    "broken JSON": (Reply(b'{"choices": ['), "error", "model_invalid_output", "is no JSON"),
    "JSON null": (Reply(None), "error", "model_invalid_output", "is no chat completion"),
    "JSON list": (Reply([]), "error", "model_invalid_output", "is no chat completion"),
    "no choices": (Reply({"id": "1"}), "error", "model_invalid_output", "is no chat completion"),
    "empty choices": (Reply({"choices": []}), "error", "model_invalid_output", "is no chat completion"),
    "null choice": (Reply({"choices": [None]}), "error", "model_invalid_output", "is no chat completion"),
    "no message": (Reply({"choices": [{}]}), "error", "model_invalid_output", "is no chat completion"),
    "an error with status 200": (Reply({"error": {"message": "odd"}}), "error", "model_invalid_output", "odd"),
    "number as content": (Reply(_completion(content=5)), "error", "model_invalid_output", "is no chat completion"),
    "parts without text": (
        Reply(_completion(content=[{"type": "text"}])),
        "error",
        "model_invalid_output",
        "is no chat completion",
    ),
    "null content": (Reply(_completion(content=None)), "error", "model_empty_output", "the model's answer is empty"),
    "no content": (Reply(_completion()), "error", "model_empty_output", "the model's answer is empty"),
    "white space": (answer(" \n\t"), "error", "model_empty_output", "(finish reason: stop)"),
    "empty parts": (Reply(_completion(content=[])), "error", "model_empty_output", "the model's answer is empty"),
    "invalid UTF-8": (
        Reply(b'{"choices": [{"message": {"content": "\xff"}}]}'),
        "error",
        "model_invalid_output",
        "is no JSON",
    ),
}


@pytest.mark.seed("ER-02")
@pytest.mark.parametrize("name", REPLIES)
def test_what_an_endpoint_may_answer(command, name):
    """Credentials, quota and server errors are FATAL, everything else is an ERROR of the attempt."""
    reply, severity, code, message = REPLIES[name]
    with serving(_first_only(reply)) as endpoint:
        ran = _run(command, endpoint.url)

    first = _attempt(ran, 0)["issues"][0]
    assert (severity, "run", code) == (first["severity"], first["phase"], first["code"])
    assert message in first["message"]
    assert "\n" not in first["message"]
    assert (1 if severity == "fatal" else 0, {"correct": True}) == (ran.status, _attempt(ran, 1)["metrics"])
    assert "Traceback" not in ran.out + ran.err


@pytest.mark.seed("ER-02")
def test_an_endpoint_that_is_not_there(command):
    """Refused connections are FATAL, and the line names the endpoint and the reason."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        ran = _run(command, url)

    issue = _attempt(ran, 0)["issues"][0]
    assert (1, "fatal", "model_failed") == (ran.status, issue["severity"], issue["code"])
    assert f"{url}/ cannot be reached: ConnectError: " in issue["message"]


@pytest.mark.seed("ER-02")
def test_a_name_that_nobody_knows(command):
    """It is told like any endpoint that cannot be reached."""
    ran = _run(command, "http://nowhere.invalid/v1")

    assert "http://nowhere.invalid/v1/ cannot be reached: " in _attempt(ran, 0)["issues"][0]["message"]
    assert 1 == ran.status


@pytest.mark.seed("ER-02")
def test_an_endpoint_that_hangs(command):
    """The request's own limit ends it: ERROR model_timeout, naming limit and value."""
    with serving(_first_only(Reply(hang_seconds=30))) as endpoint:
        ran = _run(command, endpoint.url, params={**OFF, "timeout": 0.3})

    issue = _attempt(ran, 0)["issues"][0]
    assert ("error", "model_timeout") == (issue["severity"], issue["code"])
    assert "no answer within 0.3 s, the limit model.params.timeout" == issue["message"]


@pytest.mark.seed("TO-06", "TO-10")
def test_the_budget_of_the_run_ends_a_hanging_request(command):
    """With a shorter budget of the run, that limit fires, and says that it was it."""
    rules = json.dumps({"run_timeout_seconds": 0.2, "run_timer_compensation_seconds": 0.1})
    with serving(_first_only(Reply(hang_seconds=30))) as endpoint:
        ran = _run(command, endpoint.url, "--execution-params", rules)

    issue = _attempt(ran, 0)["issues"][0]
    assert ("error", "run_timeout") == (issue["severity"], issue["code"])
    assert "the limit execution.run_timeout_seconds (0.2 s, " in issue["message"]


def test_a_connection_that_breaks_off(command):
    """An answer that ends in its middle is a failure of the endpoint."""
    with serving(_first_only(Reply(hang_seconds=0.01))) as endpoint:
        ran = _run(command, endpoint.url)

    issue = _attempt(ran, 0)["issues"][0]
    assert ("fatal", "model_failed") == (issue["severity"], issue["code"])
    assert "cannot be reached: " in issue["message"]


ODD = {
    "a lone surrogate": "```python\nx = '\ud800'\n```",
    "NUL": "```python\nx = '\0'\n```",
    "a megabyte in one line": "```python\nx = '" + "y" * 1_000_000 + "'\n```",
    "control characters": "\x1b[2J\x1b]0;owned\x07```python\n\x08\r\n```",
    "bidirectional marks": "```python\n\u202e\u2066x\n```",
}


@pytest.mark.parametrize("name", ODD)
def test_odd_answers_are_graded_as_they_are(command, name):
    """They cost at most their task's point; the records can be read, and the other task is right."""
    raw = json.dumps(_completion(content=ODD[name])).encode()
    with serving(_first_only(Reply(raw))) as endpoint:
        ran = _run(command, endpoint.url)

    assert ({"correct": False}, {"correct": True}) == (_attempt(ran, 0)["metrics"], _attempt(ran, 1)["metrics"])
    assert (0, ODD[name]) == (ran.status, _attempt(ran, 0)["final_answer"])
    assert "\x1b" not in ran.out + ran.err


def test_content_in_parts_is_joined(command):
    """Text parts are the answer; others are left out."""

    def script(body):
        _, row = asked(body)
        text = f"```python\n{row['prompt']}{row['canonical_solution']}```"
        parts = [{"type": "text", "text": text[:9]}, {"type": "image"}, {"type": "text", "text": text[9:]}]
        return Reply(_completion(content=parts))

    with serving(script) as endpoint:
        ran = _run(command, endpoint.url)

    assert 1.0 == ran.document("metrics.json")["series"][0]["value"]


def test_a_message_of_the_endpoint_is_cut_and_one_line(command):
    """A page of HTML in an error does not fill the records."""
    with serving(_first_only(Reply({"error": {"message": "word\n" * 5000}}, 400))) as endpoint:
        ran = _run(command, endpoint.url)

    message = _attempt(ran, 0)["issues"][0]["message"]
    assert len(message) < 600
    assert "\n" not in message
