"""Limits of a whole sandbox through cgroups, of either version, as far as this machine lets us set them."""

from __future__ import annotations

import os
import shlex
import sys
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from agentcompass.core.errors import SandboxError

from .cgroup_tree import own_cgroup

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentcompass.core.model.environment import Resources

_CONTROLLERS = {"cpu": "cpu", "memory_mb": "memory", "pids": "pids"}
_PERIOD = 100_000  # microseconds, over which the share of processors is counted
_MIB = 1024 * 1024
_REMOVE_WITHIN = 1.0  # seconds: a cgroup is busy for a moment after its last process has died


@cache
def limitable() -> frozenset[str]:
    """Return the names of the limits that hold here."""
    return frozenset(name for name, controller in _CONTROLLERS.items() if controller in _parents())


class CgroupLimits:
    """The cgroups that hold one sandbox to its *resources*; made by `make`, entered through `prelude`."""

    def __init__(self, sandbox: str, resources: Resources) -> None:
        self._folders: dict[str, str] = {}  # of each limit
        self._settings: dict[str, dict[str, str]] = {}
        for name in sorted(limitable() & set(resources.given)):
            parent, version = _parents()[_CONTROLLERS[name]]
            self._folders[name] = f"{parent}/agentcompass-{sandbox}"
            self._settings[name] = _settings(name, getattr(resources, name), version)

    @property
    def prelude(self) -> str:
        """The shell text by which a command enters; one of version 2 is entered with the tree of processes."""
        v1 = {folder for name, folder in self._folders.items() if _parents()[_CONTROLLERS[name]][1] == 1}
        return "; ".join(f"echo 0 >{shlex.quote(f'{folder}/cgroup.procs')} || exit 126" for folder in sorted(v1)) or ":"

    def make(self) -> None:
        """Make the cgroups and set the limits.

        Raises:
            SandboxError: that is refused.
        """
        for name, folder in self._folders.items():
            try:
                os.makedirs(folder, exist_ok=True)
                for file, value in self._settings[name].items():
                    if not file.startswith("?"):
                        _write(f"{folder}/{file}", value)
                    elif os.path.exists(f"{folder}/{file[1:]}"):  # without swap accounting there is none
                        _write(f"{folder}/{file[1:]}", value)
            except OSError as error:
                raise SandboxError(f"cannot limit {name}: {error}") from error

    def remove(self) -> None:
        """Remove the cgroups, of which all processes are dead."""
        deadline = time.monotonic() + _REMOVE_WITHIN
        for folder in set(self._folders.values()):
            while os.path.isdir(folder):
                with suppress(OSError):
                    os.rmdir(folder)
                    break
                if time.monotonic() > deadline:
                    raise SandboxError(f"the cgroup {folder} cannot be removed")
                time.sleep(0.01)


def _settings(name: str, value: float, version: int) -> dict[str, str]:
    """Return the files and what is written to them, in order; a question mark: only if the file is there."""
    if name == "pids":
        return {"pids.max": str(int(value))}
    if name == "memory_mb":
        size = str(int(value) * _MIB)
        if version == 1:
            return {"memory.limit_in_bytes": size, "?memory.memsw.limit_in_bytes": size}
        return {"memory.max": size, "?memory.swap.max": "0"}
    quota = max(int(value * _PERIOD), 1000)
    if version == 1:
        return {"cpu.cfs_period_us": str(_PERIOD), "cpu.cfs_quota_us": str(quota)}
    return {"cpu.max": f"{quota} {_PERIOD}"}


@cache
def _parents() -> Mapping[str, tuple[str, int]]:
    """Return, of each controller that we can use, the folder in which cgroups can be made, and its version."""
    if sys.platform != "linux":
        return {}
    found = {controller: (folder, 1) for controller, folder in _version_1()}
    own = own_cgroup()
    if own is not None:
        with suppress(OSError):
            for controller in _text(f"{own}/cgroup.subtree_control").split():
                found[controller] = (own, 2)
    return found


def _version_1() -> Iterator[tuple[str, str]]:
    try:
        memberships = [line.split(":", 2) for line in _text("/proc/self/cgroup").splitlines()]
        mounts = [line.split() for line in _text("/proc/self/mounts").splitlines()]
    except OSError:
        return
    for fields in mounts:
        if fields[2] != "cgroup":
            continue
        for _, controllers, path in memberships:
            for controller in controllers.split(","):
                folder = fields[1] + path.rstrip("/")
                if controller in fields[3].split(",") and os.access(folder, os.W_OK):
                    yield controller, folder


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
