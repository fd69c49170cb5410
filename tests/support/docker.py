"""A pytest plugin with the Docker engine and an image for tests; without an engine they skip, but on CI they fail."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from agentcompass.adapters.sandboxes.owners import owner


@pytest.fixture(scope="session")
def docker_daemon() -> Iterator[object]:
    """The client of an engine; at the end of all tests it must have nothing left that they made."""
    try:
        import docker

        api = docker.DockerClient.from_env(timeout=120).api
    except Exception as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no Docker engine: {error}")
    yield api
    left = containers(api)
    api.close()
    assert [] == left


@pytest.fixture(scope="session")
def slice_image(docker_daemon: object) -> str:
    """The tag of an image with a shell, the usual tools, git and Python, and an empty /work to work in."""
    from images.host_slice import ensure_image

    return ensure_image()


def containers(api: object) -> list[str]:
    """Name the containers, networks and volumes that this process has made and not removed."""
    mine = {"label": f"agentcompass.owner={owner()}"}
    found = [name for entry in api.containers(all=True, filters=mine) for name in entry["Names"]]
    found += [entry["Name"] for entry in api.networks(filters=mine)]
    return found + [entry["Name"] for entry in api.volumes(filters=mine)["Volumes"] or ()]
