"""The commands beside run: list, config, doctor, summary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from agentcompass.adapters.cli.main import main


@pytest.fixture
def call(capsys):
    """Run a command; return exit code, stdout, stderr."""

    def run(*words):
        status = main(list(words))
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run


def _files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.seed("CL-03")
@pytest.mark.parametrize(
    ("word", "kind", "one"),
    [
        ("benchmark", "benchmark", "humaneval"),
        ("harness", "harness", "oracle"),
        ("env", "environment", "host_process"),
        ("model", "model", "openai-chat"),
        ("store", "store", "json_files"),
    ],
)
def test_each_kind_can_be_listed(call, word, kind, one):
    """For people and for programs, with a summary each."""
    status, text, err = call("list", word)
    rows = json.loads(call("list", word, "--json")[1])["components"]

    assert (0, "") == (status, err)
    assert one in {row["id"] for row in rows}
    assert {kind} == {row["kind"] for row in rows}
    assert len(rows) == len(text.splitlines())
    assert all(row["summary"] for row in rows)


def test_listing_imports_no_component(call, monkeypatch):
    """So that a broken dependency of one does not cost the list."""
    monkeypatch.setattr("agentcompass.adapters.engine.host.Host.build", None)

    assert 0 == call("list")[0]


@pytest.mark.seed("CL-04")
@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (("execution",), {"task_concurrency", "run_timeout_seconds", "max_retries", "speculative"}),
        (("runtime",), {"results_dir", "timeout_seconds", "provider_limits", "env_open_qps"}),
        (("benchmark", "humaneval"), {"test_timeout_seconds", "python", "sample_ids", "limit", "aggregation_mode"}),
        (("harness", "openai_chat"), {"system_prompt"}),
        (("env", "host_process"), {"memory_mb", "setup.build_timeout_seconds"}),
        (("model", "openai-chat"), {"timeout", "max_retries"}),
    ],
)
def test_every_field_is_explained(call, words, fields):
    """Type, default and meaning, for people and for programs."""
    status, text, _ = call("config", "docs", *words)
    rows = json.loads(call("config", "docs", *words, "--json")[1])["fields"]

    assert 0 == status
    assert fields <= {row["field"] for row in rows}
    for row in rows:
        assert {"field", "type", "default", "meaning"} == set(row)
        assert row["meaning"]
        assert row["type"] != "any"
        assert f"  {row['field']}  ({row['type']}, default " in text


@pytest.mark.seed("CL-04", "CL-06")
def test_the_effective_configuration_is_shown(call, monkeypatch):
    """Every field has a value: the last file's, else the default; the files are named; secrets are hidden."""
    monkeypatch.setenv("TOY_SECRET_KEY", "very-secret-value")
    Path("one.yaml").write_text(
        "execution: {max_retries: 2, attempts: {k: 3}}\nruntime: {provider_limits: {host_process: 4}}\n"
        "environments: {host_process: {env_variables: {TOY_TOKEN: very-secret-value, LANG: C}}}\n"
    )
    Path("two.json").write_text('{"execution": {"max_retries": 5}, "runtime": {"provider_limits": {"other": 1}}}')
    status, text, _ = call("config", "show", "--config", "one.yaml", "--config", "two.json")
    document = json.loads(call("config", "show", "--config", "one.yaml", "--config", "two.json", "--format", "json")[1])

    assert 0 == status
    assert (5, 3, 32) == (
        document["execution"]["max_retries"],
        document["execution"]["attempts"]["k"],
        document["execution"]["task_concurrency"],
    )
    assert {"host_process": 4, "other": 1} == document["runtime"]["provider_limits"]
    assert [str(Path("one.yaml").absolute()), str(Path("two.json").absolute())] == document.pop("files")
    assert "very-secret" not in text
    assert [True, True, False] == [line.startswith("# /") for line in text.splitlines()[:3]]
    assert document == yaml.safe_load(text)


@pytest.mark.seed("CL-06")
def test_layers_lie_over_each_other(toys, tmp_path):
    """Mappings merge deeply, lists replace; JSON mappings lie over files, dedicated options over those."""
    (tmp_path / "low.yaml").write_text(
        "execution: {max_retries: 1, retry_pattern_list: [x, y], run_timeout_seconds: 1000, task_concurrency: 5}\n"
        "benchmarks: {toy: {plan: {run_timeout_seconds: 7, evaluation_timeout_seconds: 8}, limit: 1}}\n"
    )
    (tmp_path / "high.yaml").write_text("execution: {retry_pattern_list: [z]}\n")
    ran = toys.run(
        {"a": {}, "b": {}},
        *("--config", str(tmp_path / "low.yaml"), "--config", str(tmp_path / "high.yaml")),
        *("--max-retries", "3"),
        execution={"max_retries": 2, "task_concurrency": 6},
        plan={"evaluation_timeout_seconds": 9},
    )

    request = ran.document("run_info.json")["request"]
    assert (3, ["z"], 1000, 6) == tuple(
        request["execution"][name]
        for name in ("max_retries", "retry_pattern_list", "run_timeout_seconds", "task_concurrency")
    )
    assert {"run_timeout_seconds": 7, "evaluation_timeout_seconds": 9} == request["benchmark"]["params"]["plan"]
    assert {"a"} == set(ran.details())
    files = [str(tmp_path / "low.yaml"), str(tmp_path / "high.yaml")]
    assert files == json.loads(request["metadata"]["config_path"])


@pytest.mark.seed("CL-06")
def test_the_files_of_user_and_project_are_found(call, monkeypatch, tmp_path):
    """The user's lies lowest, then the project's, then those that are named."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "agentcompass").mkdir()
    (tmp_path / "agentcompass" / "config.yaml").write_text("execution: {max_retries: 1, task_concurrency: 2}")
    Path("agentcompass.yaml").write_text("execution: {task_concurrency: 3, attempts: {k: 4}}")
    Path("deep").mkdir()
    monkeypatch.chdir("deep")
    Path("named.yaml").write_text("execution: {attempts: {k: 5}}")
    shown = json.loads(call("config", "show", "--config", "named.yaml", "--format", "json")[1])

    execution = shown["execution"]
    assert (1, 3, 5) == (execution["max_retries"], execution["task_concurrency"], execution["attempts"]["k"])
    assert 3 == len(shown["files"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("execution: {max_retries: 2}\nbenchmarks: {humaneval: {python: '${PY}', limit: 2}}", None),
        ("{}", None),
        ("execution: {max_retry: 2}", "execution.max_retry: unknown key; did you mean 'max_retries'?"),
        ("benchmarks: {humaneval: {pyton: x}}", "benchmarks.humaneval.pyton: unknown key"),
        ("environments: {host_process: {memory_mb: 0}}", "environments.host_process.memory_mb: 0"),
        ("environments: {host_process: {setup: {build_timeout_seconds: -1}}}", "build_timeout_seconds: -1"),
        ("harnesses: {oracle: {x: 1}}", "harnesses.oracle.x: unknown key"),
        ("runtime: {provider_limits: {host_process: many}}", "runtime.provider_limits.host_process: 'many'"),
    ],
)
def test_a_file_can_be_checked(call, text, problem):
    """Right, or one line with the place of the first mistake."""
    Path("c.yaml").write_text(text)
    status, out, err = call("config", "validate", "c.yaml")

    if problem is None:
        assert (0, f"valid: {Path('c.yaml').absolute()}\n", "") == (status, out, err)
    else:
        assert (2, "", 1) == (status, out, err.count("\n"))
        assert problem in err


def test_the_doctor_tells_what_works(call, toys):
    """A line per finding; what is missing comes with what to type; nothing broken is exit code 0."""
    status, out, err = call("doctor")

    lines = out.splitlines()
    assert (0, "") == (status, err)
    assert lines[0].startswith("agentcompass ")
    for line in ("ok       benchmark humaneval: ready", "ok       environment toy: a toy answers"):
        assert line in lines
    assert any(line.startswith("ok       environment host_process: ") for line in lines)


def test_the_doctor_tells_what_is_missing(call, monkeypatch):
    """With the extra that brings it."""
    monkeypatch.setattr("agentcompass.adapters.cli.cmd_doctor.find_spec", lambda name: None)
    status, out, _ = call("doctor")

    assert 0 == status
    assert "missing  model openai-chat: needs openai: pip install 'agentcompass[models]'" in out.splitlines()


@pytest.mark.parametrize("error", ["raise RuntimeError('no daemon')", "raise SystemExit(3)"])
def test_the_doctor_survives_a_provider_that_fails(call, toys, monkeypatch, error):
    """It is a finding."""
    scope = {}
    exec(f"async def check(self):\n    {error}", scope)
    monkeypatch.setattr("support.toys.ToyProvider.check", scope["check"])
    status, out, _ = call("doctor")

    assert 0 == status
    assert any(line.startswith("missing  environment toy: ") for line in out.splitlines())


TASKS = {
    "a": {"category": "x"},
    "b": {"category": "x", "verdict": False},
    "c": {"category": "y", "run": "error"},
    "d": {"category": "y", "verdict": {"1": True, "2": False}, "usage": {"prompt_tokens": 3, "cost_usd": 0.1}},
}


@pytest.mark.seed("CL-05")
@pytest.mark.parametrize("fatal", [False, True])
@pytest.mark.parametrize("strategy", ["avg", "pass"])
def test_a_summary_gives_the_same_numbers_again(call, toys, fatal, strategy):
    """From the files alone; the benchmark is not asked, and nothing else is touched."""
    tasks = {**TASKS, "e": {"run": "fatal"}} if fatal else TASKS
    ran = toys.run(tasks, "--k", "2", "--attempt-strategy", strategy, aggregation_mode="category_mean")
    before = _files(ran.run_dir)
    (ran.run_dir / "metrics.json").unlink()
    (ran.run_dir / "summary.md").unlink()
    status, out, err = call("summary", str(ran.run_dir))

    after = _files(ran.run_dir)
    assert (int(fatal), "") == (status, err)
    assert json.loads(before[ran.run_dir / "metrics.json"]) == json.loads(after[ran.run_dir / "metrics.json"])
    assert before[ran.run_dir / "summary.md"] == after[ran.run_dir / "summary.md"]
    assert before == after
    assert str(ran.run_dir) in out


def test_a_summary_may_be_only_shown(call, toys):
    """--dry-run writes nothing; text is Markdown, JSON one document."""
    ran = toys.run(TASKS)
    before = _files(ran.run_dir)
    status, text, _ = call("summary", str(ran.run_dir), "--dry-run")
    document = json.loads(call("summary", str(ran.run_dir), "--dry-run", "--output", "json")[1])

    assert (0, before) == (status, _files(ran.run_dir))
    assert before[ran.run_dir / "summary.md"].decode() == text
    assert ran.document("metrics.json") == document


def test_a_summary_with_another_aggregation(call, toys):
    """The same records, other weights; other parameters cannot be changed afterwards."""
    ran = toys.run({"a": {"category": "x"}, "b": {"category": "y", "verdict": False}, "c": {"category": "y"}})
    assert 0 == call("summary", str(ran.run_dir), "--benchmark-params", '{"aggregation_mode": "category_mean"}')[0]
    wrong = call("summary", str(ran.run_dir), "--benchmark-params", '{"limit": 1}')

    assert 0.75 == ran.document("metrics.json")["series"][0]["value"]
    assert (2, 1) == (wrong[0], wrong[2].count("\n"))
    assert "--benchmark-params.limit: unknown key" in wrong[2]


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"task_id": "a"}', b"\xff\xfe", "[" * 10_000])
def test_a_record_that_cannot_be_read_costs_itself_only(call, toys, damage):
    """It is named on stderr, its task is unavailable, the others count."""
    ran = toys.run({"a": {}, "b": {}, "c": {"verdict": False}})
    broken = ran.run_dir / "details" / "a.json"
    broken.write_bytes(damage if isinstance(damage, bytes) else damage.encode())
    status, out, err = call("summary", str(ran.run_dir))

    assert "3 tasks = 2 evaluated + 1 unavailable + 0 invalidated" in out
    assert (0, 1) == (status, err.count("\n"))
    assert str(broken) in err


@pytest.mark.parametrize("name", ["run_info.json", "tasks.jsonl"])
@pytest.mark.parametrize("damage", [None, "", "{", "[1]", "{}"])
def test_a_folder_that_is_no_run_is_refused(call, toys, name, damage):
    """One line, exit code 2 or 1, nothing written."""
    ran = toys.run({"a": {}})
    path = ran.run_dir / name
    path.unlink() if damage is None else path.write_text(damage)
    before = _files(ran.run_dir)
    status, out, err = call("summary", str(ran.run_dir))

    assert status in (1, 2)
    assert ("", 1, before) == (out, err.count("\n"), _files(ran.run_dir))
    assert err.startswith("error: ")


@pytest.mark.seed("CL-01")
@pytest.mark.parametrize("order", ["before", "between", "after"])
def test_the_model_may_be_named_before_or_after_the_options(toys, call, tmp_path, order):
    """Wherever it stands, it is the third name."""
    words, option = toys.words({"a": {}})[2:], ["--results-dir", str(tmp_path / "r"), "--log-level", "ERROR"]
    line = {
        "before": ["toy", "toy", "M", *option, *words],
        "between": ["toy", "toy", *option, "M", *words],
        "after": ["toy", "toy", *option, *words, "M"],
    }[order]

    assert (0, True) == (call("run", *line)[0], (tmp_path / "r" / "M_toy_toy").is_dir())
