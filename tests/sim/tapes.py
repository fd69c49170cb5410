"""Tapes: settings that once showed a bug, kept as small JSON files and played again for ever.

``python -m sim.tapes SEED NAME STORY`` (in the folder ``tests``) records what a seed draws.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .settings import Settings, draw, settings_of

FOLDER = Path(__file__).with_name("tapes")


@dataclass(frozen=True, slots=True)
class Tape:
    """Settings, and the *story* of what they once showed."""

    name: str
    story: str
    settings: Settings


def record(tape: Tape, folder: Path = FOLDER) -> Path:
    """Write *tape* to its file."""
    path = folder / f"{tape.name}.json"
    document = {"story": tape.story, "settings": tape.settings.document()}
    path.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    return path


def read(path: Path) -> Tape:
    """Return the tape in the file *path*."""
    document = json.loads(path.read_text("utf-8"))
    return Tape(path.stem, document["story"], settings_of(document["settings"]))


def all_tapes() -> list[Tape]:
    """Return every tape there is."""
    return [read(path) for path in sorted(FOLDER.glob("*.json"))]


def uncrashed(settings: Settings) -> Settings:
    """Return *settings* for the engine, which does not crash."""
    return replace(settings, crash_at=None)


def main(argv: Sequence[str] | None = None) -> int:
    """Record what a seed draws."""
    seed, name, story = sys.argv[1:] if argv is None else argv
    print(record(Tape(name, story, draw(int(seed)))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
