"""Single files and whole trees on this machine: written atomically, read warily, removed whatever their modes."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from agentcompass.core.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO}


def resolved(path: str) -> str:
    """Return where *path* leads to in the end."""
    return os.path.realpath(path)


def place(path: str) -> str:
    """Return where *path* itself lies: like `resolved`, but a link at its end is not followed."""
    parent, name = os.path.split(path)
    return resolved(path) if name in {"", ".", ".."} else os.path.join(resolved(parent), name)


def exists(path: str) -> bool:
    """Tell whether *path* leads to something."""
    return os.path.exists(path)


def is_folder(path: str) -> bool:
    """Tell whether *path* leads to a folder."""
    return os.path.isdir(path)


@contextmanager
def sandbox_errors(doing: str) -> Iterator[None]:
    """Turn an `OSError` into a `SandboxError` that says what was being done."""
    try:
        yield
    except OSError as error:
        raise SandboxError(f"cannot {doing}: {error}") from error


def write_file(path: str, data: bytes, mode: int) -> None:
    """Put *data* at *path* in one step: a reader sees the old file or the new one, a link is not followed."""
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    draft = f"{folder}/.agentcompass-{secrets.token_hex(8)}"
    try:
        with open(draft, "xb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise


def read_file(path: str, limit: int) -> bytes | None:
    """Return the content of the regular file *path*, or None; never wait for a pipe or touch a device.

    Raises:
        ValueError: it is larger than *limit* bytes.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        # it may have become a pipe since
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            data = file.read(limit + 1)  # by count, not by size: files in /proc say 0, others grow
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise
    if len(data) > limit:
        raise ValueError(f"{path} is larger than {limit} bytes")
    return data


def clear_way(path: str) -> None:
    """Remove *path*, whatever it is, if it is there."""
    try:
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError:  # a folder: Linux and macOS say so differently
        if os.path.islink(path) or not os.path.isdir(path):
            raise
        remove_tree(path)


def remove_tree(path: str) -> None:
    """Remove the folder *path*, though it hold read-only folders or be nested deeper than Python can recurse.

    Raises:
        OSError: something in it cannot be removed.
    """
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        if not os.path.lexists(path):
            return
    except (OSError, RecursionError):
        pass
    else:
        return
    subprocess.run(["chmod", "-R", "u+rwx", path], capture_output=True, check=False)
    removed = subprocess.run(["rm", "-rf", "--", path], capture_output=True, check=False)
    if os.path.lexists(path):
        raise OSError(removed.stderr.decode(errors="replace").strip().partition("\n")[0] or f"{path} is still there")


def remove_skeleton(path: str, folders: Sequence[str]) -> bool:
    """Remove *path* if it holds nothing but empty *folders*; return whether it is gone."""
    with suppress(OSError):
        for folder in folders:
            with suppress(FileNotFoundError):
                os.rmdir(f"{path}/{folder}")
        os.rmdir(path)
    return not os.path.lexists(path)
