"""The Python API: keyword arguments, observers, errors that carry the paths, several runs at once."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import threading
from pathlib import Path

import pytest
from support.toys import BOARD

import agentcompass
from agentcompass import (
    RunFailedError,
    UsageError,
    async_run_evaluation,
    build_run_request,
    run_evaluation,
    run_request,
)
from agentcompass.adapters.cli.parser import build_parser
from agentcompass.ports.reporter import Reporter


def _arguments(tmp_path, tasks, **more):
    params = {"tasks": tasks, **more.pop("benchmark_params", {})}
    defaults = {"results_dir": tmp_path / "results", "progress": "none", "log_level": "ERROR"}
    return {
        "benchmark": "toy",
        "harness": "toy",
        "environment": "toy",
        "benchmark_params": params,
        **defaults,
        **more,
    }


class Collecting(Reporter):
    """Remembers what it sees."""

    def __init__(self, broken=False):
        self.events, self.closed, self._broken = [], 0, broken

    def on_event(self, event, progress):
        self.events.append((event.event, progress.finished_tasks))
        if self._broken:
            raise ValueError("the reporter broke")

    def close(self):
        self.closed += 1


@pytest.mark.seed("SD-01")
def test_an_evaluation_is_one_call(toys, tmp_path):
    """It returns status, score, headline, counts and paths; the files are there."""
    result = run_evaluation(**_arguments(tmp_path, {"a": {}, "b": {"verdict": False}}, run_name="g", run_id="it"))

    folder = tmp_path / "results" / "g" / "toy_toy" / "it"
    assert ("completed", 0.5, "it", str(folder)) == (
        result.status,
        result.score,
        result.run_id,
        result.paths["run_dir"],
    )
    assert result.headline.startswith("0.500 ")
    assert json.loads((folder / "metrics.json").read_text()) == result.document()["metrics"]


@pytest.mark.seed("SD-01")
def test_every_option_of_the_command_line_has_an_argument():
    """Under the option's own name, but for what only a terminal needs."""
    run = next(a for a in build_parser()._actions if a.dest == "command").choices["run"]
    options = {option.removeprefix("--").replace("-", "_") for a in run._actions for option in a.option_strings[:1]}
    renamed = {"env": "environment", "env_params": "environment_params", "config": "config_path"}
    renamed |= {"provider_limit": "provider_limits", "recipe": "enabled_recipes", "recipe_dir": "recipe_dirs"}
    renamed |= {"no_checkpoint_resume": "checkpoint_resume"}
    wanted = {renamed.get(name, name) for name in options - {"h", "_h", "help", "dry_run", "output"}}

    assert set() == wanted - {"_h"} - set(inspect.signature(build_run_request).parameters)


@pytest.mark.seed("SD-01")
def test_arguments_are_what_the_command_line_would_say(toys, tmp_path):
    """Dedicated ones lie over execution_params, all over the configuration file."""
    (tmp_path / "c.yaml").write_text(
        "execution: {max_retries: 1, task_concurrency: 2}\nruntime: {cleanup_grace_seconds: 3}"
    )
    prepared = build_run_request(
        **_arguments(
            tmp_path,
            {"a": {}},
            config_path=tmp_path / "c.yaml",
            execution_params={"max_retries": 5, "run_timeout_seconds": 6},
            benchmark_params={"limit": 9},
            harness_params={"isolated": False},
            environment_params={"setup": {"build_timeout_seconds": 4}},
            max_retries=7,
            retry_pattern_list=("x",),
            k=2,
            attempt_strategy="pass",
            keep_environment=True,
            sample_ids=("a",),
            limit=1,
            provider_limits={"toy": 3},
            env_open_qps={"toy": 1.5},
            timeout_seconds=8,
            model="M",
            model_base_url="http://x/v1",
            model_api_protocol=["openai-chat", "auto"],
            model_params={"temperature": 0.5},
        )
    )

    execution, runtime, request = prepared.request.execution, prepared.runtime, prepared.request
    assert (7, 2, 6.0, ("x",), True) == (
        execution.max_retries,
        execution.task_concurrency,
        execution.run_timeout_seconds,
        execution.retry_pattern_list,
        execution.keep_environment,
    )
    assert (2, "pass", ("a",), 1) == (
        execution.attempts.k,
        execution.attempts.strategy,
        request.selection.sample_ids,
        request.selection.limit,
    )
    assert (8.0, 3.0, {"toy": 3}, {"toy": 1.5}, 4.0) == (
        runtime.timeout_seconds,
        runtime.cleanup_grace_seconds,
        runtime.provider_limits,
        runtime.env_open_qps,
        request.sandbox.setup.build_timeout_seconds,
    )
    assert ("M", ("openai-chat",), {"temperature": 0.5}) == (
        request.model.id,
        request.model.api_protocols,
        request.model.params,
    )
    assert {"isolated": False} == request.harness.params
    assert not (tmp_path / "results").exists()


@pytest.mark.seed("SD-01")
def test_a_request_can_be_made_first_and_run_later(toys, tmp_path):
    """Twice, if one likes: each run gets a folder of its own."""
    prepared = build_run_request(**_arguments(tmp_path, {"a": {}}))
    first, second = (asyncio.run(run_request(prepared)) for _ in range(2))

    assert first.paths["run_dir"] != second.paths["run_dir"]
    assert (1.0, 1.0) == (first.score, second.score)


@pytest.mark.seed("SD-01")
def test_it_works_inside_a_running_loop(toys, tmp_path):
    """As in a notebook: the blocking call, and the awaited one."""

    async def notebook():
        blocking = run_evaluation(**_arguments(tmp_path, {"a": {}}))
        awaited = await async_run_evaluation(**_arguments(tmp_path, {"b": {"verdict": False}}))
        return blocking.score, awaited.score

    assert (1.0, 0.0) == asyncio.run(notebook())


@pytest.mark.seed("SD-01", "ER-07")
def test_a_failed_run_is_an_exception_that_knows_where_its_files_are(toys, tmp_path):
    """The message holds the folder, the attributes all paths and the status."""
    with pytest.raises(RunFailedError, match="1 of 2 tasks ended with FATAL issues") as caught:
        run_evaluation(**_arguments(tmp_path, {"a": {"run": "fatal"}, "b": {}}))

    paths = caught.value.paths
    assert ("failed", True) == (caught.value.status, paths["run_dir"] in str(caught.value))
    assert None is json.loads(Path(paths["metrics"]).read_text())["series"][0]["value"]


def test_a_failed_run_inside_a_loop_is_the_same_exception(toys, tmp_path):
    """Through the thread as well."""

    async def notebook():
        run_evaluation(**_arguments(tmp_path, {"a": {"run": "fatal"}}))

    with pytest.raises(RunFailedError):
        asyncio.run(notebook())


@pytest.mark.seed("SD-01")
@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"benchmark": "toi"}, "did you mean 'toy'"),
        ({"max_retries": -1}, "execution.max_retries: -1"),
        ({"execution_params": {"max_retry": 1}}, "execution.max_retry: unknown key"),
        ({"timeout_seconds": float("nan")}, "runtime.timeout_seconds: nan"),
        ({"environment_params": {"broken": "it is broken"}}, "environment toy: it is broken"),
        ({"sample_ids": [1.5]}, "sample_ids"),
        ({"model_api_key": "k"}, "--model-api-key: is given, but no model"),
        ({"harness_params": {"x": 1}}, "harnesses.toy.x: unknown key"),
        ({"config_path": "nowhere.yaml"}, "nowhere.yaml"),
        ({"retry_pattern_list": ["("]}, "execution.retry_pattern_list[0]"),
        ({"progress": "loud"}, "runtime.progress: 'loud'"),
    ],
)
def test_a_wrong_request_creates_nothing(toys, tmp_path, wrong, problem):
    """UsageError names what is wrong in one line."""
    with pytest.raises(UsageError) as caught:
        run_evaluation(**_arguments(tmp_path, {"a": {}}, **wrong))

    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "results").exists()


@pytest.mark.seed("SD-01")
def test_a_function_is_called_with_every_event(toys, tmp_path):
    """Each with the state after it, from the start to the end."""
    seen = []
    tasks = {"a": {}, "b": {}}
    result = run_evaluation(
        **_arguments(tmp_path, tasks), on_progress=lambda event, progress: seen.append((event.event, progress.status))
    )

    lines = Path(result.paths["events"]).read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == [event for event, _ in seen]
    assert (("run_started", "running"), ("run_finished", "completed")) == (seen[0], seen[-1])


@pytest.mark.seed("SD-01")
def test_reporters_take_the_place_of_the_terminals(toys, tmp_path, capsys):
    """They see everything and are closed once; the files are written all the same; the terminal stays silent."""
    reporters = [Collecting(), Collecting()]
    result = run_evaluation(**_arguments(tmp_path, {"a": {}}, progress="plain"), reporters=reporters)

    assert [1, 1] == [reporter.closed for reporter in reporters]
    assert reporters[0].events == reporters[1].events
    assert ("run_finished", 1) == reporters[0].events[-1]
    assert Path(result.paths["events"]).exists()
    assert ("", "") == tuple(capsys.readouterr())


def test_a_reporter_that_fails_costs_nothing(toys, tmp_path):
    """It is warned about, and the others see all."""
    broken, fine = Collecting(broken=True), Collecting()
    result = run_evaluation(**_arguments(tmp_path, {"a": {}}), reporters=[broken, fine])

    assert (1.0, ("run_finished", 1)) == (result.score, fine.events[-1])
    assert "a reporter failed: ValueError: the reporter broke" in Path(result.paths["log"]).read_text()


def test_a_reporter_that_fails_to_close_costs_nothing(toys, tmp_path):
    """The result is there, and the other reporters are closed."""

    class Unclosable(Collecting):
        def close(self):
            raise ValueError("stuck")

    after = Collecting()
    result = run_evaluation(**_arguments(tmp_path, {"a": {}}), reporters=[Unclosable(), after])

    assert (1.0, 1) == (result.score, after.closed)


@pytest.mark.seed("SD-01")
@pytest.mark.parametrize(("mode", "shown"), [("plain", True), ("none", False), ("auto", False)])
def test_progress_has_the_modes_of_the_command_line(toys, tmp_path, capsys, mode, shown):
    """Lines, nothing, or a view on a terminal only; stdout belongs to the caller."""
    run_evaluation(**_arguments(tmp_path, {"a": {}}, progress=mode))

    captured = capsys.readouterr()
    assert ("", shown) == (captured.out, "tasks 1/1" in captured.err)


def _logs(result):
    return Path(result.paths["log"]).read_text()


@pytest.mark.seed("SD-01", "RR-06")
def test_two_runs_at_once_keep_their_logs_apart(toys, tmp_path, capsys):
    """In one loop: each file has its own run's lines, all of them, and the terminal shows each line once."""

    async def both():
        one = async_run_evaluation(
            **_arguments(tmp_path, {"one": {"run": "crowd:2", "close": "raise:of one"}}, log_level="DEBUG")
        )
        two = async_run_evaluation(
            **_arguments(tmp_path, {"two": {"run": "crowd:2", "close": "raise:of two"}}, log_level="WARNING")
        )
        return await asyncio.gather(one, two)

    one, two = asyncio.run(both())
    err = capsys.readouterr().err
    assert 2 == BOARD.peak["run"]
    assert (1, 0) == (_logs(one).count("of one"), _logs(one).count("of two"))
    assert (0, 1) == (_logs(two).count("of one"), _logs(two).count("of two"))
    assert ("completed" in _logs(one), "completed" in _logs(two)) == (True, True)
    assert (1, 0) == (err.count("of one"), err.count("of two"))


@pytest.mark.seed("SD-01", "RR-06", "RR-07")
def test_two_runs_in_two_threads_keep_logs_and_secrets_apart(toys, tmp_path, capsys):
    """Each terminal line and file is redacted with the secrets of its own run, whichever ends first."""
    results, both = {}, threading.Barrier(2)

    def run(name, secret):
        both.wait()
        tasks = {name: {"run": ["fatal", "ok"], "start": "ok", "collect": ["ok", "ok"], "close": f"raise:{secret}"}}
        results[name] = run_evaluation(
            **_arguments(tmp_path, tasks, model="M", model_api_key=secret, log_level="DEBUG", max_retries=1),
            execution_params={"retry_min_delay_seconds": 0.01},
        )

    secrets = {"one": "secret-of-the-first", "two": "secret-of-the-second"}
    threads = [threading.Thread(target=run, args=item) for item in secrets.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    everything = capsys.readouterr().err + "".join(_logs(result) for result in results.values())
    assert {"one", "two"} == set(results)
    assert [] == [secret for secret in secrets.values() if secret in everything]
    assert ("two attempt" in _logs(results["one"]), "one attempt" in _logs(results["two"])) == (False, False)
    assert ("ended: completed" in _logs(results["one"]), "ended: completed" in _logs(results["two"])) == (True, True)


def test_logging_is_as_before_when_the_run_is_over(toys, tmp_path):
    """No handler stays, and no level."""
    root, ours = logging.getLogger(), logging.getLogger("agentcompass")
    before = (list(root.handlers), root.level, ours.level)
    run_evaluation(**_arguments(tmp_path, {"a": {}}, log_level="DEBUG"))

    assert before == (list(root.handlers), root.level, ours.level)


def test_the_callers_own_logging_is_not_taken_into_the_runs_file(toys, tmp_path):
    """What the application says meanwhile, outside the run, is its own business."""
    said = threading.Event()

    def application():
        logging.getLogger("application").warning("about something else")
        said.set()

    def on_progress(event, progress):
        if event.event == "task_started":
            thread = threading.Thread(target=application)
            thread.start()
            thread.join()

    result = run_evaluation(**_arguments(tmp_path, {"a": {}}), on_progress=on_progress)

    assert said.is_set()
    assert "about something else" not in _logs(result)


def test_signals_are_left_to_the_application(toys, tmp_path):
    """The API installs no handlers."""
    import signal

    before = (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
    run_evaluation(**_arguments(tmp_path, {"a": {}}))

    assert before == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))


def test_all_public_names_are_there():
    """Each can be imported from the package, and nothing else is offered."""
    for name in agentcompass.__all__:
        assert getattr(agentcompass, name) is not None
    assert {*agentcompass.__all__, "__version__"} == set(dir(agentcompass))
    with pytest.raises(AttributeError, match="no attribute 'launch_everything'"):
        agentcompass.launch_everything  # noqa: B018
