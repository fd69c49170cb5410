"""Reads a Dockerfile: instructions with their lines, flags and forms, and the words in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_DIRECTIVE = re.compile(r"#\s*([A-Za-z]+)\s*=\s*(\S+)\s*")
_FLAG = re.compile(r"--([a-z-]+)(?:=(\S*))?(?:\s+|$)")
_HERE_DOCUMENT = re.compile(r"(?<![<\w$(])\d*<<-?[\"']?[A-Za-z_]\w*[\"']?(?=\s|$)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACED = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-+])((?:[^{}]|\{[^{}]*\})*))?\}")


class Instruction(NamedTuple):
    """One instruction, at *line*: its *name* in capitals, its *flags*, and *text*; *words* if that is a JSON list."""

    line: int
    name: str
    flags: Mapping[str, str]
    text: str
    words: tuple[str, ...] | None


class Dockerfile(NamedTuple):
    """All instructions, and the character by which lines go on and characters lose their meaning."""

    instructions: tuple[Instruction, ...]
    escape: str


class DockerfileError(ValueError):
    """The Dockerfile is broken, at *line*."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


def parse(text: str) -> Dockerfile:
    """Read *text*.

    Raises:
        DockerfileError: it cannot be read.
    """
    lines = text.lstrip("\ufeff").splitlines()
    escape = _escape(lines)
    return Dockerfile(tuple(_instruction(line, whole) for line, whole in _logical(lines, escape)), escape)


def _escape(lines: list[str]) -> str:
    """Return the escape character that the directives at the very top choose."""
    for number, line in enumerate(lines, 1):
        found = _DIRECTIVE.fullmatch(line.strip())
        if found is None:
            break
        if found[1].lower() == "escape":
            if found[2] not in ("\\", "`"):
                raise DockerfileError(number, f"{found[2]!r} cannot be the escape character")
            return found[2]
    return "\\"


def _logical(lines: list[str], escape: str) -> Iterator[tuple[int, str]]:
    """Yield the lines as continuations make them, each with the number of its first; comments are dropped."""
    first = 0
    parts: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("#") or not line.strip():
            continue  # inside a continuation too
        first = first or number
        body = line.rstrip()
        if body.endswith(escape):
            parts.append(body[:-1])
            continue
        yield first, "".join([*parts, line]).strip()
        first, parts = 0, []
    if parts:
        yield first, "".join(parts).strip()


def _instruction(line: int, whole: str) -> Instruction:
    name, _, rest = whole.partition(" ") if " " in whole else whole.partition("\t")
    name, rest, flags = name.upper(), rest.strip(), {}
    if not name.isalpha():
        raise DockerfileError(line, f"{whole[:40]!r} is no instruction")
    while found := _FLAG.match(rest):
        flags[found[1]] = found[2] or ""
        rest = rest[found.end() :]
    if name in ("RUN", "COPY", "ADD") and _HERE_DOCUMENT.search(rest):
        raise DockerfileError(line, f"{name} with a here-document is not understood")
    return Instruction(line, name, flags, rest, _json_words(rest))


def _json_words(text: str) -> tuple[str, ...] | None:
    if not text.startswith("["):
        return None
    try:
        words = json.loads(text)
    except ValueError:
        return None
    return tuple(words) if isinstance(words, list) and all(isinstance(word, str) for word in words) else None


def split(text: str, variables: Mapping[str, str], escape: str = "\\") -> list[str]:
    """Return the words of *text*, without their quotes and with the values of *variables* in them.

    Raises:
        ValueError: a quote or a brace does not close.
    """
    words: list[str] = []
    word: str | None = None
    position = 0
    while position < len(text):
        if text[position].isspace():
            if word is not None:
                words.append(word)
            word, position = None, position + 1
        else:
            part, position = _part(text, position, variables, escape)
            word = (word or "") + part
    return words if word is None else [*words, word]


def _part(text: str, at: int, variables: Mapping[str, str], escape: str) -> tuple[str, int]:
    """Return what stands at *at* (a character, a variable, a quotation) and where it ends."""
    if text[at] == "'":
        end = text.find("'", at + 1)
        if end < 0:
            raise ValueError("a quote does not close")
        return text[at + 1 : end], end + 1
    if text[at] == '"':
        return _quoted(text, at + 1, variables, escape)
    if text[at] == escape and at + 1 < len(text):
        return text[at + 1], at + 2
    if text[at] == "$":
        return _variable(text, at + 1, variables, escape)
    return text[at], at + 1


def _quoted(text: str, at: int, variables: Mapping[str, str], escape: str) -> tuple[str, int]:
    parts = []
    while at < len(text) and text[at] != '"':
        if text[at] == escape and text[at + 1 : at + 2] not in ('"', "$", escape):
            parts.append(text[at])
            at += 1
        elif text[at] == "'":
            parts.append("'")
            at += 1
        else:
            part, at = _part(text, at, variables, escape)
            parts.append(part)
    if at >= len(text):
        raise ValueError("a quote does not close")
    return "".join(parts), at + 1


def _variable(text: str, at: int, variables: Mapping[str, str], escape: str) -> tuple[str, int]:
    if found := _NAME.match(text, at):
        return variables.get(found[0]) or "", found.end()
    if not text.startswith("{", at):
        return "$", at
    braced = _BRACED.match(text, at)
    if braced is None:
        raise ValueError("a ${...} that is not understood")
    name, how, other = braced.groups()
    value = variables.get(name)
    is_set = value is not None and (value != "" or not (how or "").startswith(":"))
    if how and how.endswith("-") and not is_set:
        value = expand(other, variables, escape)
    elif how and how.endswith("+"):
        value = expand(other, variables, escape) if is_set else ""
    return value or "", braced.end()


def expand(text: str, variables: Mapping[str, str], escape: str = "\\") -> str:
    """Return *text* as one word, however many blanks are in it."""
    parts, at = [], 0
    while at < len(text):
        part, at = _part(text, at, variables, escape)
        parts.append(part)
    return "".join(parts)


def pairs(text: str, variables: Mapping[str, str], escape: str = "\\") -> list[tuple[str, str]]:
    """Return the names and values of an ENV: ``NAME=value ...``, or the old ``NAME value``.

    Raises:
        ValueError: it is neither.
    """
    first = text.split(None, 1)
    if len(first) == 2 and "=" not in first[0]:
        return [(first[0], expand(first[1], variables, escape))]
    found = [word.partition("=") for word in split(text, variables, escape)]
    if not found or not all(equals and name for name, equals, _ in found):
        raise ValueError("expected NAME=value")
    return [(name, value) for name, _, value in found]
