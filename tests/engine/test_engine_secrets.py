"""Secrets that components and models spill are nowhere in what a run writes."""

from __future__ import annotations

import json
import logging

import pytest
from support.toys import ToyHarness

KEY = "model-key-4711-abcdefgh"
TOKEN = "value/of+a\"secret\\variable'é"
CONFIGURED = "configured-pass-0815"
PATTERN = "sk-proj-0123456789abcdefghijklmn"
SECRETS = (KEY, TOKEN, CONFIGURED, PATTERN)
SPILL = " and ".join(SECRETS)


def _everything(ran):
    """Return all that the run left, names of files included, as bytes by place."""
    found = {"stdout": ran.out.encode(), "stderr": ran.err.encode()}
    for path in ran.run_dir.rglob("*"):
        found[f"name of {path.name}"] = path.name.encode()
        if path.is_file():
            found[str(path.relative_to(ran.run_dir))] = path.read_bytes()
    return found


def _leaks(ran):
    needles = {form for secret in SECRETS for form in (secret, json.dumps(secret)[1:-1])}
    everything = _everything(ran)
    assert len(everything) > 10
    return sorted({(place, form) for place, data in everything.items() for form in needles if form.encode() in data})


def _run(toys, monkeypatch, tasks, *options, **more):
    monkeypatch.setenv("TOY_API_TOKEN", TOKEN)
    params = {"api_key": CONFIGURED}
    return toys.run(
        tasks,
        *("--model-api-key", KEY, "--model-base-url", "http://localhost:1/v1", "--log-level", "DEBUG"),
        *("--model-params", json.dumps({"extra_headers": params}), *options),
        quiet=False,
        model="M",
        **more,
    )


@pytest.mark.seed("RR-07", "ER-01")
def test_secrets_in_what_components_return(toys, monkeypatch):
    """Prompts, answers, telemetry, artifacts, evidence, trajectories, ground truth: values and keys of mappings."""
    spill = {"text": SPILL, SPILL: [SPILL, {SPILL: SPILL}], "number": 1}
    script = {
        "prompt": SPILL,
        "category": f"category {KEY}",
        "answer": spill,
        "telemetry": spill,
        "artifacts": spill,
        "evidence": spill,
        "ground_truth": spill,
        "trajectory": {"steps": [spill]},
    }
    ran = _run(toys, monkeypatch, {"a": script})

    assert (0, []) == (ran.status, _leaks(ran))
    assert "********" in json.dumps(ran.details()["a"])


@pytest.mark.seed("RR-07", "ER-01")
@pytest.mark.parametrize("step", ["plan", "open", "prepare", "start", "run", "collect", "finish", "evaluate", "close"])
def test_secrets_in_exceptions(toys, monkeypatch, step):
    """In messages, tracebacks, logs, events and retries."""
    ran = _run(toys, monkeypatch, {"a": {step: f"raise:{SPILL}\n{SPILL}"}}, "--max-retries", "1")

    assert [] == _leaks(ran)
    assert "********" in json.dumps(ran.details()["a"]["attempts"]["1"]["issues"])


@pytest.mark.seed("RR-07", "ER-01")
@pytest.mark.parametrize("word", ["fatal:code", "error:code", "warning:code"])
def test_secrets_in_issues(toys, monkeypatch, word):
    """A component's own classification is redacted too."""
    ran = _run(toys, monkeypatch, {"a": {"run": f"{word}:{SPILL}"}}, "--max-retries", "1")

    assert [] == _leaks(ran)


@pytest.mark.seed("RR-07", "RR-06")
def test_secrets_in_what_libraries_log(toys, monkeypatch):
    """Whoever logs them, as argument or in a traceback, on the terminal and in the file."""

    async def telling(self, session, prepared, *, timeout):
        logging.getLogger("otherlib").error("called with %s", {"key": SPILL})
        try:
            int(SPILL)
        except ValueError:
            logging.getLogger("agentcompass.toy").exception("it broke")

    monkeypatch.setattr(ToyHarness, "execute_task", telling)
    ran = _run(toys, monkeypatch, {"a": {}})

    log = (ran.run_dir / "run.log").read_text("utf-8")
    assert [] == _leaks(ran)
    assert "ValueError: invalid literal for int() with base 10: '********" in log


@pytest.mark.seed("RR-07")
def test_secrets_in_the_benchmarks_data(toys, monkeypatch):
    """The reason for which the run failed, and the items that are no tasks."""
    failed = _run(toys, monkeypatch, {"a": {}}, load=f"raise:{SPILL}")
    rejected = _run(toys, monkeypatch, {"a": {}}, rejected=[SPILL])

    assert ([], []) == (_leaks(failed), _leaks(rejected))
    assert "********" in failed.out


@pytest.mark.seed("RR-07")
def test_secrets_in_the_machine_readable_result(toys, monkeypatch):
    """The one document on stdout is redacted as well."""
    ran = _run(toys, monkeypatch, {"a": {}}, "--output", "json", load=f"raise:{SPILL}")

    assert ([], "failed") == (_leaks(ran), json.loads(ran.out)["status"])


@pytest.mark.seed("RR-07")
def test_a_dry_run_shows_no_secret(toys, monkeypatch):
    """Neither of the model nor of the parameters."""
    for form in ("text", "json"):
        ran = _run(toys, monkeypatch, {"a": {}}, "--dry-run", "--output", form)

        assert [] == [secret for secret in SECRETS if secret in ran.out + ran.err]


def test_ordinary_words_are_not_hidden(toys, monkeypatch):
    """A variable with a telling name and a mere word as its value hides nothing of that word."""
    monkeypatch.setenv("OTHER_PASSWORD", "password")
    ran = _run(toys, monkeypatch, {"a": {"answer": "the password is short", "telemetry": {"max_tokens": 5}}})

    attempt = ran.details()["a"]["attempts"]["1"]
    assert ("the password is short", 5) == (
        attempt["final_answer"],
        attempt["meta"]["harness"]["telemetry"]["max_tokens"],
    )
