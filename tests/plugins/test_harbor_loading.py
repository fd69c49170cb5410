"""Folders of tasks: what is one, what is none and why, and that the linter agrees."""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest
from support.harbor_tasks import EXAMPLES, make_tasks, write_task

from agentcompass import UsageError
from agentcompass.core.model.network import NetworkMode
from agentcompass.core.model.plan import EvaluationMode
from agentcompass.plugins.benchmarks.harbor.benchmark import Harbor
from agentcompass.plugins.benchmarks.harbor.folder import without_canary
from agentcompass.plugins.benchmarks.harbor.lint import lint
from agentcompass.plugins.benchmarks.harbor.loader import load
from agentcompass.plugins.benchmarks.harbor.registry import latest

SEPARATE = '[verifier]\nenvironment_mode = "separate"\n'
STEPS = '[[steps]]\nname = "one"\n'
WRONG = {  # files over those of a good task: (where, what)
    "no configuration": ({"task.toml": None}, "", "neither task.toml nor task.yaml"),
    "broken configuration": ({"task.toml": "a = 1\n["}, "/task.toml:2", "no TOML"),
    "no instruction": ({"instruction.md": None}, "/instruction.md", "is missing"),
    "empty instruction": ({"instruction.md": "\n \n"}, "/instruction.md:1", "says nothing"),
    "only a canary": ({"instruction.md": "<!-- canary 1 -->\n"}, "/instruction.md:1", "says nothing"),
    "instruction in another encoding": ({"instruction.md": b"one\ntwo \xe9\n"}, "/instruction.md:2", "not UTF-8"),
    "no tests": ({"tests/test.sh": None}, "/tests/test.sh", "is missing"),
    "no environment": ({"environment/Dockerfile": None}, "/environment", "is missing, and there is no"),
    "empty environment": (
        {"environment/Dockerfile": None, "environment/data": ""},
        "/environment",
        "neither Dockerfile nor docker-compose.yaml",
    ),
    "windows": ({"task.toml": '[environment]\nos = "windows"\n'}, "/task.toml:2", "windows tasks are not supported"),
    "step without instruction": ({"task.toml": STEPS}, "/steps/one/instruction.md", "is missing"),
    "step without tests": (
        {"task.toml": STEPS, "steps/one/instruction.md": "x", "tests/test.sh": None},
        "/steps/one/tests/test.sh",
        "is missing",
    ),
    "no tests for a shared verifier": (
        {"tests/test.sh": None, "tests/Dockerfile": "FROM a:1"},
        "/tests/test.sh",
        "is missing",
    ),
}
RIGHT = {
    "plain": {},
    "finished image": {"task.toml": '[environment]\ndocker_image = "a:1"\n', "environment/Dockerfile": None},
    "compose": {"environment/Dockerfile": None, "environment/docker-compose.yaml": "services: {main: {}}\n"},
    "tests in an image": {"task.toml": SEPARATE, "tests/test.sh": None, "tests/Dockerfile": "FROM a:1\n"},
    "image of the verifier": {
        "task.toml": '[verifier.environment]\ndocker_image = "a:1"\n',
        "tests/test.sh": None,
    },
    "steps": {"task.toml": STEPS, "instruction.md": None, "steps/one/instruction.md": "x"},
    "tests of steps": {
        "task.toml": STEPS,
        "instruction.md": None,
        "tests/test.sh": None,
        "steps/one/instruction.md": "x",
        "steps/one/tests/test.sh": "#!/bin/bash\n",
    },
    "byte order marks": {"task.toml": "\ufeff", "instruction.md": "\ufeffx"},
    "unknown keys": {"task.toml": "[agent]\nfoo = 1\n"},
}


def _old(**more):
    return {
        "task.toml": None,
        "instruction.md": None,
        "environment/Dockerfile": None,
        "tests/test.sh": None,
        "solution/solve.sh": None,
        "task.yaml": "instruction: Do it.\ndifficulty: easy\ncategory: files\nmax_agent_timeout_sec: 60\n",
        "Dockerfile": "FROM a:1\n",
        "run-tests.sh": "pytest $TEST_DIR/test_outputs.py -rA\n",
        "tests/test_outputs.py": "",
        "solution.sh": "touch x\n",
        "docker-compose.yaml": "services:\n  client:\n    build: .\n",
        **more,
    }


@pytest.mark.parametrize("name", WRONG)
def test_a_folder_that_is_no_task_is_named_with_file_line_and_reason(tmp_path, name):
    """By the loader and by the linter alike, and it does not cost the tasks beside it."""
    files, where, message = WRONG[name]
    good, bad = write_task(tmp_path / "a"), write_task(tmp_path / "b", files)
    loaded = load(str(tmp_path))
    errors = [finding for finding in lint(str(tmp_path)) if finding.is_error]

    assert ([str(bad)], [str(good)]) == (loaded.rejected, [task.folder for task in loaded.tasks])
    assert f"{bad}{where}" == errors[0].where
    assert message in errors[0].message
    assert errors == [finding for finding in loaded.findings if finding.is_error]


@pytest.mark.parametrize("name", RIGHT)
def test_a_folder_that_is_a_task(tmp_path, name):
    """The linter finds no error in it."""
    write_task(tmp_path / "a", RIGHT[name])

    assert 1 == len(load(str(tmp_path)).tasks)
    assert [] == [finding for finding in lint(str(tmp_path)) if finding.is_error]


def test_links_that_leave_the_task_are_refused(tmp_path):
    """Those that stay inside are fine."""
    good, bad = write_task(tmp_path / "a"), write_task(tmp_path / "b")
    (good / "tests" / "link").symlink_to("test.sh")
    (bad / "environment" / "link").symlink_to("../../a/task.toml")
    loaded = load(str(tmp_path))

    assert [str(bad)] == loaded.rejected
    assert "leaves the task" in loaded.findings[0].message


def test_a_pipe_is_no_configuration(tmp_path):
    """Nobody waits for it."""
    task = write_task(tmp_path / "a", {"task.toml": None})
    os.mkfifo(task / "task.toml")

    assert "is no file" in load(str(tmp_path)).findings[0].message


def test_two_tasks_of_one_name_are_one(tmp_path):
    """The second is refused, naming the first."""
    for name in "ab":
        write_task(tmp_path / name, {"task.toml": '[task]\nname = "org/same"\n'})
    loaded = load(str(tmp_path))

    assert ["org/same"] == [task.name for task in loaded.tasks]
    assert str(tmp_path / "a") in loaded.findings[0].message


def test_a_run_does_not_begin_with_bad_folders_unless_allowed(tmp_path):
    """The refusal counts them and names the first; with allow_invalid all are listed as rejected."""
    write_task(tmp_path / "good")
    for number in range(7):
        write_task(tmp_path / f"bad{number}", {"instruction.md": None})
    with pytest.raises(UsageError) as refused:
        Harbor(str(tmp_path)).load_tasks()
    loaded = Harbor(str(tmp_path), allow_invalid=True).load_tasks()

    assert "7 of 8 folders are no tasks" in str(refused.value)
    assert f"{tmp_path}/bad4/instruction.md: is missing; and 2 more errors" in str(refused.value)
    assert (["good"], 7) == ([task.id for task in loaded.tasks], len(loaded.rejected))


@pytest.mark.parametrize("make", ["missing", "empty", "file", "only bad"])
def test_nothing_to_run_is_an_error(tmp_path, make):
    """However that came about."""
    path = tmp_path / "tasks"
    if make == "file":
        path.write_text("x")
    elif make != "missing":
        path.mkdir()
    if make == "only bad":
        (path / "a").mkdir()
    with pytest.raises(UsageError, match=r"tasks_dir"):
        Harbor(str(path), allow_invalid=True).load_tasks()


def test_one_task_and_many(tmp_path):
    """A folder may be a task itself; what tools leave beside tasks is none."""
    write_task(tmp_path / "b")
    write_task(tmp_path / "a")
    (tmp_path / ".git").mkdir()
    (tmp_path / "README.md").write_text("x")

    assert ["a", "b"] == [task.name for task in load(str(tmp_path)).tasks]
    assert ["a"] == [task.name for task in load(str(tmp_path / "a")).tasks]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<!-- BENCHMARK canary GUID 1 -->\n\nDo it.", "Do it."),
        ("# canary 1\n<!-- Canary -->\n\n\nDo it.\n# canary", "Do it.\n# canary"),
        ("\nDo it.", "\nDo it."),
        ("# Title\n", "# Title\n"),
    ],
)
def test_canaries_are_not_shown(text, left):
    """Only those at the head."""
    assert left == without_canary(text)


def test_a_task_becomes_a_task_and_a_plan(tmp_path, monkeypatch):
    """Budgets, resources, networks and variables arrive; what is not declared stays the format's."""
    monkeypatch.setenv("HOST_KEY", "value-of-the-host")
    toml = (
        'artifacts = ["/app/out"]\n[metadata]\ncategory = "files"\nwhen = 2026-01-01\n[agent]\ntimeout_sec = 5\n'
        'user = "dev"\nnetwork_mode = "no-network"\n[verifier]\nenv = {K = "${HOST_KEY}"}\n[environment]\ncpus = 2\n'
        'env = {A = "${HOST_KEY}", B = "${NONE:-b}", C = "x${HOST_KEY}"}\nworkdir = "/w"\n'
    )
    write_task(tmp_path / "a", {"task.toml": toml})
    harbor = Harbor(str(tmp_path))
    task = harbor.load_tasks().tasks[0]
    plan = harbor.plan(task)

    assert ("a", "Do it.\n", "files", 5.0, None) == (
        task.id,
        task.prompt,
        task.category,
        task.run_timeout_seconds,
        task.evaluation_timeout_seconds,
    )
    assert "2026-01-01" == task.metadata["when"]
    assert {"A": "value-of-the-host", "B": "b", "C": "x${HOST_KEY}"} == plan.environment.env
    assert (600.0, 600.0) == (plan.evaluation_timeout_seconds, plan.build_timeout_seconds)
    assert (str(tmp_path / "a" / "environment"), "/w", 2.0) == (
        plan.environment.build,
        plan.environment.workdir,
        plan.environment.resources.cpu,
    )
    assert plan.run_network is not None
    assert NetworkMode.NO_NETWORK is plan.run_network.network_mode
    assert (None, EvaluationMode.REUSE, None) == (plan.evaluation_network, plan.evaluation_mode, plan.verifier)
    assert ["/app/out"] == [entry.source for entry in plan.artifacts]


@pytest.mark.parametrize("table", ["environment", "verifier"])
def test_a_missing_variable_is_refused_with_its_place(tmp_path, table):
    """File, key and variable, before anything is started; likewise one that tasks may not see."""
    toml = '[%s]\nenv = {KEY = "${NOT_SET_HERE}"}\n' % table  # noqa: UP031
    write_task(tmp_path / "a", {"task.toml": toml})
    for allowed in (None, []):
        harbor = Harbor(str(tmp_path), host_env=allowed)
        with pytest.raises(UsageError, match=rf"task\.toml: {table}\.env\.KEY: .*NOT_SET_HERE"):
            harbor.plan(harbor.load_tasks().tasks[0])


@pytest.mark.parametrize(
    ("files", "image", "build"),
    [
        ({"task.toml": SEPARATE}, None, "environment"),
        ({"task.toml": SEPARATE, "tests/Dockerfile": "FROM a:1"}, None, "tests"),
        ({"task.toml": '[verifier.environment]\ndocker_image = "v:1"\n'}, "v:1", None),
        ({"task.toml": '[environment]\ndocker_image = "e:1"\n' + SEPARATE}, "e:1", None),
        ({"task.toml": "[verifier.environment]\ncpus = 1\n"}, None, "environment"),
    ],
)
def test_where_a_separate_verifier_comes_from(tmp_path, files, image, build):
    """Its own image, else that of the tests, else one like the agent's."""
    folder = write_task(tmp_path / "a", files)
    harbor = Harbor(str(tmp_path))
    plan = harbor.plan(harbor.load_tasks().tasks[0])

    assert EvaluationMode.FRESH is plan.evaluation_mode
    assert (image, build and str(folder / build)) == (plan.verifier.image, plan.verifier.build)


def test_terminal_bench_1(tmp_path):
    """Its budgets, and its image without the compose file that is for its own runner."""
    write_task(tmp_path / "tasks" / "a", _old())
    harbor = Harbor(str(tmp_path / "tasks"), data_dir=str(tmp_path / "data"))
    task = harbor.load_tasks().tasks[0]
    plan = harbor.plan(task)

    assert ("a", "Do it.", "files", 60.0) == (task.id, task.prompt, task.category, task.run_timeout_seconds)
    assert 60.0 == plan.evaluation_timeout_seconds
    assert plan.environment.build.startswith(str(tmp_path / "data"))
    assert "Dockerfile" in os.listdir(plan.environment.build)
    assert "docker-compose.yaml" not in os.listdir(plan.environment.build)
    assert plan.environment.build == harbor.plan(harbor.load_tasks().tasks[0]).environment.build


@pytest.mark.parametrize(
    ("more", "where", "message"),
    [
        ({"task.yaml": "a: [1"}, "/task.yaml:1", "no YAML"),
        ({"task.yaml": "- 1"}, "/task.yaml:1", "no mapping"),
        ({"task.yaml": b"instruction: x\nb: \xff"}, "/task.yaml:2", "not UTF-8"),
        ({"task.yaml": "difficulty: easy\n"}, "/task.yaml:1", "instruction: is missing"),
        ({"task.yaml": "instruction: x\nparser_name: swebench\n"}, "/task.yaml:2", "only pytest is"),
        ({"run-tests.sh": None}, "/run-tests.sh", "is missing"),
        ({"Dockerfile": None}, "/Dockerfile", "is missing"),
        ({"docker-compose.yaml": "services: {a: {}, b: {}}"}, "/docker-compose.yaml", "has the services a, b"),
    ],
)
def test_terminal_bench_1_with_faults(tmp_path, more, where, message):
    """They too have a place and a reason."""
    folder = write_task(tmp_path / "a", _old(**more))
    findings = load(str(tmp_path)).findings

    assert f"{folder}{where}" == findings[0].where
    assert message in findings[0].message


def _dataset(name, version, *paths, **more):
    return {"name": name, "version": version, "tasks": [{"name": path, "path": path, **more} for path in paths]}


def test_a_registry_of_local_paths(tmp_path):
    """The newest version is taken, or the one that is named; paths are relative to the file."""
    for name in ("v1", "v2"):
        write_task(tmp_path / "sets" / name / "a")
    file = tmp_path / "registry.json"
    rows = [_dataset("x", "1.9", "sets/v1/a"), _dataset("x", "1.10", "sets/v2/a"), _dataset("y", "1", "sets/v1/a")]
    file.write_text(json.dumps(rows))

    assert [str(tmp_path / "sets/v2/a")] == [task.folder for task in load(str(file), "x").tasks]
    assert [str(tmp_path / "sets/v1/a")] == [task.folder for task in load(str(file), "x@1.9").tasks]
    for dataset, message in ((None, "has several"), ("z", "not in"), ("x@2", "no version '2'")):
        with pytest.raises(UsageError, match=message):
            load(str(file), dataset)


@pytest.mark.parametrize(
    ("versions", "newest"),
    [
        (["1.9", "1.10"], "1.10"),
        (["2.0rc1", "2.0", "2.0.dev3"], "2.0"),
        (["1.0", "head"], "head"),
        (["a", "b"], "b"),
        (["zeta", "0.1"], "0.1"),
        (["1.0", "1.0.post1"], "1.0.post1"),
    ],
)
def test_which_version_is_the_newest(versions, newest):
    """Head, else the highest number, else the last word."""
    assert newest == latest(versions)


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"name": "x"}]', '[{"name": "x", "tasks": [{"name": "a"}]}]'])
def test_a_broken_registry_is_an_error(tmp_path, text):
    """It names the file."""
    (tmp_path / "registry.json").write_text(text)
    with pytest.raises(UsageError, match=r"registry\.json"):
        load(str(tmp_path / "registry.json"))


def _git(folder, *words):
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@b.example", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout.strip()


def test_a_registry_of_repositories(tmp_path):
    """The wanted folders of the wanted commit are cloned once, and found again without the repository."""
    work, bare = tmp_path / "work", tmp_path / "tasks.git"
    write_task(work / "tasks" / "a", {"instruction.md": "old"})
    write_task(work / "tasks" / "b")
    _git(work, "init", "--quiet", "--initial-branch=main")
    commits = []
    for text in ("old", "new"):
        (work / "tasks" / "a" / "instruction.md").write_text(text)
        _git(work, "add", "-A")
        _git(work, "commit", "--quiet", "-m", text)
        commits.append(_git(work, "rev-parse", "HEAD"))
    subprocess.run(["git", "clone", "--quiet", "--bare", str(work), str(bare)], check=True)
    file, data = tmp_path / "registry.json", tmp_path / "data"
    url = bare.as_uri()
    rows = [
        _dataset("x", "1", "tasks/a", git_url=url, git_commit_id=commits[0]),
        _dataset("x", "2", "tasks/a", git_url=url),
        _dataset("x", "0", "tasks/none", git_url=url, git_commit_id=commits[0]),
        _dataset("x", "bad", "../a", git_url=url),
        _dataset("x", "option", "a", git_url="--upload-pack=touch x"),
        _dataset("x", "odd", "a", git_url=url, git_commit_id="--all"),
    ]
    file.write_text(json.dumps(rows))

    assert ["old"] == [task.instruction for task in load(str(file), "x@1", str(data)).tasks]
    assert ["new"] == [task.instruction for task in load(str(file), "x", str(data)).tasks]
    for version, message in (
        ("0", "git cannot get it"),
        ("bad", "leaves"),
        ("option", "no address"),
        ("odd", "no commit"),
    ):
        with pytest.raises(UsageError, match=message):
            load(str(file), f"x@{version}", str(data))
    assert 2 == len(list((data / "harbor").iterdir())), "a clone that failed has left something"
    bare.rename(tmp_path / "gone.git")
    assert ["old"] == [task.instruction for task in load(str(file), "x@1", str(data)).tasks]


ADVICE = {
    "unpinned": ({"environment/Dockerfile": "FROM a AS b\nFROM b\nFROM c:latest\nFROM r:5000/d\n"}, 3, "is not pinned"),
    "leak": ({"environment/Dockerfile": "FROM a:1\nCOPY tests/ /t\n"}, 1, "where the agent finds them"),
    "no reward": ({"tests/test.sh": "#!/bin/bash\ntrue\n"}, 1, "nothing beside it mentions"),
    "no solution": ({"solution/solve.sh": None}, 1, "nothing proves"),
    "line ends": ({"tests/test.sh": "#!/bin/bash\r\n# reward.txt\n"}, 1, "CR LF"),
    "no interpreter": ({"tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n"}, 1, "which program runs it"),
    "no budgets": ({}, 2, "timeout_sec is missing"),
    "variables": ({"task.toml": '[verifier]\nenv = {A = "${B}"}\n'}, 1, "takes B from the machine"),
    "key": ({"tests/a.py": "x = 'sk-" + "a" * 30 + "'\n"}, 1, "what looks like a key"),
    "nothing to see": ({"task.toml": SEPARATE}, 1, "no artifacts are declared"),
    "image without effect": ({"tests/Dockerfile": "FROM a:1\n"}, 1, "has no effect"),
    "pointer": ({"tests/data.json": "version https://git-lfs.github.com/spec/v1\n"}, 1, "pointer of Git LFS"),
    "ignore file": ({"tests/.harborignore": "x"}, 1, "not honoured"),
}


@pytest.mark.parametrize("name", ADVICE)
def test_advice(tmp_path, name):
    """What can be loaded and should still be mended is a warning."""
    files, count, message = ADVICE[name]
    write_task(tmp_path / "a", files)
    found = [finding for finding in lint(str(tmp_path)) if message in finding.message]

    assert count == len(found), lint(str(tmp_path))
    assert not any(finding.is_error for finding in found)


def test_large_files_are_told(tmp_path):
    """Each attempt would carry them."""
    task = write_task(tmp_path / "a")
    with open(task / "tests" / "big", "wb") as file:
        file.truncate(51 * 2**20)

    assert any("larger than 50 MB" in finding.message for finding in lint(str(tmp_path)))


def test_the_examples_have_no_errors():
    """They are there to be copied."""
    findings = lint(str(EXAMPLES))

    assert 8 == len(load(str(EXAMPLES)).tasks)
    assert [] == [finding for finding in findings if finding.is_error]
    assert ["takes BUILD_VERSION"] == [finding.message.split("BUILD_VERSION ", 1)[1][:19] for finding in findings]


def test_loading_takes_about_a_millisecond_for_each_task(tmp_path):
    """Thousands of folders are no reason to wait."""
    make_tasks(tmp_path, 300)
    began = time.process_time()
    loaded = load(str(tmp_path))

    assert 300 == len(loaded.tasks)
    assert time.process_time() - began < 300 * 0.004
