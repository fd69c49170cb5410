"""Decides, member by member, what of an archive from a sandbox may come to this machine."""

from __future__ import annotations

import posixpath
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from agentcompass.core.errors import TransferLimitError

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Sequence

    from agentcompass.core.model.environment import TransferLimits

_SPECIAL = "neither a file, a folder nor a link"
_BLOCK = 512  # bytes of a header; contents are filled up to a multiple of it


class Guard:
    """Admits the members of one archive.

    *exclude* are globs of a path below the root, or of a name anywhere in it. With *limits* the copy is distrustful:
    `refused` says, a line for each, what was not safe to have, and more than the limits allow ends it.
    """

    def __init__(self, exclude: Sequence[str] = (), limits: TransferLimits | None = None) -> None:
        self.refused: list[str] = []
        self.files = 0
        self.bytes = 0
        self._exclude = tuple(glob.strip("/") for glob in exclude)
        self._limits = limits
        self._dropped: set[str] = set()

    def admits(self, member: tarfile.TarInfo) -> bool:
        """Tell whether *member* is to be extracted.

        Raises:
            TransferLimitError: it is one too many, or too large.
        """
        below = _path(member).partition("/")[2]
        if self._excluded(below):
            return False
        if self._limits is not None:
            reason = _unsafe(member, below)
            if reason:
                self._drop(below)
                self.refuse(member, reason)
                return False
            self._count(member)
        return True

    def refuse(self, member: tarfile.TarInfo, reason: str) -> None:
        """Note that *member* is left out, and why."""
        path = _path(member)
        self.refused.append(f"{path.partition('/')[2] or path}: {reason}")

    def excludes(self, below: str) -> bool:
        """Tell whether the path *below* the root is excluded by itself; what lies in such a folder is too."""
        name = posixpath.basename(below)
        return any(fnmatchcase(below, glob) or fnmatchcase(name, glob) for glob in self._exclude)

    def tell_special(self, names: Sequence[str]) -> None:
        """Take note of members that were no files, and never came."""
        if self._limits is not None:
            self.refused += [f"{name.partition('/')[2] or name}: {_SPECIAL}" for name in names]

    def _excluded(self, below: str) -> bool:
        if not below:
            return False
        hit = posixpath.dirname(below) in self._dropped or self.excludes(below)
        if hit:
            self._drop(below)
        return hit

    def _drop(self, below: str) -> None:
        if below:  # what lies below it goes with it
            self._dropped.add(below)

    def _count(self, member: tarfile.TarInfo) -> None:
        assert self._limits is not None
        self.files += 1
        self.bytes += _BLOCK + -(-member.size // _BLOCK) * _BLOCK
        if self.files > self._limits.max_files:
            raise TransferLimitError("max_files", f"there are more than {self._limits.max_files} files")
        if self.bytes > self._limits.max_bytes:
            raise TransferLimitError("max_bytes", f"there are more than {self._limits.max_bytes} bytes")


def _path(member: tarfile.TarInfo) -> str:
    return "/".join(part for part in member.name.split("/") if part not in ("", "."))


def _unsafe(member: tarfile.TarInfo, below: str) -> str | None:
    """Say why *member* may not be had; None if it may."""
    if member.name.startswith("/") or ".." in member.name.split("/"):
        return "its name leads out of the tree"
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        return _SPECIAL
    if member.issym():
        leads = posixpath.normpath(posixpath.join(posixpath.dirname(below), member.linkname))
        if member.linkname.startswith("/") or leads.split("/")[0] == ".." or not below:
            return f"a link out of the tree, to {member.linkname!r}"
    return None
