"""Environment variables by scope, given as a user gives them, seen by the commands of each phase."""

from __future__ import annotations

import json

import pytest
from support.environs import ENTRY_POINTS
from support.toys import install

from agentcompass.adapters.cli.main import main

SCOPES = {
    "env_variables": {"AC_COMMON": "c", "AC_BOTH": "common"},
    "run_env_variables": {"AC_RUN": "r", "AC_BOTH": "run"},
    "evaluation_env_variables": {"AC_GRADER_KEY": "${AC_PLANTED}", "AC_BOTH": "evaluation"},
}


@pytest.fixture
def run(tmp_path, monkeypatch, command):
    """Run the plugin that says what it sees, with these parameters of the environment."""
    install(tmp_path / "site", monkeypatch, "environs", ENTRY_POINTS)
    monkeypatch.setenv("AC_PLANTED", "planted-grader-value")

    def runs(params, mode="reuse"):
        benchmark = json.dumps({"mode": mode})
        return command("environs", "environs", "--env-params", json.dumps(params), "--benchmark-params", benchmark)

    return runs


def _seen(ran):
    assert 0 == ran.status, ran.err
    return ran.document("attempts/one/1/result.json")["meta"]["benchmark"]


@pytest.mark.seed("EV-01")
def test_each_phase_sees_its_own_variables(run):
    """The common ones everywhere, the run's from set-up to the end of the run, the grader's in its commands only."""
    ran = run(SCOPES)
    seen = _seen(ran)

    assert {"AC_COMMON": "c", "AC_BOTH": "common"} == seen["prepare"]
    assert {"AC_COMMON": "c", "AC_BOTH": "run", "AC_RUN": "r"} == seen["setup"] == seen["run"]
    assert {"AC_COMMON", "AC_BOTH", "AC_GRADER_KEY"} == set(seen["evaluate"])
    assert "evaluation" == seen["evaluate"]["AC_BOTH"]


@pytest.mark.seed("EV-01")
def test_a_referenced_secret_reaches_the_grader_and_no_file(run):
    """The value comes from the environment of the command, and stands nowhere in the records."""
    ran = run(SCOPES)

    assert "AC_GRADER_KEY" in _seen(ran)["evaluate"]
    files = [path for path in ran.run_dir.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"planted-grader-value" in path.read_bytes()]


@pytest.mark.seed("EV-01")
def test_a_fresh_verifier_starts_with_its_own_variables(run):
    """They take the place of the common ones there; the run's never get in."""
    fresh = {**SCOPES, "evaluation_environment_env_variables": {"AC_VERIFIER": "v"}}

    assert {"AC_COMMON", "AC_BOTH", "AC_GRADER_KEY"} == set(_seen(run(SCOPES, "fresh"))["evaluate"])
    assert {"AC_VERIFIER", "AC_BOTH", "AC_GRADER_KEY"} == set(_seen(run(fresh, "fresh"))["evaluate"])


@pytest.mark.seed("EV-01")
@pytest.mark.parametrize("mode", ["none", "reuse"])
def test_a_verifier_that_never_starts_takes_no_variables(run, mode):
    """Without a fresh verifier its variables are refused, and nothing is made."""
    ran = run({"evaluation_environment_env_variables": {}}, mode)

    assert (2, None) == (ran.status, ran.run_dir)
    assert "environments.host_process.evaluation_environment_env_variables: needs the evaluation mode fresh" in ran.err


@pytest.mark.seed("EV-01")
@pytest.mark.parametrize(
    ("params", "part"),
    [
        ({"run_env_variables": {"a-b": "1"}}, "environments.host_process.run_env_variables.a-b: 'a-b' is no name"),
        ({"env_variables": {"A": 1}}, "environments.host_process.env_variables.A: 1 is not text"),
        ({"env_variables": ["A"]}, "environments.host_process.env_variables"),
        (
            {"evaluation_env_variables": {"A": "${AC_NOT_SET}"}},
            "evaluation_env_variables.A: the environment variable AC_NOT_SET",
        ),
        ({"env_variables": {"A": "${AC-B}"}}, "env_variables.A: '${AC-B}' holds no reference that can be read"),
        ({"run_env_variable": {}}, "run_env_variable: unknown key; did you mean 'run_env_variables'?"),
    ],
)
def test_wrong_variables_are_refused_in_one_line(run, params, part):
    """The field, the value and the mend; exit code 2; no run."""
    ran = run(params)

    assert (2, None, 1) == (ran.status, ran.run_dir, ran.err.count("\n"))
    assert part in ran.err


@pytest.mark.seed("EV-01", "CL-06")
def test_variables_of_a_configuration_file_are_checked_and_merged(run, tmp_path, monkeypatch, capsys):
    """They lie under those of the command line; `config validate` knows them and refuses a wrong name."""
    monkeypatch.chdir(tmp_path)
    text = "environments: {host_process: {run_env_variables: {AC_RUN: file, %s: file}}}"
    (tmp_path / "agentcompass.yaml").write_text(text % "AC_FILE")
    (tmp_path / "wrong.yaml").write_text(text % "a-b")

    assert 0 == main(["config", "validate"])
    assert 2 == main(["config", "validate", "wrong.yaml"])
    assert "environments.host_process.run_env_variables.a-b" in capsys.readouterr().err
    found = _seen(run({"run_env_variables": {"AC_RUN": "words"}}))["run"]
    assert {"AC_RUN": "words", "AC_FILE": "file"} == found


@pytest.mark.seed("EV-01")
def test_references_stand_inside_text_and_have_defaults(run, monkeypatch):
    """A variable that is unset, or empty, gives its default."""
    monkeypatch.setenv("AC_PLACE", "here")
    monkeypatch.setenv("AC_EMPTY", "")
    values = {"AC_A": "x/${AC_PLACE}/${AC_NOT_SET:-there}", "AC_B": "${AC_EMPTY:-}|$HOME", "AC_C": "${AC_PLACE:-no}"}

    found = _seen(run({"run_env_variables": values}))["run"]
    assert {"AC_A": "x/here/there", "AC_B": "|$HOME", "AC_C": "here"} == found


@pytest.mark.seed("EV-01", "CL-04")
def test_the_variables_are_explained_with_every_environment(capsys):
    """`config docs env` lists them beside the provider's own parameters."""
    assert 0 == main(["config", "docs", "env", "host_process", "--json"])
    fields = {row["field"] for row in json.loads(capsys.readouterr().out)["fields"]}
    scopes = {"env_variables", "run_env_variables", "evaluation_env_variables", "evaluation_environment_env_variables"}
    assert scopes < fields
