"""Copies what a Terminal-Bench 1 image is made of, without the compose file that is not meant for us."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace

from .sandbox import digest
from .values import Format, HarborTask

_COMPOSE = ("docker-compose.yaml", "docker-compose.yml")


def staged(task: HarborTask, data_dir: str) -> HarborTask:
    """Return *task* with a folder to build from in which a Dockerfile is all there is.

    Its compose file names one service, called ``client``, and variables that only its own runner sets.
    """
    if task.format is not Format.TERMINAL_BENCH or not any(task.has(name) for name in _COMPOSE):
        return task
    homes = os.path.join(os.path.abspath(data_dir), "harbor", "terminal-bench")
    home = os.path.join(homes, digest([task.folder])[:24])
    if not os.path.isdir(home):
        _copy(task.folder, home, homes)
    return replace(task, build=home)


def _copy(source: str, home: str, homes: str) -> None:
    os.makedirs(homes, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".copy-", dir=homes) as staging:
        copy = os.path.join(staging, "context")
        shutil.copytree(source, copy, symlinks=True, ignore=shutil.ignore_patterns(*_COMPOSE))
        try:
            os.rename(copy, home)
        except OSError:
            if not os.path.isdir(home):  # else another process was faster
                raise
