"""Files and trees into a container and out of it, through the engine's archives."""

from __future__ import annotations

import io
import os
import posixpath
import tarfile
import time
from contextlib import ExitStack, contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, cast

from docker.utils import decode_json_header  # type: ignore[import-untyped]
from requests.exceptions import RequestException

from agentcompass.core.errors import SandboxError

from .archive import Stopped, Valve, unpack
from .docker_client import engine_errors

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import BinaryIO

    from .guard import Guard

_CHUNK = 256 * 1024
_AS_IT_IS = {"Accept-Encoding": "identity"}
# Go's os.FileMode, in which the engine tells of a path
_GO_FOLDER, _GO_LINK = 1 << 31, 1 << 27
_GO_TYPE = _GO_FOLDER | _GO_LINK | 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19


class Files:
    """The files of one container; paths are absolute, methods block.

    The engine sees the container's root and its volumes, not what is mounted in memory (/proc, /dev/shm, a tmpfs).
    """

    def __init__(self, api: Any, container: str, owner: tuple[int, int]) -> None:
        self._api = api
        self._container = container
        self._owner = owner

    def write(self, path: str, data: bytes, mode: int) -> None:
        """Replace *path* by a file."""
        member = tarfile.TarInfo(_name(path))
        member.size, member.mode, member.mtime = len(data), mode, int(time.time())
        member.uid, member.gid = self._owner
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
            tar.addfile(member, io.BytesIO(data))
        with engine_errors(f"write {path}"):
            self._api.put_archive(self._container, "/", archive.getvalue())

    def read(self, path: str, limit: int) -> bytes | None:
        """Return the content of the regular file *path*, or of the one that it links to; None if there is none.

        Raises:
            ValueError: it is larger than *limit* bytes.
        """
        with engine_errors(f"read {path}"), self._archive(path) as found:
            if found is None or found.facts["mode"] & _GO_TYPE:
                return None
            if found.facts["size"] > limit:
                raise ValueError(f"{path} is larger than {limit} bytes")
            return _content(found, path, limit)

    def upload(self, source: str, target: str, stop: Event) -> None:
        """Lay the file or tree *source* of this machine over *target*; folders that are there stay as they are."""
        if not os.path.lexists(source):
            raise FileNotFoundError(f"there is no {source}")
        origin = os.path.realpath(source)
        there = self._folders(origin, target)
        reader, writer = os.pipe()
        failures: list[BaseException] = []

        def pack() -> None:
            try:
                self._pack(origin, target, there, writer, stop)
            except BrokenPipeError:
                pass  # the engine wants no more, and says why
            except OSError as error:
                failures.append(SandboxError(f"cannot copy {source}: {error}"))
            except BaseException as error:  # noqa: BLE001, RUF100  (raised below, in the thread that waits)
                failures.append(error)

        packer = Thread(target=pack, name="agentcompass-pack", daemon=True)
        packer.start()
        try:
            with engine_errors(f"copy {source} to {target}"), open(reader, "rb", buffering=0) as stream:
                self._api.put_archive(self._container, "/", iter(lambda: stream.read(_CHUNK), b""))
        finally:
            packer.join()
            if failures:
                raise failures[0]

    def download(self, source: str, target: str, guard: Guard, stop: Event) -> None:
        """Copy *source*, or what it links to, to *target* on this machine."""
        with engine_errors(f"copy {source} to {target}"), self._archive(source, stop) as found:
            if found is not None:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                unpack(cast("BinaryIO", found), target, guard)
                return
        raise FileNotFoundError(f"there is no {source}")

    def exists(self, path: str) -> bool:
        """Tell whether there is anything at *path*, if only a link that leads nowhere."""
        return self._stat(path) is not None

    @contextmanager
    def _archive(self, path: str, stop: Event | None = None) -> Iterator[_Incoming | None]:
        """Open the archive of *path*, or of what it links to; None if there is nothing."""
        found = self._get(path, stop or Event())
        if found is not None and found.facts["mode"] & _GO_LINK:
            found.close()
            leads = found.facts["linkTarget"]
            found = self._get(leads, stop or Event()) if leads else None
        try:
            yield found
        finally:
            if found is not None:
                found.close()

    def _get(self, path: str, stop: Event) -> _Incoming | None:
        """Ask for the archive of *path* itself; the client library's own method has no way to end it early."""
        response = self._api.get(
            self._url(), params={"path": path}, stream=True, timeout=self._api.timeout, headers=_AS_IT_IS
        )
        with ExitStack() as unless_returned:
            unless_returned.callback(response.close)
            facts = self._told(response)
            if facts is None:
                return None
            unless_returned.pop_all()
            return _Incoming(response, facts, stop)

    def _stat(self, path: str) -> Mapping[str, Any] | None:
        """Return what the engine tells of *path* itself; None if there is nothing."""
        with engine_errors(f"look at {path}"):
            return self._told(self._api.head(self._url(), params={"path": path}, timeout=self._api.timeout))

    def _told(self, response: Any) -> Mapping[str, Any] | None:
        header = response.headers.get("x-docker-container-path-stat")
        if header and response.ok:
            return cast("Mapping[str, Any]", decode_json_header(header))
        # nothing there is 404, or 500 if it is behind a file or a circle of links; or it is the container that is gone
        self._api.inspect_container(self._container)
        return None

    def _url(self) -> str:
        return str(self._api._url("/containers/{0}/archive", self._container))

    def _folders(self, source: str, target: str) -> set[str]:
        """Return those folders of the tree *source* that are at *target* already."""
        found: set[str] = set()
        queue = [(source, target)]
        while queue:
            folder, place = queue.pop()
            if os.path.islink(folder) or not os.path.isdir(folder):
                continue
            facts = self._stat(place)
            if facts is not None and facts["mode"] & _GO_FOLDER:
                found.add(_name(place))
                queue += [(f"{folder}/{name}", posixpath.join(place, name)) for name in os.listdir(folder)]
        return found

    def _admit(self, member: tarfile.TarInfo | None, there: Collection[str]) -> tarfile.TarInfo | None:
        """Return *member* as it is to be there; None for what has no content, and for folders that are there."""
        if (
            member is None
            or not (member.isreg() or member.isdir() or member.issym() or member.islnk())
            or member.name in there
        ):
            return None
        member.uid, member.gid = self._owner
        member.uname = member.gname = ""
        return member

    def _pack(self, source: str, target: str, there: Collection[str], writer: int, stop: Event) -> None:
        """Write the tree *source* to *writer*, under the name of *target*."""
        with (
            open(writer, "wb") as out,
            tarfile.open(fileobj=Valve(out, stop), mode="w|", format=tarfile.PAX_FORMAT) as tar,  # type: ignore[call-overload]
        ):
            for path, name in _walk(source, _name(target)):
                member = self._admit(tar.gettarinfo(path, name), there)
                if member is None:
                    continue
                if member.isreg():
                    with open(path, "rb") as file:
                        tar.addfile(member, file)
                else:
                    tar.addfile(member)


class _Incoming:
    """An archive from the engine as a file to read from, until *stop* is set; *facts* are of what it is made of."""

    def __init__(self, response: Any, facts: Mapping[str, Any], stop: Event) -> None:
        self.facts = facts
        self._response = response
        self._parts: Iterator[bytes] = response.iter_content(_CHUNK)
        self._stop = stop
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Return up to *size* bytes, fewer at the end only."""
        parts, missing = [], size
        while missing:
            if self._stop.is_set():
                raise Stopped
            if not self._rest:
                self._rest = next(self._parts, b"")
                if not self._rest:
                    break
            parts.append(self._rest[:missing])
            self._rest = self._rest[missing:]
            missing -= len(parts[-1])
        return b"".join(parts)

    def close(self) -> None:
        """Give the connection back, which can be used again if little was left to read."""
        with suppress(RequestException):
            next(self._parts, b"")
        self._response.close()


def _content(archive: _Incoming, path: str, limit: int) -> bytes | None:
    """Return the content of the one file in *archive*."""
    with tarfile.open(fileobj=cast("BinaryIO", archive), mode="r|") as tar:
        member = tar.next()
        if member is None or not member.isreg():
            return None
        if member.size > limit:  # it has grown
            raise ValueError(f"{path} is larger than {limit} bytes")
        content = tar.extractfile(member)
        assert content is not None
        return content.read()


def _walk(source: str, root: str) -> Iterator[tuple[str, str]]:
    stack = [(source, root)]
    while stack:
        path, name = stack.pop()
        yield path, name
        if os.path.isdir(path) and not os.path.islink(path):
            entries = sorted(os.listdir(path), reverse=True)
            stack.extend((f"{path}/{entry}", f"{name}/{entry}" if name else entry) for entry in entries)


def _name(path: str) -> str:
    """Return the name of *path* in an archive that is extracted at the root."""
    return posixpath.normpath(path).lstrip("/")
