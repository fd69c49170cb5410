"""The files of a `bubblewrap` sandbox: moved in and out by commands that run inside it, as its own user."""

from __future__ import annotations

import asyncio
import os
import posixpath
import re
import secrets
import tarfile
from abc import ABC, abstractmethod
from threading import Event
from typing import TYPE_CHECKING, BinaryIO, cast

from agentcompass.core.errors import SandboxError, TransferLimitError

from . import files
from .archive import Stopped, Valve, pack, unpack
from .capture import Capture
from .guard import Guard
from .waiting import to_the_end

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agentcompass.core.model.environment import TransferLimits

_ABSENT = 44  # exit code of the scripts below
_VARIABLES = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
_WRITE = """mkdir -p -- "$1" && cat >"$2" && chmod "$4" "$2" && mv -fT -- "$2" "$3" && exit
rm -f -- "$2"; exit 1"""
_READ = """[ -f "$1" ] || exit 44
exec dd if="$1" bs=65536 count="$2" iflag=fullblock,count_bytes,nonblock status=none"""
_EXTRACT = """mkdir -p -- "$1" && cd -- "$1" || exit 1
if [ "$3" = file ]; then rm -rf -- "./$2"; elif [ -L "./$2" ] || [ ! -d "./$2" ]; then rm -f -- "./$2"; fi
exec tar -xpf - --no-same-owner --no-overwrite-dir"""
_PACK = """p=$(readlink -e -- "$1" && echo x) || exit 44
p=${p%?x}; shift
exec tar -cf - --format=pax "$@" -C "${p%/*}/" -- "./${p##*/}" """
_REMOVE = """rm -rf -- "$1" 2>/dev/null; [ -e "$1" ] || [ -L "$1" ] || exit 0
chmod -R u+rwx -- "$1"; exec rm -rf -- "$1" """
_SOCKET = re.compile(r"tar: \./(.*): socket ignored")


class BubblewrapFiles(ABC):
    """What of an `Environment` is about files, for a class that runs commands."""

    @abstractmethod
    async def _run(
        self,
        argv: Sequence[str],
        cwd: str,
        variables: Mapping[str, str],
        stdin: bytes | BinaryIO | None,
        out: Capture | BinaryIO,
        err: Capture,
        timeout: float | None = None,
    ) -> int | None: ...

    @abstractmethod
    def _path(self, path: str) -> str: ...

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write *data* to *path* in one step; a link is replaced, not followed."""
        place = self._path(path)
        draft = posixpath.join(posixpath.dirname(place), f".agentcompass-{secrets.token_hex(8)}")
        arguments = (posixpath.dirname(place), draft, place, f"{mode & 0o7777:o}")
        await self._script(f"write {path}", _WRITE, *arguments, stdin=data)

    async def read_file(self, path: str, *, limit: int = 16 * 1024 * 1024) -> bytes | None:
        """Return the bytes of the regular file *path*, or of the one that it links to."""
        out = Capture(limit + 1)
        if await self._script(f"read {path}", _READ, self._path(path), str(limit + 1), out=out) == _ABSENT:
            return None
        if out.size > limit:
            raise ValueError(f"{path} is larger than {limit} bytes")
        return out.value()

    async def upload(self, source: str, target: str) -> None:
        """Copy *source* of this machine to *target*; a link at *target* is replaced, not followed."""
        await self.upload_part(source, target)

    async def upload_part(self, source: str, target: str, leave_out: Callable[[str], bool] | None = None) -> None:
        """Copy *source* of this machine to *target* without what *leave_out* says of a path below *source*."""
        origin, place = files.resolved(source), self._path(target)
        parent, name = posixpath.split(place)
        if not files.exists(origin):
            raise FileNotFoundError(f"there is no {source}")
        if name in {"", ".", ".."}:
            parent, name = place, "."
        stop = Event()
        with _pipe() as (reader, writer):
            packing = asyncio.ensure_future(
                asyncio.to_thread(_pack, origin, name, writer, stop, leave_out or (lambda _: False))
            )
            kind = "tree" if files.is_folder(origin) else "file"
            try:
                await self._script(f"copy {source} to {target}", _EXTRACT, parent, name, kind, stdin=reader)
            finally:
                stop.set()
                reader.close()  # the packer may still be writing
                with files.sandbox_errors(f"read {source}"):
                    await to_the_end(packing)

    async def download(
        self, source: str, target: str, *, exclude: Sequence[str] = (), limits: TransferLimits | None = None
    ) -> Sequence[str]:
        """Copy *source* of the sandbox to *target* on this machine."""
        guard, err = Guard(exclude, limits), Capture(65536)
        place, there = self._path(source), files.resolved(target)
        options = ["--hard-dereference"] if exclude else []  # the first link may be one that is left out
        with _pipe() as (reader, writer):
            unpacking = asyncio.ensure_future(asyncio.to_thread(_unpack, reader, there, guard))
            failure: SandboxError | None = None
            code = 0
            try:
                code = await self._script(f"copy {source}", _PACK, place, *options, out=writer, err=err, fine=(0, 1))
            except SandboxError as error:
                failure = error
            finally:
                writer.close()
                await to_the_end(asyncio.wait({unpacking}))
        if code == _ABSENT:
            raise FileNotFoundError(f"there is no {source}")
        with files.sandbox_errors(f"copy {source}"):
            _require_copied(unpacking.exception(), failure)
        guard.tell_special(_SOCKET.findall(err.value().decode(errors="replace")))
        return guard.refused

    async def remove(self, path: str) -> None:
        """Remove the file or tree *path*, if it is there."""
        await self._script(f"remove {path}", _REMOVE, self._path(path))

    async def _script(
        self,
        doing: str,
        script: str,
        *arguments: str,
        stdin: bytes | BinaryIO | None = None,
        out: Capture | BinaryIO | None = None,
        err: Capture | None = None,
        fine: Sequence[int] = (0,),
    ) -> int:
        err = err or Capture(4096)
        argv = ["/bin/sh", "-c", script, "sh", *arguments]
        code = await self._run(argv, "/", _VARIABLES, stdin, out or Capture(4096), err)
        if code is None or code not in (*fine, _ABSENT):
            told = err.value().decode(errors="replace").strip().partition("\n")[0]
            raise SandboxError(f"cannot {doing}: {told or f'exit code {code}'}")
        return code


class _pipe:  # noqa: N801  (used like a function)
    """Both ends of a pipe, closed at the end if they are not yet."""

    def __enter__(self) -> tuple[BinaryIO, BinaryIO]:
        reader, writer = os.pipe()
        self._ends = cast("tuple[BinaryIO, BinaryIO]", (open(reader, "rb"), open(writer, "wb")))
        return self._ends

    def __exit__(self, *_: object) -> None:
        for end in self._ends:
            end.close()


def _pack(source: str, root: str, writer: BinaryIO, stop: Event, leave_out: Callable[[str], bool]) -> None:
    try:
        with writer:
            pack(source, Valve(writer, stop), root=root, leave_out=leave_out)
    except (BrokenPipeError, Stopped):
        pass  # the other end has failed, and says why


def _unpack(reader: BinaryIO, target: str, guard: Guard) -> None:
    with reader:
        if not reader.peek(1):  # type: ignore[attr-defined]
            return  # nothing was packed, and the other end says why
        os.makedirs(os.path.dirname(target), exist_ok=True)
        unpack(reader, target, guard)
        while reader.read(tarfile.RECORDSIZE):  # the padding
            pass


def _require_copied(there: BaseException | None, inside: SandboxError | None) -> None:
    """Raise what went wrong: when an end breaks off, the other one fails too, and says less."""
    if there is not None and (inside is None or isinstance(there, TransferLimitError | OSError)):
        raise there
    if inside is not None:
        raise inside
