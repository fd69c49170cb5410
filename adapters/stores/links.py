"""Files of one run in another without a second copy: hard links, where the disk has them."""

from __future__ import annotations

import errno
import os
import shutil
import stat

_NO_LINKS = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES}


def link_file(source: str, target: str) -> None:
    """Make *target* the same file as *source*, or a copy of it; one that is there stays."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        return
    except OSError as exc:
        if exc.errno not in _NO_LINKS:
            raise
        draft = f"{target}.part"
        shutil.copy2(source, draft, follow_symlinks=False)
        os.replace(draft, target)


def link_tree(source: str, target: str, last: str = "") -> None:
    """Make the folder *target*, which is there, hold what *source* holds; drafts of unfinished writes stay behind.

    The entry *last* of the folder comes when all others are there.
    """
    for entry in sorted(os.scandir(source), key=lambda entry: entry.name == last):
        if entry.name.startswith(".") and entry.name.endswith(".tmp"):
            continue
        place = f"{target}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            os.makedirs(place, exist_ok=True)
            link_tree(entry.path, place)
            os.chmod(place, stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode))  # last: it may be read-only
        else:
            link_file(entry.path, place)
