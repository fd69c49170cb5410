"""Takes what a task's table says, key by key, and notes what is wrong with it and where."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from agentcompass.core.errors import nearest
from agentcompass.core.model.task import Finding

T = TypeVar("T")
D = TypeVar("D")
Path = tuple[str | int, ...]
_NAME = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_NAME}(?:\s*\.\s*{_NAME})*"
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")


@dataclass(frozen=True, slots=True)
class Note:
    """Something about the value at *path*; an error keeps the task from being one."""

    path: Path
    message: str
    is_error: bool = True


class Notes:
    """What has been noted about one file of tables."""

    def __init__(self) -> None:
        self._notes: list[Note] = []
        self._tables: list[Table] = []

    def add(self, path: Path, message: str, *, is_error: bool = True) -> None:
        """Note *message* about the value at *path*."""
        self._notes.append(Note(path, message, is_error))

    def register(self, table: Table) -> None:
        """Ask *table* at the end which of its keys nobody took."""
        self._tables.append(table)

    def findings(
        self, file: str, text: str, locate: Callable[[str, Path], int] | None = None, *, warn: bool = True
    ) -> Iterator[Finding]:
        """Yield what was noted, with the lines of *text* that say it, and (if to *warn*) the keys that nobody took.

        *locate* finds the line of a path; the usual one reads TOML.
        """
        locate = locate or line_of
        notes = [note for note in self._notes if warn or note.is_error]
        if warn:
            notes.extend(note for table in self._tables for note in table.unknown())
        for note in notes:
            yield Finding(f"{file}:{locate(text, note.path)}", f"{shown(note.path)}: {note.message}", note.is_error)


class Table:
    """One table of the file; *path* says where it stands."""

    def __init__(self, values: Mapping[str, Any], path: Path, notes: Notes) -> None:
        self.values, self.path, self.notes = values, path, notes
        self._taken: set[str] = set()
        notes.register(self)

    def take(self, key: str, read: Callable[[Any], T], default: D) -> T | D:
        """Return what *read* makes of *key*, or *default* where there is nothing, or nothing right."""
        self._taken.add(key)
        if key not in self.values:
            return default
        try:
            return read(self.values[key])
        except ValueError as exc:
            self.error(key, str(exc))
            return default

    def need(self, key: str, read: Callable[[Any], T], default: T) -> T:
        """Return what *read* makes of *key*, which has to be there."""
        if key not in self.values:
            self.error(key, "is missing")
        return self.take(key, read, default)

    def table(self, key: str) -> Table:
        """Return the table *key*, empty where there is none."""
        return Table(self.take(key, _table, {}), (*self.path, key), self.notes)

    def tables(self, key: str) -> Sequence[Table]:
        """Return the tables of the list *key*."""
        found = self.take(key, _tables, ())
        return [Table(value, (*self.path, key, index), self.notes) for index, value in enumerate(found)]

    def error(self, key: str, message: str) -> None:
        """Note an error at *key*."""
        self.notes.add((*self.path, key), message)

    def warn(self, key: str, message: str) -> None:
        """Note at *key* what does no harm."""
        self.notes.add((*self.path, key), message, is_error=False)

    def unknown(self) -> Iterator[Note]:
        """Yield a warning for each key that nobody took."""
        for key in self.values:
            if key not in self._taken:
                yield Note((*self.path, key), f"unknown key; {nearest(key, self._taken)}", is_error=False)


def _table(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("is no table")  # noqa: TRY004  (readers have one way to refuse)
    return value


def _tables(value: Any) -> Sequence[Mapping[str, Any]]:
    if not isinstance(value, list):
        raise ValueError("is no list of tables")  # noqa: TRY004
    return [_table(entry) for entry in value]


def shown(path: Path) -> str:
    """Return *path* as one would say it: ``steps[1].name``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def line_of(text: str, path: Path) -> int:
    """Return the line of *text* that says the value at *path*, or the nearest thing above it."""
    best, length = 1, 0
    for line, found in _places(text):
        shared = len(found) if path[: len(found)] == found else 0
        if shared > length:
            best, length = line, shared
    return best


def _places(text: str) -> Iterator[tuple[int, Path]]:
    """Yield each header and key with its line; what stands in a text of several lines is no key."""
    current: Path = ()
    counts: dict[Path, int] = {}
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        if fence:
            fence = "" if line.count(fence) % 2 else fence
            continue
        header, key = _HEADER.match(line), _KEY.match(line)
        if header:
            current = _header(header[2], header[1] == "[[", counts)
            yield number, current
        elif key:
            yield number, (*current, *_parts(key[1]))
        fence = next((mark for mark in ('"""', "'''") if line.count(mark) % 2), "")


def _header(text: str, is_list: bool, counts: dict[Path, int]) -> Path:
    """Return where a header leads: names of lists are followed by the number of their last table."""
    path: Path = ()
    names = _parts(text)
    for index, name in enumerate(names):
        path = (*path, name)
        if is_list and index == len(names) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(name.strip("\"'") for name in re.findall(_NAME, dotted))
