"""What the agent is told of its network: a paragraph after the prompt, where not everything is open."""

from __future__ import annotations

from .model.network import NetworkMode, NetworkPolicy
from .model.task import Message

_MARK = "Network access in this environment:"


def network_notice(policy: NetworkPolicy) -> str | None:
    """Return the paragraph for *policy*; None where everything is open."""
    if policy.network_mode is NetworkMode.NO_NETWORK:
        return f"{_MARK} none. Nothing outside can be reached, so do not try to download or install anything from it."
    if policy.network_mode is NetworkMode.ALLOWLIST:
        return f"{_MARK} only these can be reached, through the configured proxy: {', '.join(policy.allowed_hosts)}."
    if policy.network_mode is NetworkMode.DENYLIST:
        return f"{_MARK} these cannot be reached: {', '.join(policy.denied_hosts)}."
    return None


def with_notice(prompt: str | tuple[Message, ...], policy: NetworkPolicy) -> str | tuple[Message, ...]:
    """Return *prompt* with the notice at its end (of the last message of the user), once."""
    notice = network_notice(policy)
    if notice is None:
        return prompt
    if isinstance(prompt, str):
        return prompt if _MARK in prompt else f"{prompt.rstrip()}\n\n{notice}\n"
    for index in range(len(prompt) - 1, -1, -1):
        if prompt[index].role == "user":
            said = prompt[index].content
            told = said if _MARK in said else f"{said.rstrip()}\n\n{notice}"
            return (*prompt[:index], Message("user", told), *prompt[index + 1 :])
    return (*prompt, Message("user", notice))
