"""Files and trees as a tar stream: packed and unpacked with modes, links and empty folders, and safely."""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
from threading import Event, Thread
from typing import IO, TYPE_CHECKING, BinaryIO

from agentcompass.core.errors import SandboxError

from .files import clear_way

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .guard import Guard

_PLAIN_MODE = 0o1777  # set-user-id and set-group-id bits do not travel


class Stopped(Exception):  # noqa: N818  (an order, not an error)
    """Somebody wants no more of this copy."""


class Valve:
    """The writing end of a stream, until *stop* is set: then the writer gets `Stopped`."""

    def __init__(self, file: IO[bytes], stop: Event) -> None:
        self._file = file
        self._stop = stop

    def write(self, data: bytes) -> int:
        """Write *data* if that is still wanted."""
        if self._stop.is_set():
            raise Stopped
        return self._file.write(data)


def _nothing(_: str) -> bool:
    return False


def pack(
    source: str,
    stream: IO[bytes] | Valve,
    *,
    root: str = "root",
    leave_out: Callable[[str], bool] = _nothing,
) -> list[str]:
    """Write the file or tree *source* to *stream* as an archive whose one root is called *root*.

    Sockets, pipes and devices are left out, since they have no content to copy, and returned. What *leave_out*, asked
    with a path below *source*, says is left out as well; of a file with several links, the first that is not brings
    the content.
    """
    left_out = []
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
        for path, name in _walk(source, root, leave_out):
            member = tar.gettarinfo(path, name)
            if member is None or not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
                left_out.append(name)
            elif member.isreg():
                with open(path, "rb") as file:
                    tar.addfile(member, file)
            else:
                tar.addfile(member)
    return left_out


def _walk(source: str, root: str, leave_out: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    stack = [(source, root)]
    while stack:
        path, name = stack.pop()
        if name != root and leave_out(name[len(root) + 1 :]):
            continue
        yield path, name
        if stat.S_ISDIR(os.lstat(path).st_mode):
            stack.extend((f"{path}/{entry}", f"{name}/{entry}") for entry in sorted(os.listdir(path), reverse=True))


def unpack(stream: BinaryIO, target: str, guard: Guard | None = None) -> None:
    """Extract the archive *stream*, the root of which becomes *target*, whatever its name was.

    What is in the way of a member is replaced, but a folder that is there is kept as it is. Nothing is written
    outside *target*: not by a name, nor through a link, whether the archive brought it or it was there. Devices and
    pipes are not made, owners are not kept. *guard* decides what is left out.

    Raises:
        SandboxError: a member would lie outside *target*, or the stream is no archive.
        TransferLimitError: *guard* has had enough.
    """
    made: list[tuple[str, tarfile.TarInfo]] = []
    try:
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            for member in tar:
                if guard is not None and not guard.admits(member):
                    continue
                path = _inside(member.name, target)
                if not member.isdir():
                    _place(tar, member, path, target, guard)
                elif _make_folder(path):
                    made.append((path, member))
    except tarfile.TarError as error:
        raise SandboxError(f"broken archive: {error}") from error
    # only now, inner ones first: a folder may be read-only, and what is put into it changes its time
    for path, member in reversed(made):
        os.chmod(path, member.mode & _PLAIN_MODE)
        os.utime(path, (member.mtime, member.mtime))


def _inside(name: str, target: str) -> str:
    """Return the path of the member *name*, its parents being real folders below *target*."""
    parts = [part for part in name.split("/") if part not in ("", ".")][1:]
    if name.startswith("/") or ".." in name.split("/"):
        raise SandboxError(f"archive member {name!r} lies outside its root")
    path = target
    for part in parts:
        if os.path.islink(path):
            raise SandboxError(f"archive member {name!r} lies behind a link")
        if not os.path.isdir(path):
            os.mkdir(path)
        path = f"{path}/{part}"
    return path


def _make_folder(path: str) -> bool:
    """Make a folder that only we can enter until it is complete; return False if there was one."""
    if os.path.isdir(path) and not os.path.islink(path):
        return False
    clear_way(path)
    os.mkdir(path, 0o700)
    return True


def _place(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str, target: str, guard: Guard | None) -> None:
    if member.issym():
        clear_way(path)
        os.symlink(member.linkname, path)
    elif member.islnk():
        first = _inside(member.linkname, target)
        if guard is not None and not os.path.lexists(first):  # it was left out
            guard.refuse(member, f"a link to {member.linkname!r}, which is not had")
            return
        if not stat.S_ISREG(os.lstat(first).st_mode):
            raise SandboxError(f"archive member {member.name!r} is a link to what is no file")
        clear_way(path)
        os.link(first, path)
    elif member.isreg():
        clear_way(path)
        content = tar.extractfile(member)
        assert content is not None
        with content, open(path, "xb") as file:
            shutil.copyfileobj(content, file)
            os.fchmod(file.fileno(), member.mode & _PLAIN_MODE)
        os.utime(path, (member.mtime, member.mtime))


def copy(source: str, target: str, stop: Event, guard: Guard | None = None) -> None:
    """Copy the file or tree *source* to *target* through an archive; blocks until it is done or *stop* is set."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    reader, writer = os.pipe()
    failures: list[BaseException] = []
    left_out: list[str] = []
    excludes = guard.excludes if guard is not None else _nothing

    def feed() -> None:
        try:
            with open(writer, "wb") as out:
                left_out.extend(pack(source, Valve(out, stop), leave_out=excludes))
        except BrokenPipeError:
            pass  # the other end failed, and says why
        except BaseException as error:  # noqa: BLE001, RUF100  (raised below, in the thread that waits)
            failures.append(error)

    packer = Thread(target=feed, name="agentcompass-pack", daemon=True)
    packer.start()
    try:
        with open(reader, "rb") as stream:
            unpack(stream, target, guard)
            while stream.read(tarfile.RECORDSIZE):  # the padding
                pass
    finally:
        packer.join()
        if failures:
            raise failures[0]
    if guard is not None:
        guard.tell_special(left_out)
