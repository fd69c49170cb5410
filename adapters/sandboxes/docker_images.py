"""Images: those that have a name, and those that a folder's Dockerfile makes, once for each content."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
from collections import deque
from concurrent.futures import Future
from functools import partial
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from docker.errors import APIError, ImageNotFound, NotFound  # type: ignore[import-untyped]
from docker.utils.build import exclude_paths  # type: ignore[import-untyped]

from agentcompass.core.errors import SandboxError, UsageError

from .docker_client import engine_errors, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .docker_client import Engine

DOCKERFILE = "Dockerfile"
_LAST_LINES = 15  # of a failed build, that are shown
_REPOSITORY = "agentcompass"


class Images:
    """Finds, fetches and builds; what several want at once is done once, and a cancelled caller stops nobody else."""

    def __init__(self, engine: Engine, pull: str, platform: str | None, build_args: Mapping[str, str]) -> None:
        self._engine = engine
        self._pull = pull
        self._platform = platform
        self._build_args = dict(build_args)
        self._lock = Lock()
        self._fetched: set[str] = set()
        self._under_way: dict[str, Future[Any]] = {}

    async def named(self, name: str) -> Mapping[str, Any]:
        """Return what the engine knows of the image *name*, which is fetched if need be."""
        return await self._once(f"image {name}", partial(self._named, name))

    async def built(self, folder: str) -> Mapping[str, Any]:
        """Return the image that the Dockerfile in *folder* makes, built unless there is one of just that content."""
        return await self._once(f"build {folder}", partial(self._built, folder))

    async def _once(self, key: str, work: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        with self._lock:
            future = self._under_way.get(key)
            if future is None:
                future = self._under_way[key] = Future()
                future.set_running_or_notify_cancel()
                Thread(target=self._work, args=(key, future, work), name="agentcompass-image", daemon=True).start()
        return await asyncio.wrap_future(future)

    def _work(self, key: str, future: Future[Any], work: Callable[[], Mapping[str, Any]]) -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001, RUF100  (it is handed over, not swallowed)
            with self._lock:
                del self._under_way[key]
            future.set_exception(error)
        else:
            with self._lock:
                del self._under_way[key]
            future.set_result(result)

    def _named(self, name: str) -> Mapping[str, Any]:
        if (self._pull != "always" or name in self._fetched) and (found := self._find(name)) is not None:
            return found
        if self._pull == "never":
            raise UsageError("image", f"{name!r} is not on the engine", "pull or build it, or set pull to 'missing'")
        self._fetch(name)
        self._fetched.add(name)
        found = self._find(name)
        if found is None:
            raise SandboxError(f"the image {name!r} was pulled, but the engine does not know it")
        return found

    def _find(self, name: str) -> Mapping[str, Any] | None:
        try:
            with engine_errors(f"look for the image {name!r}"):
                found: Mapping[str, Any] = self._engine.api.inspect_image(name)
        except SandboxError as error:
            if isinstance(error.__cause__, ImageNotFound | NotFound):
                return None
            raise
        return found

    def _fetch(self, name: str) -> None:
        repository, tag = _parts(name)
        mend = "pull or build it, or correct its name"
        try:
            self._engine.api.pull(repository, tag=tag, platform=self._platform)
        except NotFound as error:
            raise UsageError("image", f"{name!r} is in no registry that answers: {one_line(error)}", mend) from error
        except APIError as error:
            raise SandboxError(f"the image {name!r} cannot be pulled: {one_line(error)}; {mend}") from error

    def _built(self, folder: str) -> Mapping[str, Any]:
        paths = _context(folder)
        tag = f"{_REPOSITORY}/{_word(folder)}:{self._fingerprint(folder, paths)}"
        found = self._find(tag)
        if found is None:
            self._build(folder, tag)
            found = self._find(tag)
        if found is None:
            raise SandboxError(f"the image of {folder} was built, but the engine does not know {tag}")
        return found

    def _fingerprint(self, folder: str, paths: Iterable[str]) -> str:
        digest = hashlib.sha256(repr((self._platform, sorted(self._build_args.items()))).encode())
        for path in sorted(paths):
            place = os.path.join(folder, path)
            facts = os.lstat(place)
            digest.update(f"{path}\0{facts.st_mode:o}\0".encode(errors="surrogateescape"))
            if stat.S_ISLNK(facts.st_mode):
                digest.update(os.fsencode(os.readlink(place)))
            elif stat.S_ISREG(facts.st_mode):
                with open(place, "rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()[:24]

    def _build(self, folder: str, tag: str) -> None:
        """Build with the engine's own builder, which every engine has."""
        lines: deque[str] = deque(maxlen=_LAST_LINES)
        failure = None
        with engine_errors(f"build {folder}"):
            for event in self._engine.api.build(
                path=folder,
                dockerfile=DOCKERFILE,
                tag=tag,
                buildargs=self._build_args,
                platform=self._platform,
                labels={"agentcompass.built": "1"},
                pull=self._pull == "always",
                rm=True,
                forcerm=True,
                decode=True,
                timeout=None,
            ):
                lines += [line for line in event.get("stream", "").splitlines() if line.strip()]
                failure = event.get("error", failure)
        if failure is not None:
            shown = "\n".join([*lines, str(failure).strip()][-_LAST_LINES:])
            raise SandboxError(f"the image of {folder} cannot be built; its last lines:\n{shown}")


def _context(folder: str) -> set[str]:
    """Return the paths in *folder* that go into a build."""
    if not os.path.isfile(os.path.join(folder, DOCKERFILE)):
        raise UsageError("build", f"there is no {DOCKERFILE} in {folder}", "add one, or name an image")
    try:
        with open(os.path.join(folder, ".dockerignore"), encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except FileNotFoundError:
        lines = []
    patterns = [line for line in lines if line and not line.startswith("#")]
    return set(exclude_paths(os.path.abspath(folder), patterns, dockerfile=DOCKERFILE))


def _parts(name: str) -> tuple[str, str | None]:
    """Return the repository of *name* and its tag; the tag of a digest is the digest."""
    if "@" in name:
        repository, _, digest = name.partition("@")
        return repository, digest
    repository, colon, tag = name.rpartition(":")
    return (repository, tag) if colon and "/" not in tag else (name, "latest")


def _word(folder: str) -> str:
    """Return the name of *folder*, as far as it fits into the name of an image."""
    absolute = os.path.abspath(folder)
    name = os.path.basename(absolute)
    if name in ("environment", "docker", "build"):  # a task's own folder says more
        name = os.path.basename(os.path.dirname(absolute))
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "image"
