"""``agentcompass env``: lists sandboxes that nobody has closed, and closes them."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agentcompass.core.errors import AgentCompassError, UsageError
from agentcompass.core.model.component import Kind
from agentcompass.core.model.environment import Leftover
from agentcompass.ports.environment import EnvironmentProvider

from ..engine.host import Host
from ..engine.parameters import validated
from ..engine.resources import leftovers_of
from ..stores.resources import ResourceRecord, forget, resource_records
from .cmd_doctor import missing


@dataclass(frozen=True, slots=True)
class Found:
    """A sandbox that is there, and what runs have recorded of it."""

    leftover: Leftover
    records: tuple[ResourceRecord, ...] = ()

    @property
    def state(self) -> str:
        """In one word: why it is there."""
        return "abandoned" if self.leftover.abandoned else "kept" if self.leftover.kept else "in use"

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        labels = self.leftover.labels
        return {
            "id": self.leftover.id,
            "provider": self.leftover.provider,
            "what": self.leftover.what,
            "state": self.state,
            "run": labels.get("run"),
            "task": labels.get("task"),
            "attempt": labels.get("attempt"),
            "records": [str(record.path) for record in self.records],
        }


def run(args: argparse.Namespace) -> int:
    """List, or close; return 1 if something that was to be closed is still there."""
    if args.what is None:
        raise UsageError("env", "nothing is asked for", "see agentcompass env --help")
    if args.what == "close" and bool(args.ids) == args.all:
        raise UsageError("env close", "name what to close, or say --all", "see agentcompass env list")
    providers = _providers(Host())
    records = resource_records(args.results_dir)
    found = asyncio.run(_look(providers, records))
    if args.what == "list":
        return _list(found, args.json)
    return asyncio.run(_close(providers, found, records, _chosen(found, args)))


def _providers(host: Host) -> dict[str, EnvironmentProvider]:
    """Return the providers whose libraries are installed, with their default parameters."""
    built: dict[str, EnvironmentProvider] = {}
    for registered in host.registered(Kind.ENVIRONMENT):
        component = registered.component
        try:
            if missing(registered) is None:
                built[component.id] = host.build(
                    Kind.ENVIRONMENT, component.id, **validated(component, {}, component.id)
                )
        except Exception as exc:  # a third party's provider may raise anything
            print(f"{component.id}: {exc}", file=sys.stderr)
    return built


async def _look(providers: dict[str, EnvironmentProvider], records: Sequence[ResourceRecord]) -> list[Found]:
    found = []
    for name, provider in providers.items():
        try:
            leftovers = await leftovers_of(provider)
        except AgentCompassError as exc:
            print(f"{name} does not answer: {exc}", file=sys.stderr)
            continue
        for leftover in leftovers:
            mine = tuple(record for record in records if (record.provider, record.id) == (name, leftover.id))
            found.append(Found(leftover, mine))
    return found


def _list(found: Sequence[Found], as_json: bool) -> int:
    if as_json:
        print(json.dumps([entry.document() for entry in found], indent=2, ensure_ascii=False))
        return 0
    for entry in found:
        labels = entry.leftover.labels
        whose = f"run {labels['run']}, task {labels.get('task')}" if "run" in labels else "of no known run"
        print(f"{entry.leftover.id}  {entry.state:<9}  {entry.leftover.what}  ({whose})")
    if not found:
        print("nothing is left open")
    return 0


def _chosen(found: Sequence[Found], args: argparse.Namespace) -> list[Found]:
    """Return what is to be closed: all but what living runs use, or exactly what was named."""
    if args.all:
        return [entry for entry in found if entry.state != "in use"]
    by_id = {entry.leftover.id: entry for entry in found}
    for name in args.ids:
        if name not in by_id:
            raise UsageError("env close", f"there is no sandbox {name!r}", "see agentcompass env list")
    return [by_id[name] for name in args.ids]


async def _close(
    providers: dict[str, EnvironmentProvider],
    found: Sequence[Found],
    records: Sequence[ResourceRecord],
    chosen: Iterable[Found],
) -> int:
    there = {(entry.leftover.provider, entry.leftover.id) for entry in found}
    failed = 0
    for entry in chosen:
        try:
            await providers[entry.leftover.provider].release({"id": entry.leftover.id})
        except AgentCompassError as exc:
            print(f"{entry.leftover.id} is still there: {exc}", file=sys.stderr)
            failed += 1
        else:
            print(f"closed {entry.leftover.id}")
            there.discard((entry.leftover.provider, entry.leftover.id))
    forget(record for record in records if record.provider in providers and (record.provider, record.id) not in there)
    return 1 if failed else 0
