"""``agentcompass env``: what runs have left open is listed, closed, and removed by the next run."""

from __future__ import annotations

import json

import pytest
from support import leaver
from support.running import runner
from support.toys import install

from agentcompass.adapters.cli.main import main


@pytest.fixture
def env(tmp_path, monkeypatch, capsys):
    """Return a function that runs ``agentcompass env ...``; gives status, stdout and stderr."""
    install(tmp_path / "site", monkeypatch, "leaver", leaver.ENTRY_POINTS)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for store in (leaver.LEFT, leaver.STUCK, leaver.SILENT):
        store.clear()
    leaver.leave("dead", run="r1", task="t", attempt="1")
    leaver.leave("living", abandoned=False)
    leaver.leave("kept", abandoned=False, kept=True, run="r2", task="t")

    def run(*words):
        status = main(["env", *words, "--results-dir", str(tmp_path / "results")])
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run


def _record(tmp_path, name):
    path = tmp_path / "results" / "a" / "b" / "resources" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"provider": "leaver", "resource": {"id": name}}))
    return path


def test_what_is_left_is_listed_with_its_state(env):
    """By id, with the run and the task that it was for."""
    status, out, _ = env("list")
    lines = {line.split()[0]: line for line in out.splitlines()}

    assert 0 == status
    assert "abandoned" in lines["dead"]
    assert "run r1, task t" in lines["dead"]
    assert "in use" in lines["living"]
    assert "kept" in lines["kept"]


def test_the_list_is_also_a_document(env, tmp_path):
    """With the records that speak of each."""
    path = _record(tmp_path, "dead")
    found = {entry["id"]: entry for entry in json.loads(env("list", "--json")[1])}

    assert ["abandoned", [str(path)]] == [found["dead"]["state"], found["dead"]["records"]]


@pytest.mark.seed("RE-10")
def test_all_closes_what_no_living_run_uses(env, tmp_path):
    """What is abandoned and what was kept; records of what is gone go too."""
    paths = [_record(tmp_path, name) for name in ("dead", "living", "long-gone")]
    status, out, _ = env("close", "--all")

    assert 0 == status
    assert {"closed dead", "closed kept"} == set(out.splitlines())
    assert ["living"] == list(leaver.LEFT)
    assert [False, True, False] == [path.exists() for path in paths]


def test_an_id_closes_exactly_that(env):
    """Whoever it belongs to."""
    assert (0, "closed living\n") == env("close", "living")[:2]
    assert {"dead", "kept"} == set(leaver.LEFT)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["close"], "env close: name what to close, or say --all"),
        (["close", "x", "--all"], "env close: name what to close, or say --all"),
        (["close", "no-such"], "env close: there is no sandbox 'no-such'; see agentcompass env list"),
    ],
)
def test_a_wrong_request_closes_nothing(env, words, part):
    """One line, exit code 2."""
    status, _, err = env(*words)

    assert 2 == status
    assert part in err
    assert 3 == len(leaver.LEFT)


def test_what_cannot_be_closed_is_told(env):
    """The others are closed all the same."""
    leaver.STUCK.add("dead")
    status, out, err = env("close", "--all")

    assert 1 == status
    assert "closed kept\n" == out
    assert "dead is still there: it does not let go" in err


def test_a_provider_that_does_not_answer_is_named(env):
    """And is no reason not to list the others."""
    leaver.SILENT.append("its daemon sleeps")
    status, out, err = env("list")

    assert (0, "nothing is left open\n") == (status, out)
    assert "leaver does not answer: leaver: its daemon sleeps" in err


def test_the_next_run_removes_what_killed_runs_left(env, tmp_path, capsys):
    """Only what is abandoned; and a failed opening leaves no record."""
    ran = runner(tmp_path, capsys)("humaneval", "nop", "--limit", "1", "--env", "leaver")

    assert {"living", "kept"} == set(leaver.LEFT)
    assert [] == list(ran.run_dir.glob("resources/*"))
    assert "nothing can be opened" in ran.details()["HumanEval/0"]["attempts"]["1"]["issues"][0]["message"]
