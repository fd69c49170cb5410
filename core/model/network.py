"""Which network a sandbox may reach."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class NetworkMode(StrEnum):
    """How much of the network is open."""

    PUBLIC = "public"
    NO_NETWORK = "no-network"
    ALLOWLIST = "allowlist"
    DENYLIST = "denylist"


@dataclass(frozen=True, slots=True)
class NetworkPolicy:
    """A mode, with the hosts that it lets through or refuses."""

    network_mode: NetworkMode = NetworkMode.PUBLIC
    allowed_hosts: tuple[str, ...] = ()
    denied_hosts: tuple[str, ...] = ()
