"""The connection to a Docker engine: found as the docker command finds it, its failures told in one line."""

from __future__ import annotations

import os
import socket
import weakref
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, Any

import docker  # type: ignore[import-untyped]
from docker.context import ContextAPI  # type: ignore[import-untyped]
from docker.errors import APIError, DockerException, NotFound  # type: ignore[import-untyped]
from requests.exceptions import RequestException

from agentcompass.core.errors import SandboxError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

_ANSWER_SECONDS = 60  # for the first answer
_CALL_SECONDS = 600  # between two signs of life in one call; a busy engine needs minutes to remove a container
_CONNECTIONS = 64
_CHURN = 8  # containers made and removed at once: beyond that an engine only takes longer for each
_DEFAULT_HOST = "unix:///var/run/docker.sock"


class Engine:
    """An engine, connected to at the first use; its methods block.

    It is the one of ``DOCKER_HOST`` (a Podman socket too), else of ``DOCKER_CONTEXT`` or the current context, else
    the one at the usual socket.
    """

    def __init__(self) -> None:
        self.churn = BoundedSemaphore(_CHURN)
        self._lock = Lock()
        self._api: Any = None

    @property
    def api(self) -> Any:
        """The client of the engine.

        Raises:
            UsageError: no engine answers.
        """
        with self._lock:
            if self._api is None:
                self._api = _connect()
                weakref.finalize(self, self._api.close)  # providers are not closed, only forgotten
            return self._api


def host() -> str:
    """Return where the engine is looked for."""
    if named := os.environ.get("DOCKER_HOST"):
        return named
    try:
        return str(ContextAPI.kwargs_from_context().get("base_url") or _DEFAULT_HOST)
    except Exception:  # noqa: BLE001, RUF100  (whatever is wrong with a context is reported by connecting)
        return _DEFAULT_HOST


def _connect() -> Any:
    try:
        _knock(host())
        client = docker.DockerClient.from_env(timeout=_ANSWER_SECONDS, max_pool_size=_CONNECTIONS, version="auto")
    except Exception as error:
        raise _unreachable(error) from error
    client.api.timeout = _CALL_SECONDS
    return client.api


def _knock(where: str) -> None:
    """Try the socket *where*: the client library loses an open file when it is refused."""
    if where.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as knocking:
            knocking.settimeout(_ANSWER_SECONDS)
            knocking.connect(where.removeprefix("unix://"))


def _unreachable(error: BaseException) -> UsageError:
    where = host()
    causes = list(_causes(error))
    if any(isinstance(cause, PermissionError) for cause in causes):
        return UsageError(
            "docker", f"no permission to use {where}", "join the group 'docker', or name another engine by DOCKER_HOST"
        )
    if any(isinstance(cause, FileNotFoundError | ConnectionRefusedError) for cause in causes):
        return UsageError(
            "docker", f"no engine answers at {where}", "start the Docker daemon, or name another engine by DOCKER_HOST"
        )
    return UsageError("docker", f"{where}: {one_line(causes[-1])}", "mend DOCKER_HOST or the docker context")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield *error* and what led to it; libraries hide the reason in arguments as often as in causes."""
    seen: list[BaseException] = []
    queue: list[object] = [error]
    while queue:
        item = queue.pop(0)
        if isinstance(item, BaseException) and item not in seen:
            seen.append(item)
            queue += [*item.args, getattr(item, "reason", None), item.__cause__, item.__context__]
            yield item


def one_line(error: BaseException) -> str:
    """Return what the engine said, without the request that it answered."""
    said = error.explanation if isinstance(error, APIError) and error.explanation else error
    return " ".join(str(said).split()) or type(error).__name__


@contextmanager
def engine_errors(doing: str) -> Iterator[None]:
    """Turn what the engine and the way to it raise into a `SandboxError` that says what was being done."""
    try:
        yield
    except (DockerException, RequestException, OSError) as error:
        raise SandboxError(f"docker cannot {doing}: {one_line(error)}") from error


def is_gone(error: BaseException) -> bool:
    """Tell whether *error* says that the container is not there any more, or will not be in a moment."""
    if isinstance(error, NotFound):
        return True
    return isinstance(error, APIError) and error.status_code == 409 and "already in progress" in str(error.explanation)
