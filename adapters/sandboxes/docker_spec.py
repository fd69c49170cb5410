"""What a sandbox is asked to be, as the options with which the engine makes its container."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from docker.types import DeviceRequest, HostConfig  # type: ignore[import-untyped]

from agentcompass.core.errors import UsageError
from agentcompass.core.model.network import NetworkMode

from .docker_reach import KEEPER
from .owners import owner
from .process_table import marker
from .refusals import require_names

if TYPE_CHECKING:
    from agentcompass.core.model.environment import EnvironmentSpec, Resources

LABEL = "agentcompass"  #: on everything that we make
OWNER, KEPT, OURS = f"{LABEL}.owner", f"{LABEL}.kept", f"{LABEL}.label."
_MIB = 1024 * 1024
#: The first process waits for nothing and reaps what others leave. From inside it cannot be killed, and if the child
#: by which it waits is, it makes another; without `sleep` it could only spin, so it ends.
KEEP_ALIVE = 'trap : TERM INT HUP; while :; do sleep 2147483 & wait "$!"; [ "$?" != 127 ] || exit 127; done'


@dataclass(frozen=True)
class Options:
    """What a user gave to the provider for all of its sandboxes."""

    platform: str | None = None
    mounts: Sequence[str] = ()
    ports: Sequence[str] = ()
    devices: Sequence[str] = ()
    cap_add: Sequence[str] = ()
    networks: Sequence[str] = ()
    user: str | None = None


def labels(spec: EnvironmentSpec) -> dict[str, str]:
    """Return the labels of a sandbox: whose it is, and what its spec says."""
    found = {LABEL: "1", OWNER: owner(), **{f"{OURS}{name}": value for name, value in spec.labels.items()}}
    return found | ({KEPT: "1"} if "kept" in spec.labels else {})


def workdir(spec: EnvironmentSpec, config: Mapping[str, Any]) -> str:
    """Return the working folder: the spec's, else the image's."""
    own = config.get("WorkingDir") or "/"
    return posixpath.normpath(posixpath.join(own, spec.workdir or ""))


def creation(
    api: Any, name: str, image: str, spec: EnvironmentSpec, options: Options, config: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments with which the client makes the container *name*."""
    require_names(spec.env)
    ports = [_port(text) for text in options.ports]
    return {
        "image": image,
        "name": name,
        "entrypoint": ["/bin/sh", "-c", KEEP_ALIVE],
        "command": [],
        "environment": {**spec.env, **marker(name, KEEPER)},
        "labels": labels(spec),
        "working_dir": workdir(spec, config),
        "user": options.user,
        "platform": options.platform,
        "stop_signal": "SIGKILL",
        "healthcheck": {"test": ["NONE"]},
        "ports": [container for container, _ in ports],
        "host_config": _host_config(api, spec, options, dict(ports)),
    }


def _host_config(api: Any, spec: EnvironmentSpec, options: Options, ports: Mapping[str, Any]) -> HostConfig:
    is_public = spec.network.network_mode is NetworkMode.PUBLIC
    return api.create_host_config(
        network_mode="bridge" if is_public else "none",
        binds=list(options.mounts) or None,
        port_bindings=dict(ports) or None,
        devices=list(options.devices) or None,
        cap_add=list(options.cap_add) or None,
        **_limits(spec.resources),
    )


def _limits(resources: Resources) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if resources.cpu is not None:
        found["nano_cpus"] = int(resources.cpu * 1e9)
    if resources.memory_mb is not None:
        found["mem_limit"] = found["memswap_limit"] = resources.memory_mb * _MIB
    if resources.pids is not None:
        found["pids_limit"] = resources.pids
    if resources.storage_mb is not None:
        found["storage_opt"] = {"size": f"{resources.storage_mb}m"}
    if resources.gpus:
        found["device_requests"] = [DeviceRequest(count=resources.gpus, capabilities=[["gpu"]])]
    return found


def _port(text: str) -> tuple[str, Any]:
    """Read a port as the docker command does: ``[[address:]host:]container[/protocol]``."""
    *outer, container = text.split(":")
    if not container.partition("/")[0].isdecimal() or len(outer) > 2:
        raise UsageError("ports", f"{text!r} is no port", "write CONTAINER, HOST:CONTAINER or ADDRESS:HOST:CONTAINER")
    if len(outer) == 2:
        return container, (outer[0], int(outer[1])) if outer[1] else (outer[0],)
    return container, int(outer[0]) if outer and outer[0] else None
