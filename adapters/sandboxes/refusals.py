"""What `host_process` is asked for and cannot give, refused with the words that a user needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentcompass.core.errors import UsageError
from agentcompass.core.model.environment import VARIABLE_NAME
from agentcompass.core.model.network import NetworkMode, NetworkPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentcompass.core.model.environment import EnvironmentSpec


def require_public(policy: NetworkPolicy) -> None:
    """Refuse any network but the public one."""
    if policy.network_mode is not NetworkMode.PUBLIC:
        raise UsageError(
            "network_mode",
            f"host_process cannot offer {policy.network_mode.value!r}: its processes have this machine's network",
            f"use {NetworkMode.PUBLIC.value!r}, or another sandbox",
        )


def require_possible(spec: EnvironmentSpec) -> None:
    """Refuse what no local process can have."""
    require_public(spec.network)
    require_names(spec.env)
    if spec.image is not None:
        raise UsageError("image", f"host_process has no images, such as {spec.image!r}", "use a container sandbox")


def require_own_user(user: str | None) -> None:
    """Refuse to run a command as somebody else."""
    if user is not None:
        raise UsageError("user", f"host_process cannot run a command as {user!r}", "leave it out")


def require_names(variables: Mapping[str, str]) -> None:
    """Refuse names that a shell drops without a word (every command starts in one)."""
    for name in variables:
        if not VARIABLE_NAME.fullmatch(name):
            raise UsageError("env", f"{name!r} is no name of a variable", "use letters, digits and underscores")
