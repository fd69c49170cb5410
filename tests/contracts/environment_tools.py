"""What the contract of sandboxes is written with: a loop per test, and processes that are seen to live."""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from agentcompass.core.model.environment import EnvironmentSpec
from agentcompass.ports.environment import Environment, EnvironmentProvider

LIMIT = 0.25  #: seconds of the time-outs that are meant to fire


def beat(path: str) -> str:
    """Return a script that never ends, and is seen to live by the growth of *path*."""
    return f"while :; do echo >>{path}; sleep 0.02; done"


@asynccontextmanager
async def opened(provider: EnvironmentProvider, **spec: Any) -> AsyncIterator[Environment]:
    """Open a sandbox and close it at the end."""
    env = await provider.open(EnvironmentSpec(**spec))
    try:
        yield env
    finally:
        await env.close()


def run(main: Awaitable[Any], within: float = 30.0) -> Any:
    """Run *main* on a loop of its own; a test fails that hangs, or leaves an error for the loop to report."""
    reported: list[dict[str, Any]] = []

    async def bounded() -> Any:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        async with asyncio.timeout(within):
            return await main

    result = asyncio.run(bounded())
    assert [] == reported
    return result


def in_sandbox(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Turn an async test that takes `env` into one that takes `provider`, opens a sandbox and closes it."""

    @functools.wraps(test)
    def wrapper(self: Any, provider: EnvironmentProvider, **fixtures: Any) -> None:
        async def main() -> None:
            async with opened(provider) as env:
                await test(self, env=env, **fixtures)

        run(main())

    signature = inspect.signature(test)
    renamed = [p.replace(name="provider") if p.name == "env" else p for p in signature.parameters.values()]
    wrapper.__signature__ = signature.replace(parameters=renamed)  # type: ignore[attr-defined]
    return wrapper


async def until(condition: Callable[[], Awaitable[bool]], within: float = 5.0) -> None:
    """Poll *condition* until it holds."""
    deadline = time.monotonic() + within
    while not await condition():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.01)


async def beats(env: Environment, path: str) -> int:
    """Return how often the heart at *path* has beaten."""
    return len(await env.read_file(path) or b"")


async def alive(env: Environment, path: str) -> bool:
    """Tell whether the heart at *path* beats."""
    before = await beats(env, path)
    for _ in range(10):
        await asyncio.sleep(0.01)
        if await beats(env, path) > before:
            return True
    return False
