"""The network of one container: on the engine's networks, on none, or behind a proxy that keeps to a list."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from docker.errors import APIError  # type: ignore[import-untyped]

from agentcompass.core.errors import UsageError
from agentcompass.core.model.network import NetworkMode, NetworkPolicy

from .docker_client import engine_errors, host
from .egress import EgressProxy, proxy_variables
from .netns import can_listen_in, listen_in
from .waiting import in_own_thread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .docker_reach import Reach

LISTS = frozenset({NetworkMode.ALLOWLIST, NetworkMode.DENYLIST})
_DEFAULT = "bridge"
_NONE = "none"


def possible_modes() -> frozenset[NetworkMode]:
    """Return the modes that can be had: lists take a privileged process on the engine's own machine."""
    modes = {NetworkMode.PUBLIC, NetworkMode.NO_NETWORK}
    if sys.platform == "linux" and host().startswith(("unix:", "http+unix:", "/")) and can_listen_in():
        modes |= LISTS
    return frozenset(modes)


def require_mode(policy: NetworkPolicy, modes: frozenset[NetworkMode]) -> None:
    """Refuse a mode that is not one of *modes*."""
    if policy.network_mode not in modes:
        raise UsageError(
            "network_mode",
            f"docker cannot offer {policy.network_mode.value!r} here: it takes root on the engine's own machine",
            f"use {' or '.join(repr(mode.value) for mode in sorted(modes))}",
        )


class Network:
    """Switches one container between networks.

    With a list it has no network but its own loopback, at which a proxy of this process listens; `variables` leads
    the commands there.
    """

    def __init__(self, api: Any, container: str, reach: Reach, extra: Sequence[str]) -> None:
        self._api = api
        self._container = container
        self._reach = reach
        self._names = (_DEFAULT, *extra)
        self._proxy: EgressProxy | None = None
        self._variables: Mapping[str, str] = {}

    @property
    def variables(self) -> Mapping[str, str]:
        """What a command must have in its environment to use the network."""
        return self._variables

    async def switch(self, policy: NetworkPolicy) -> None:
        """Make *policy* hold, for what runs already as well.

        Raises:
            UsageError: the engine is not on this machine, so that a list cannot be kept.
        """
        if policy.network_mode is not NetworkMode.PUBLIC:
            await in_own_thread(self._leave)
        if policy.network_mode not in LISTS:
            await self.close()
        elif self._proxy is None:
            await self._serve(policy)
        else:
            self._proxy.set_policy(policy)
        if policy.network_mode is NetworkMode.PUBLIC:
            await in_own_thread(self._join)

    async def close(self) -> None:
        """End the proxy, if there is one."""
        proxy, self._proxy, self._variables = self._proxy, None, {}
        if proxy is not None:
            await proxy.close()

    async def _serve(self, policy: NetworkPolicy) -> None:
        pid = self._reach.host_pid()
        if pid is None:
            require_mode(policy, frozenset({NetworkMode.PUBLIC, NetworkMode.NO_NETWORK}))
            return
        listening = await in_own_thread(partial(listen_in, pid))
        port = listening.getsockname()[1]
        proxy = EgressProxy(policy)
        try:
            await proxy.start(listening)
        except BaseException:
            listening.close()
            raise
        self._proxy, self._variables = proxy, proxy_variables(port)

    def _attached(self) -> set[str]:
        return set(self._api.inspect_container(self._container)["NetworkSettings"]["Networks"])

    def _leave(self) -> None:
        with engine_errors("take a container off its networks"):
            for name in self._attached() - {_NONE}:
                self._api.disconnect_container_from_network(self._container, name, force=True)

    def _join(self) -> None:
        with engine_errors("put a container on its networks"):
            there = self._attached()
            if _NONE in there:  # it can be on no other then
                self._api.disconnect_container_from_network(self._container, _NONE)
            for name in self._names:
                if name not in there:
                    try:
                        self._api.connect_container_to_network(self._container, name)
                    except APIError as error:
                        if error.status_code == 404:
                            raise UsageError(
                                "networks", f"the engine has no network {name!r}", "create it, or correct its name"
                            ) from error
                        raise
