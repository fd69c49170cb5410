"""Sandboxes of several containers: a compose file whose service ``main`` is the sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from docker.errors import APIError  # type: ignore[import-untyped]

from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.network import NetworkMode

from .docker_client import engine_errors
from .docker_reach import KEEPER
from .docker_spec import KEEP_ALIVE, Options, labels
from .process_table import marker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agentcompass.core.model.environment import EnvironmentSpec

FILES = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")
MAIN = "main"
PROJECT = "com.docker.compose.project"
_SERVICE = "com.docker.compose.service"
_LAST_LINES = 15
_PROBE_SECONDS = 30


def compose_file(folder: str | None) -> str | None:
    """Return the compose file in *folder*, if there is one."""
    if folder is None:
        return None
    return next((path for name in FILES if os.path.isfile(path := os.path.join(folder, name))), None)


def compose_command(file: str) -> Sequence[str]:
    """Return the words with which compose starts here; blocks.

    Raises:
        UsageError: it is not installed.
    """
    for words in (("docker", "compose"), ("docker-compose",)):
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                [*words, "version"],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_PROBE_SECONDS,
            )
            return words
    raise UsageError("build", f"{file} needs compose, which is not installed", "install Docker's compose plugin")


class Project:
    """The containers, networks and volumes of one compose file, under the name of its sandbox; methods block."""

    def __init__(self, api: Any, name: str, file: str, command: Sequence[str]) -> None:
        self._api = api
        self._name = name
        self._file = file
        self._words = [*command, "--project-name", name, "-f", file]
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def stop(self) -> None:
        """End compose, where it is: whatever it has made so far is there to be removed."""
        self._stopped = True
        if self._process is not None:
            self._process.kill()

    def up(self, main: Mapping[str, Any], labels: Mapping[str, str], environment: Mapping[str, str]) -> str:
        """Build and start everything, wait until it is healthy, and return the id of the main container.

        *main* is laid over the main service, *labels* over all, *environment* is for compose itself.
        """
        services = self._compose([], ["config", "--services"], environment).split()
        if MAIN not in services:
            raise UsageError("build", f"{self._file} has no service {MAIN!r}", "call the sandbox's service so")
        laid: dict[str, Any] = {name: {"labels": dict(labels)} for name in services}
        laid[MAIN] |= main
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump({"services": laid, "networks": {"default": {"labels": dict(labels)}}}, file)  # JSON is YAML
            file.flush()
            self._compose(["-f", file.name], ["up", "--detach", "--build", "--wait"], environment)
        with engine_errors(f"find the containers of {self._file}"):
            for container in self._containers():
                if container["Labels"].get(_SERVICE) == MAIN:
                    return str(container["Id"])
        raise SandboxError(f"compose has started {self._file} without a container for {MAIN!r}")

    def _compose(self, more: Sequence[str], action: Sequence[str], environment: Mapping[str, str]) -> str:
        if self._stopped:
            raise SandboxError("compose was stopped")
        with subprocess.Popen(
            [*self._words, *more, *action],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=os.path.dirname(self._file),
            env={**os.environ, **environment},
        ) as self._process:
            out, err = self._process.communicate()
        if self._process.returncode:
            lines = err.decode(errors="replace").strip().splitlines()[-_LAST_LINES:]
            raise SandboxError(f"compose cannot {action[0]} {self._file}; its last lines:\n" + "\n".join(lines))
        return out.decode(errors="replace")

    def _containers(self) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = self._api.containers(
            all=True, filters={"label": f"{PROJECT}={self._name}"}
        )
        return found


def remove_project(api: Any, name: str) -> None:
    """Remove what compose has made under *name*, which takes no compose; blocks."""
    mine = {"label": f"{PROJECT}={name}"}
    with engine_errors(f"remove the project {name}"):
        for container in api.containers(all=True, filters=mine):
            with _unless_gone():
                api.remove_container(container["Id"], v=True, force=True)
        for network in api.networks(filters=mine):
            with _unless_gone():
                api.remove_network(network["Id"])
        for volume in api.volumes(filters=mine).get("Volumes") or ():
            with _unless_gone():
                api.remove_volume(volume["Name"], force=True)


@contextmanager
def _unless_gone() -> Iterator[None]:
    try:
        yield
    except APIError as error:
        if error.status_code != 404:
            raise


def overlay(
    name: str, spec: EnvironmentSpec, options: Options
) -> tuple[dict[str, Any], Mapping[str, str], Mapping[str, str]]:
    """Return what to lay over the main service of sandbox *name*, the labels of all, and the variables for compose.

    Raises:
        UsageError: something is asked for that a compose file decides itself.
    """
    if spec.network.network_mode is not NetworkMode.PUBLIC:
        mode = spec.network.network_mode.value
        raise UsageError("network_mode", f"several containers cannot have {mode!r}", "use 'public', or one container")
    if options.networks:
        raise UsageError("networks", "several containers have those of their compose file", "leave it out")
    limits = spec.resources
    wanted = {
        "image": spec.image,
        "working_dir": spec.workdir,
        "user": options.user,
        "platform": options.platform,
        "volumes": list(options.mounts),
        "ports": list(options.ports),
        "devices": list(options.devices),
        "cap_add": list(options.cap_add),
        "cpus": limits.cpu,
        "mem_limit": limits.memory_mb and f"{limits.memory_mb}m",
        "memswap_limit": limits.memory_mb and f"{limits.memory_mb}m",
        "pids_limit": limits.pids,
    }
    environment = dict(spec.env)
    inside = {**environment, **marker(name, KEEPER)}
    main = {
        "entrypoint": ["/bin/sh", "-c", KEEP_ALIVE.replace("$", "$$")],  # compose fills in what follows a dollar sign
        "command": [],
        "stop_signal": "SIGKILL",
        "environment": {key: value.replace("$", "$$") for key, value in inside.items()},
        **{key: value for key, value in wanted.items() if value},
    }
    return main, labels(spec), environment
