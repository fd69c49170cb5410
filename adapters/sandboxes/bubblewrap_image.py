"""Plays a Dockerfile in a `bubblewrap` sandbox: on the machine's own system, whatever image it starts from."""

from __future__ import annotations

import glob
import os
import posixpath
import re
import tarfile
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.environment import VARIABLE_NAME

from . import files
from .dockerfile import Dockerfile, DockerfileError, Instruction, expand, pairs, parse, split

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .bubblewrap_session import BubblewrapSession

_IGNORED = frozenset("CMD ENTRYPOINT EXPOSE HEALTHCHECK LABEL MAINTAINER STOPSIGNAL".split())
_PLAYED = frozenset("ADD ARG COPY ENV FROM RUN SHELL USER VOLUME WORKDIR".split())
_FLAGS = {"COPY": {"chmod", "chown", "link"}, "ADD": {"chmod", "chown", "link"}, "RUN": {"mount", "network"}}
_FLAGS["FROM"] = {"platform"}
_ROOT = frozenset({"root", "0", "root:root", "0:0", "root:0", "0:root"})
_LAST_LINES = 15
_MEND = "use a container sandbox for this task"


@dataclass
class Image:
    """What an image says of its containers: variables and the working folder, None when it names none."""

    variables: dict[str, str] = field(default_factory=dict)
    workdir: str | None = None
    arguments: dict[str, str] = field(default_factory=dict)
    shell: tuple[str, ...] = ("/bin/sh", "-c")

    @property
    def known(self) -> Mapping[str, str]:
        """What ``$NAME`` means in the instructions, and in the environment of a RUN."""
        return {**self.arguments, **self.variables}


class Recipe:
    """The Dockerfile of a *folder*, read and found to be playable, with *build_args* for its ARGs."""

    def __init__(self, folder: str, build_args: Mapping[str, str]) -> None:
        self._folder = os.path.realpath(folder)
        self._path = os.path.join(folder, "Dockerfile")
        self._build_args = build_args
        try:
            with open(self._path, encoding="utf-8") as file:
                self._file: Dockerfile = parse(file.read())
        except DockerfileError as error:
            raise UsageError("build", f"{self._path}:{error.line}: {error}", _MEND) from error
        except (OSError, UnicodeError) as error:
            raise UsageError("build", f"{self._path}: {error}", "name a folder with a Dockerfile") from error
        self._ignored = _ignore_rules(os.path.join(folder, ".dockerignore"))
        self._require_playable()

    async def play(self, session: BubblewrapSession) -> Image:
        """Do in *session* what the instructions say.

        Raises:
            SandboxError: a RUN fails.
            UsageError: an instruction asks for what there is not.
        """
        image = Image()
        started = False
        for step in self._file.instructions:
            if step.name == "FROM":
                started = True
                image.arguments = {}  # those before it are for it alone
            elif step.name == "ARG" or started:
                try:
                    await self._step(step, image, session)
                except ValueError as error:
                    raise self._refusal(step, str(error)) from error
        return image

    def _require_playable(self) -> None:
        for step in self._file.instructions:
            if step.name not in _PLAYED | _IGNORED:
                raise self._refusal(step, "cannot be played on this machine's system")
            for flag, value in step.flags.items():
                if step.name not in _IGNORED and (
                    flag not in _FLAGS.get(step.name, ()) or (flag == "mount" and "type=cache" not in value.split(","))
                ):
                    raise self._refusal(step, f"--{flag} cannot be played on this machine's system")
            if step.name == "USER" and step.text not in _ROOT:
                raise self._refusal(step, f"there is no user {step.text!r}, only root")
            if step.flags.get("chown", "root") not in _ROOT:
                raise self._refusal(step, f"there is no user {step.flags['chown']!r}, only root")
        starts = [step for step in self._file.instructions if step.name == "FROM"]
        if not starts:
            raise UsageError("build", f"{self._path}: there is no FROM", "start it with one")
        if len(starts) > 1:
            raise self._refusal(starts[1], "several stages cannot be played on this machine's system")

    def _refusal(self, step: Instruction, problem: str) -> UsageError:
        return UsageError("build", f"{self._path}:{step.line}: {step.name}: {problem}", _MEND)

    async def _step(self, step: Instruction, image: Image, session: BubblewrapSession) -> None:
        if step.name == "RUN":
            await self._run(step, image, session)
        elif step.name in ("COPY", "ADD"):
            await self._copy(step, image, session)
        elif step.name == "ENV":
            image.variables |= _named(pairs(step.text, image.known, self._file.escape))
        elif step.name == "ARG":
            self._declare(step, image)
        elif step.name == "WORKDIR":
            image.workdir = _below(image.workdir, expand(step.text, image.known, self._file.escape))
            await _made(session, image.workdir)
        elif step.name == "VOLUME":
            for path in step.words or split(step.text, image.known, self._file.escape):
                await _made(session, _below(image.workdir, path))
        elif step.name == "SHELL":
            if not step.words:
                raise ValueError("expected a JSON list of words")
            image.shell = step.words

    def _declare(self, step: Instruction, image: Image) -> None:
        for word in split(step.text, image.known, self._file.escape):
            name, equals, default = word.partition("=")
            if name in self._build_args:
                image.arguments |= _named([(name, self._build_args[name])])
            elif equals:
                image.arguments |= _named([(name, default)])

    async def _run(self, step: Instruction, image: Image, session: BubblewrapSession) -> None:
        command = step.words if step.words is not None else (*image.shell, step.text)
        result = await session.exec(list(command), cwd=image.workdir or "/", env=image.known)
        if result.exit_code != 0:
            lines = "\n".join(result.text.rstrip().splitlines()[-_LAST_LINES:])
            raise SandboxError(f"{self._path}:{step.line}: RUN ended with exit code {result.exit_code}:\n{lines}")

    async def _copy(self, step: Instruction, image: Image, session: BubblewrapSession) -> None:
        words = list(step.words or split(step.text, image.known, self._file.escape))
        if len(words) < 2:
            raise ValueError("expected sources and a target")
        *patterns, last = words
        sources = [source for pattern in patterns for source in self._sources(step, pattern)]
        target = _below(image.workdir, last)
        into = last.endswith(("/", "/.")) or last == "." or len(sources) > 1
        into = into or (await session.exec(["test", "-d", target])).exit_code == 0
        for source in sources:
            place = posixpath.join(target, os.path.basename(source)) if into and not files.is_folder(source) else target
            if step.name == "ADD" and _is_archive(source):
                await self._extract(source, target, session)
                continue
            await session.upload_part(source, place, self._leaves_out(source))
            if "chmod" in step.flags:
                await _required(session, ["chmod", "-R", step.flags["chmod"], place])

    def _sources(self, step: Instruction, pattern: str) -> Sequence[str]:
        """Return what *pattern* names in the folder of the Dockerfile, and nowhere else."""
        if re.match(r"[a-z]+://|git@", pattern):
            raise ValueError(f"{pattern!r} would have to be fetched")
        clean = posixpath.normpath(f"/{pattern}").lstrip("/")
        whole = os.path.join(self._folder, clean) if clean else self._folder
        found = sorted(glob.glob(glob.escape(self._folder) + "/" + clean)) if glob.has_magic(clean) else [whole]
        found = [path for path in found if os.path.lexists(path) and not self._is_ignored(path)]
        if not found:
            raise ValueError(f"there is no {pattern!r} in the folder")
        for path in found:
            real = os.path.realpath(path)
            if real != self._folder and not real.startswith(f"{self._folder}/"):
                raise ValueError(f"{pattern!r} leads out of the folder")
        return found

    async def _extract(self, source: str, target: str, session: BubblewrapSession) -> None:
        archive = "/tmp/.agentcompass-add"  # noqa: S108  (in the sandbox)
        await session.upload(source, archive)
        await _made(session, target)
        await _required(session, ["tar", "-xf", archive, "--no-same-owner", "-C", target])
        await session.remove(archive)

    def _is_ignored(self, path: str) -> bool:
        below = os.path.relpath(path, self._folder)
        ignored = False
        for pattern, keeps in self._ignored:
            parts = below.split("/")
            heads = ("/".join(parts[: end + 1]) for end in range(len(parts)))
            if any(fnmatchcase(head, pattern) for head in heads):
                ignored = not keeps
        return below != "." and ignored

    def _leaves_out(self, source: str) -> Callable[[str], bool]:
        has_exceptions = any(keeps for _, keeps in self._ignored)

        def leave_out(below: str) -> bool:
            path = os.path.join(source, below)
            return self._is_ignored(path) and not (has_exceptions and os.path.isdir(path))

        return leave_out


def _is_archive(path: str) -> bool:
    return os.path.isfile(path) and tarfile.is_tarfile(path)


def _ignore_rules(path: str) -> list[tuple[str, bool]]:
    """Return the patterns of a ``.dockerignore``, in order, each with whether it is an exception."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except FileNotFoundError:
        return []
    rules = []
    for line in lines:
        if line and not line.startswith("#"):
            pattern = posixpath.normpath("/" + line.removeprefix("!").strip()).lstrip("/")
            rules.append((pattern, line.startswith("!")))
            if pattern.startswith("**/"):
                rules.append((pattern[3:], line.startswith("!")))
    return rules


def _named(variables: Sequence[tuple[str, str]]) -> dict[str, str]:
    for name, _ in variables:
        if not VARIABLE_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a variable")
    return dict(variables)


def _below(workdir: str | None, path: str) -> str:
    return posixpath.normpath(posixpath.join(workdir or "/", path))


async def _made(session: BubblewrapSession, path: str) -> None:
    await _required(session, ["mkdir", "-p", "--", path])


async def _required(session: BubblewrapSession, command: Sequence[str]) -> None:
    result = await session.exec(command, cwd="/")
    if result.exit_code != 0:
        raise ValueError(result.text.strip().rpartition("\n")[2])
