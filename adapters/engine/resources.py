"""Keeps track of the sandboxes of a run on disk: each is recorded before it exists, and struck off when it is gone."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from agentcompass.core.errors import StorageError
from agentcompass.core.model.environment import Leftover
from agentcompass.ports.environment import Environment, EnvironmentProvider
from agentcompass.ports.store import RunStore

log = logging.getLogger("agentcompass.resources")
_HEAD = {"schema_version": "agentcompass.resource.v1"}


class Resources:
    """The open sandboxes of one run on one provider."""

    def __init__(self, provider_id: str, provider: EnvironmentProvider, store: RunStore) -> None:
        self._id, self._provider, self._store = provider_id, provider, store
        self._records: dict[int, list[str]] = {}

    async def open(self, spec: Any, about: Mapping[str, Any]) -> Environment:
        """Open a sandbox; what it makes is recorded first, with *about*."""
        names: list[str] = []

        def record(facts: Mapping[str, str]) -> None:
            name = secrets.token_hex(16)
            document = {**_HEAD, "provider": self._id, **about, "resource": dict(facts)}
            try:
                self._store.record_resource(name, document)
            except OSError as exc:
                raise StorageError(str(exc)) from exc
            names.append(name)

        try:
            env = await self._provider.open(spec, record)
        except BaseException:
            self._strike_off(names)  # a failed opening leaves nothing
            raise
        self._records[id(env)] = names
        return env

    async def close(self, env: Environment) -> None:
        """Close a sandbox; its record goes when it is gone."""
        await env.close()
        self._strike_off(self._records.pop(id(env), []))

    def _strike_off(self, names: list[str]) -> None:
        for name in names:
            try:
                self._store.drop_resource(name)
            except OSError as exc:
                log.warning("the record of a closed sandbox stays: %s", exc)


async def leftovers_of(provider: EnvironmentProvider) -> Sequence[Leftover]:
    """Return the leftovers of *provider*; one without such a method has nothing that outlives its process."""
    look = getattr(provider, "leftovers", None)
    return await look() if look else ()


async def reap(provider: EnvironmentProvider) -> int:
    """Remove what runs that were killed have left on *provider*, and return how much that was."""
    count = 0
    for leftover in await leftovers_of(provider):
        if not leftover.abandoned or leftover.kept:
            continue
        try:
            await provider.release({"id": leftover.id})
        except Exception as exc:
            log.warning("%s, which a run that was killed left, stays: %s", leftover.what, exc)
        else:
            count += 1
            run = leftover.labels.get("run", "unknown")
            log.info("removed %s, which the killed run %s left", leftover.what, run)
    return count
