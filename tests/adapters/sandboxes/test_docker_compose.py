"""Tests of sandboxes of several containers: with a stand-in for compose, since test machines have none."""

from __future__ import annotations

import json
import os

import pytest
from contracts.environment_tools import opened, run
from support import docker

from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.environment import EnvironmentSpec, Resources
from agentcompass.core.model.network import NetworkMode, NetworkPolicy

docker_daemon, slice_image = docker.docker_daemon, docker.slice_image
docker_engine = pytest.importorskip("agentcompass.adapters.sandboxes.docker_engine")
docker_compose = pytest.importorskip("agentcompass.adapters.sandboxes.docker_compose")

#: Does as compose does, for two services and with the real engine; what it was asked is written down.
STAND_IN = """#!{python}
import json, os, sys
import docker
words = sys.argv[1:]
with open({log!r}, "a") as log:
    files = [words[i + 1] for i, word in enumerate(words) if word == "-f"]
    overlay = json.load(open(files[1])) if len(files) > 1 else None
    log.write(json.dumps([words, os.getcwd(), overlay]) + "\\n")
if "config" in words:
    print("main\\nside")
elif "up" in words:
    api = docker.DockerClient.from_env().api
    name = words[words.index("--project-name") + 1]
    project = {{"com.docker.compose.project": name}}
    network = f"{{name}}_default"
    api.create_network(network, labels=overlay["networks"]["default"]["labels"] | project)
    api.create_volume(f"{{name}}_data", labels=project)
    for service, facts in overlay["services"].items():
        made = api.create_container(
            {image!r},
            name=f"{{name}}-{{service}}-1",
            entrypoint=[word.replace("$$", "$") for word in facts.get("entrypoint", ["sleep", "600"])],
            environment=facts.get("environment"),
            labels=facts["labels"] | project | {{"com.docker.compose.service": service}},
            host_config=api.create_host_config(network_mode=network),
            networking_config=api.create_networking_config(
                {{network: api.create_endpoint_config(aliases=[service])}}
            ),
        )
        api.start(made["Id"])
    if os.path.exists("fail"):
        sys.exit("side is not healthy")
"""


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "task"
    path.mkdir()
    (path / "docker-compose.yaml").write_text("services: {main: {}, side: {}}\n")
    return path


@pytest.fixture
def compose(tmp_path, slice_image, monkeypatch):
    """A command docker-compose; the result reads what it was asked."""
    import sys

    log, script = tmp_path / "asked", tmp_path / "bin" / "docker-compose"
    script.parent.mkdir()
    script.write_text(STAND_IN.format(python=sys.executable, log=str(log), image=slice_image))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "bin" / "docker").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / "docker").chmod(0o755)
    return lambda: [json.loads(line) for line in log.read_text().splitlines()]


def test_missing_compose_is_refused(folder, docker_daemon, monkeypatch) -> None:
    """Without compose a line names the file and what to install; nothing is recorded."""
    recorded = []
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(UsageError, match="build: .*docker-compose.yaml needs compose.*install"):
        run(docker_engine.DockerProvider().open(EnvironmentSpec(build=str(folder)), recorded.append))
    assert [] == recorded


def test_project_is_one_sandbox(folder, compose, docker_daemon) -> None:
    """The main service is the sandbox, the others are its neighbours, and everything goes with it."""
    provider = docker_engine.DockerProvider(mounts=["/tmp:/there:ro"])

    async def main() -> None:
        spec = {
            "labels": {"run": "r1"},
            "resources": Resources(memory_mb=256, cpu=1.5),
            "env": {"SPEC": "1", "OWN": "a$b"},
        }
        async with opened(provider, build=str(folder), **spec) as env:
            assert b"here\n" == (await env.exec("echo here")).stdout
            assert b"side" in (await env.exec("getent hosts side")).stdout
            await env.exec("sleep 60 &")
            assert 1 == await env.kill_all()
            (mine,) = [entry for entry in await provider.leftovers() if entry.labels.get("run") == "r1"]
            assert env._name == mine.id
            with pytest.raises(UsageError, match="no-network"):
                await env.set_network(NetworkPolicy(NetworkMode.NO_NETWORK))
        assert [] == [entry for entry in await provider.leftovers() if entry.labels.get("run") == "r1"]

    run(main())
    assert [] == docker.containers(docker_daemon)
    (_, (words, cwd, nothing), (up, _, overlay)) = compose()
    assert (str(folder), None) == (cwd, nothing)
    assert ["config", "--services"] == words[-2:]
    assert ["up", "--detach", "--build", "--wait"] == up[-4:]
    assert str(folder / "docker-compose.yaml") == up[up.index("-f") + 1]
    service = overlay["services"]["main"]
    assert ("256m", "256m", 1.5) == (service["mem_limit"], service["memswap_limit"], service["cpus"])
    assert ["/tmp:/there:ro"] == service["volumes"]
    assert ("a$$b", "1") == (service["environment"]["OWN"], service["environment"]["SPEC"])
    assert "r1" == overlay["services"]["side"]["labels"]["agentcompass.label.run"]


def test_project_that_fails_leaves_nothing(folder, compose, docker_daemon) -> None:
    """When compose gives up, its last lines are told and what it had made is removed."""
    (folder / "fail").write_text("")
    recorded = []
    with pytest.raises(SandboxError, match="compose cannot up .*\nside is not healthy"):
        run(docker_engine.DockerProvider().open(EnvironmentSpec(build=str(folder)), recorded.append))
    project = {"label": f"com.docker.compose.project={recorded[0]['id']}"}
    assert [] == docker_daemon.containers(all=True, filters=project)
    assert [] == docker_daemon.networks(filters=project)
    assert not docker_daemon.volumes(filters=project)["Volumes"]


def test_what_compose_decides_is_refused(folder, docker_daemon) -> None:
    """Networks are those of the file, and a closed one cannot be had."""
    closed = NetworkPolicy(NetworkMode.NO_NETWORK)
    with pytest.raises(UsageError, match="no-network"):
        run(docker_engine.DockerProvider().open(EnvironmentSpec(build=str(folder), network=closed)))
    with pytest.raises(UsageError, match="networks"):
        run(docker_engine.DockerProvider(networks=["n"]).open(EnvironmentSpec(build=str(folder))))
