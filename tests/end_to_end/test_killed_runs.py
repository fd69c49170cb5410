"""A run that is killed leaves its sandbox; it is listed, and the next run or a command removes all of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest
from support.docker import containers, docker_daemon, slice_image
from support.harbor_tasks import write_task

from agentcompass.adapters.cli.main import main

__all__ = ["docker_daemon", "slice_image"]

PATIENCE = 60.0


@pytest.fixture(autouse=True)
def _temporary(tmp_path, monkeypatch):
    """Have local sandboxes made where the test can see them."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture(params=["docker", "bubblewrap"])
def killed(request, tmp_path, slice_image):
    """The provider whose sandbox a killed run has left, with a process that goes on in it."""
    mark = f"sleep 4{os.getpid()}"  # a process that no one else has
    write_task(tmp_path / "tasks" / "slow", {"solution/solve.sh": f"#!/bin/bash\n{mark}\n"})
    words = [sys.executable, "-m", "agentcompass", "run", "harbor", "oracle", "--env", request.param]
    words += ["--benchmark-params", json.dumps({"tasks_dir": str(tmp_path / "tasks")}), "--progress", "none"]
    run = subprocess.Popen([*words, "--results-dir", str(tmp_path / "results")], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE
    while not _running(mark):
        assert time.monotonic() < deadline
        assert run.poll() is None
        time.sleep(0.05)
    run.send_signal(signal.SIGKILL)
    run.wait()
    return request.param, mark


def _running(mark):
    shown = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return mark in shown.splitlines()


def _env(capsys, tmp_path, *words):
    capsys.readouterr()
    status = main(["env", *words, "--results-dir", str(tmp_path / "results")])
    return status, capsys.readouterr().out


def _gone(mark):
    deadline = time.monotonic() + PATIENCE
    while _running(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not _running(mark)


@pytest.mark.seed("RE-10")
def test_it_is_listed_and_closed(killed, tmp_path, capsys):
    """By id, with its run; afterwards neither a process, a folder, a container nor a record is there."""
    provider, mark = killed
    found = [entry for entry in json.loads(_env(capsys, tmp_path, "list", "--json")[1]) if entry["task"] == "slow"]
    (left,) = [entry for entry in found if entry["records"] and str(tmp_path) in entry["records"][0]]

    assert (provider, "abandoned") == (left["provider"], left["state"])
    assert (0, f"closed {left['id']}\n") == _env(capsys, tmp_path, "close", left["id"])
    assert _gone(mark)
    assert left["id"] not in _env(capsys, tmp_path, "list", "--json")[1]
    assert [] == list(tmp_path.glob("results/*/*/resources/*"))
    assert [] == list(tmp_path.glob("agentcompass-*"))


def test_the_next_run_removes_it(killed, tmp_path, command):
    """Before its own work begins."""
    provider, mark = killed
    write_task(tmp_path / "other" / "quick")
    params = json.dumps({"tasks_dir": str(tmp_path / "other")})
    ran = command("harbor", "nop", "--env", provider, "--benchmark-params", params)

    assert 0 == ran.status
    assert _gone(mark)
    assert [] == list(tmp_path.glob("agentcompass-*"))


@pytest.mark.seed("RE-10")
@pytest.mark.parametrize("provider", ["docker", "bubblewrap"])
def test_what_is_to_be_kept_stays_until_it_is_closed(provider, tmp_path, command, capsys, docker_daemon, slice_image):
    """The harness's session is closed, the sandbox is not, and no later run takes it away."""
    write_task(tmp_path / "tasks" / "kept")
    words = [
        "harbor",
        "nop",
        "--env",
        provider,
        "--benchmark-params",
        json.dumps({"tasks_dir": str(tmp_path / "tasks")}),
    ]
    ran = command(*words, "--keep-environment")
    command(*words)
    found = json.loads(_env(capsys, tmp_path, "list", "--json")[1])
    (left,) = [entry for entry in found if any(str(ran.run_dir) in path for path in entry["records"])]

    assert left["state"] == "kept"
    assert 0 == _env(capsys, tmp_path, "close", left["id"])[0]
    assert [] == list(ran.run_dir.glob("resources/*"))
    assert [] == containers(docker_daemon)
