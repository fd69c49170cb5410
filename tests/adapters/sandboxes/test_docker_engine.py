"""Tests of the Docker sandbox: the contract."""

from __future__ import annotations

import pytest
from contracts.environment import EnvironmentContract
from contracts.environment_commands import CommandContract, KillContract
from support import docker

docker_daemon, slice_image = docker.docker_daemon, docker.slice_image

docker_engine = pytest.importorskip("agentcompass.adapters.sandboxes.docker_engine")


class TestContract(EnvironmentContract):
    """A container on this machine, its processes seen by root."""

    @pytest.fixture
    def provider(self, docker_daemon, slice_image):
        self.daemon = docker_daemon
        return docker_engine.DockerProvider(image=slice_image)

    def leftovers(self, provider):
        return docker.containers(self.daemon)


class TestFromElsewhere(CommandContract, KillContract):
    """A container whose processes this machine does not see, as on an engine elsewhere."""

    @pytest.fixture
    def provider(self, slice_image, monkeypatch):
        monkeypatch.setattr(docker_engine, "is_reachable", lambda name, pid: False)
        return docker_engine.DockerProvider(image=slice_image)
