"""Private folders of local sandboxes: named after their owners, found again when those have ended, and removed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

from agentcompass.core.errors import SandboxError
from agentcompass.core.model.environment import Leftover

from . import files
from .owners import abandoned, owner
from .process_table import Census, ProcTable
from .process_tree import ProcessTree, choose_tree, extinguish
from .scan_tree import ScanTree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PREFIX = "agentcompass-"
_NAME = re.compile(r"agentcompass-(([a-z]+-)?([0-9a-f]{12}\.[0-9]+\.[0-9]+)-[0-9a-f]{16})")
_LABELS = ".labels.json"
_KILL_WITHIN = 10.0


def new_id(kind: str = "") -> str:
    """Return the id of a new sandbox: its *kind* (letters, with a hyphen after them), its owner, and chance."""
    return f"{kind}{owner()}-{secrets.token_hex(8)}"


def place(root: str | None, sandbox: str) -> str:
    """Return the private folder of *sandbox* below *root*, or where temporary files are."""
    return os.path.join(os.path.realpath(root or tempfile.gettempdir()), _PREFIX + sandbox)


def write_labels(folder: str, labels: Mapping[str, str]) -> None:
    """Keep *labels* in the private *folder*, if there are any."""
    if labels:
        with open(f"{folder}/{_LABELS}", "x", encoding="utf-8") as file:
            json.dump(dict(labels), file)


def remove_unused(folder: str, empty: Sequence[str]) -> bool:
    """Remove a private folder that holds nothing but *empty* folders and labels; return whether it is gone."""
    for name in empty:
        try:
            if os.listdir(f"{folder}/{name}"):
                return False
        except OSError:
            continue
    with suppress(OSError):
        os.unlink(f"{folder}/{_LABELS}")
    return files.remove_skeleton(folder, empty)


def find(provider: str, root: str | None, kind: str = "") -> Sequence[Leftover]:
    """Return the sandboxes of *kind* below *root*, whoever's; blocks."""
    parent = os.path.dirname(place(root, "x"))
    found = []
    for name in sorted(os.listdir(parent) if os.path.isdir(parent) else ()):
        match = _NAME.fullmatch(name)
        if match is None or (match[2] or "") != kind:
            continue
        path, whose = f"{parent}/{name}", match[3]
        labels = _labels(path)
        found.append(
            Leftover(provider, match[1], f"the folder {path}", whose, abandoned(whose), "kept" in labels, labels)
        )
    return found


async def release(root: str | None, recorded: Mapping[str, str], marks: Sequence[str] = ("",)) -> None:
    """Kill the processes and remove the folder of what *recorded* names.

    *marks* are what is added to the id in the marks of its processes.
    """
    sandbox = recorded.get("id", "")
    folder = recorded.get("folder") or place(root, sandbox)
    if not _NAME.fullmatch(os.path.basename(folder)) or os.path.basename(folder) != _PREFIX + sandbox:
        raise SandboxError(f"{folder!r} is no folder of a sandbox")
    for mark in marks:
        await _kill(sandbox + mark)
    with files.sandbox_errors(f"remove {folder}"):
        await asyncio.to_thread(files.remove_tree, folder)


async def _kill(sandbox: str) -> None:
    for tree in _trees(sandbox):
        await extinguish(tree, None, _KILL_WITHIN)
        tree.close()


def _trees(sandbox: str) -> Iterator[ProcessTree]:
    yield choose_tree()[0](sandbox)
    if os.path.exists("/proc/self/environ"):  # another process may have put them into other cgroups than we would
        yield ScanTree(sandbox, Census(ProcTable()))


def _labels(folder: str) -> dict[str, str]:
    try:
        with open(f"{folder}/{_LABELS}", encoding="utf-8") as file:
            labels = json.load(file)
    except (OSError, ValueError):
        return {}
    return {str(name): str(value) for name, value in labels.items()} if isinstance(labels, dict) else {}
