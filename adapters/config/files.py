"""Configuration files: where they are, and what is in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentcompass.core.config.layers import mapping, refuse_depth
from agentcompass.core.errors import UsageError

PROJECT_NAMES = ("agentcompass.yaml", "config.yaml")
ROOT_MARKS = ("pyproject.toml", "setup.cfg", ".git")


def user_file(env: Mapping[str, str]) -> Path:
    """Return where the user's own configuration would be."""
    home = env.get("XDG_CONFIG_HOME") or str(Path(env.get("HOME") or "~").expanduser() / ".config")
    return Path(home, "agentcompass", "config.yaml")


def project_file(start: Path) -> Path | None:
    """Return the configuration beside the nearest project root at or above *start*, if there is one.

    ``agentcompass.yaml`` marks a root itself; ``config.yaml`` counts only beside another mark.
    """
    for folder in (start, *start.parents):
        own = folder / PROJECT_NAMES[0]
        if own.is_file():
            return own
        if any((folder / mark).exists() for mark in ROOT_MARKS):
            shared = folder / PROJECT_NAMES[1]
            return shared if shared.is_file() else None
    return None


def config_layers(
    explicit: Sequence[str], env: Mapping[str, str], cwd: Path
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Return the layers of configuration, lowest first, and the files that they came from.

    Raises:
        UsageError: a file is missing, unreadable, or holds no mapping.
    """
    for name in explicit:
        if not name or "\0" in name:
            raise UsageError("--config", f"{name!r} is no path", "name a file")
    files = [path for path in (user_file(env), project_file(cwd)) if path is not None and path.is_file()]
    files += [Path(name) for name in explicit]
    last: dict[Path, Mapping[str, Any]] = {}
    for path in files:
        last.pop(path.resolve(), None)  # a file that comes twice counts where it comes last
        last[path.resolve()] = load(path)
    return list(last.values()), [str(path) for path in last]


def load(path: Path) -> Mapping[str, Any]:
    """Return the mapping that the YAML or JSON file *path* holds.

    Raises:
        UsageError: the file is missing, unreadable, malformed, or holds something else.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as exc:
        raise UsageError(str(path), f"cannot be read ({exc.strerror})", "check the path") from None
    except UnicodeDecodeError as exc:
        raise UsageError(str(path), f"is not UTF-8 (byte {exc.start})", "save it as UTF-8") from None
    document = _parse(path, text)
    refuse_depth(document, str(path))
    return mapping(document, str(path))


def _parse(path: Path, text: str) -> Any:
    if path.suffix.lower() == ".json":
        try:
            return json.loads(text, object_pairs_hook=lambda pairs: _unique(pairs, path))
        except (ValueError, RecursionError) as exc:
            raise UsageError(str(path), f"is not JSON: {exc}", "mend it there") from None
    from . import yaml_text

    try:
        return yaml_text.parse(text)
    except ValueError as exc:
        raise UsageError(str(path), f"is not YAML: {exc}", "mend it there") from None


def _unique(pairs: list[tuple[str, Any]], path: Path) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise UsageError(str(path), f"has the key {twice!r} twice", "keep one")
    return found
