"""What tests of local sandboxes share: a folder and a cgroup of their own, and a look at what is left."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentcompass.adapters.sandboxes.bubblewrap import BubblewrapProvider
from agentcompass.adapters.sandboxes.cgroup_tree import own_cgroup

pytest.register_assert_rewrite("contracts")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder in which sandboxes lie; it is not in the way of a test's own files."""
    folder = tmp_path.parent / f"{tmp_path.name}-sandboxes"
    folder.mkdir()
    return folder


@pytest.fixture
def traces(root: Path) -> Callable[[], list[str]]:
    """Name the processes whose HOME is below *root*, and what lies in it."""

    def look() -> list[str]:
        return [*_processes_of(root), *map(str, root.iterdir())]

    return look


@pytest.fixture
def marked(root: Path) -> Callable[[], list[str]]:
    """Name the processes that bear the mark of a sandbox whose folder is or was below *root*, and what lies in it."""
    known: set[bytes] = set()

    def look() -> list[str]:
        known.update(os.fsencode(path.name.removeprefix("agentcompass-")) for path in root.iterdir())
        return [*(found for name in known for found in _processes_of(name)), *map(str, root.iterdir())]

    return look


@pytest.fixture
def maker() -> str:
    """The program that makes local sandboxes; tests that try each of them override it."""
    return "bwrap"


@pytest.fixture
def bubblewrap(root: Path, maker: str) -> BubblewrapProvider:
    """Give a provider with sandboxes below *root*, where their maker is installed."""
    if shutil.which(maker) is None:
        assert not os.environ.get("CI"), f"CI has {maker}"
        pytest.skip(f"{maker} is not installed here")
    return BubblewrapProvider(root=str(root), maker=maker)


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A cgroup for the cgroups of one test."""
    parent = own_cgroup()
    if parent is None:
        pytest.skip("no cgroups can be made here")
    folder = Path(parent, f"test-{secrets.token_hex(8)}")
    folder.mkdir()
    yield folder
    folder.rmdir()


def _processes_of(root: Path | bytes) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(root) in (entry / "environ").read_bytes():
                found.append(f"process {entry.name}: {(entry / 'cmdline').read_bytes()!r}")
        except OSError:
            continue
    return found
