"""A sandbox as one phase sees it: the user's variables of that phase are set for each of its commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agentcompass.core.model.environment import ExecResult
from agentcompass.ports.environment import Environment


class ScopedEnvironment:
    """The open sandbox *inner*, whose commands get *variables* too; what a command itself asks for is beneath them.

    Commands that name no user run as *user*.
    """

    def __init__(self, inner: Environment, variables: Mapping[str, str], user: str | None) -> None:
        self._inner, self._variables, self._user = inner, variables, user

    def __getattr__(self, name: str) -> Any:
        """Leave everything but commands to the sandbox."""
        return getattr(self._inner, name)

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        **options: Any,
    ) -> ExecResult:
        """Run *command* as the sandbox does, with the variables of this phase."""
        env = {**(env or {}), **self._variables}
        return await self._inner.exec(command, env=env, user=user or self._user, **options)


def scoped(environment: Environment, variables: Mapping[str, str], user: str | None = None) -> Environment:
    """Return *environment* with *variables* for its commands, and *user* for those that name none."""
    if not variables and user is None:
        return environment
    return cast(Environment, ScopedEnvironment(environment, variables, user))
