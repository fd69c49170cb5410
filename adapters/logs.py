"""Log lines: redacted, to the terminal and to the run's own file, whoever emitted them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from pathlib import Path
from typing import TextIO

from agentcompass.core.redaction import Redactor

OURS = "agentcompass"
current_run: ContextVar[str] = ContextVar("agentcompass_run", default="")


class LineFormatter(logging.Formatter):
    """``HH:MM:SS LEVEL    logger-name                          message``, without secrets."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__(datefmt="%H:%M:%S")
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with the traceback below it if there is one."""
        name = record.name.removeprefix(f"{OURS}.")
        line = f"{self.formatTime(record, self.datefmt)} {record.levelname:<8} {name:<36} {record.getMessage()}"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return self._redactor.text(line).encode("utf-8", "backslashreplace").decode("utf-8")


class _OfRun(logging.Filter):
    """Lets through what one run says, and of other libraries only warnings."""

    def __init__(self, run: str | None) -> None:
        super().__init__()
        self._run = run

    def filter(self, record: logging.LogRecord) -> bool:
        if self._run is not None and current_run.get() != self._run:
            return False
        ours = record.name == OURS or record.name.startswith(f"{OURS}.")
        return ours or record.levelno >= logging.WARNING


def console(level: str, redactor: Redactor, stream: TextIO | None = None) -> logging.Handler:
    """Return a handler for the terminal (stderr)."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setLevel(level)
    handler.setFormatter(LineFormatter(redactor))
    handler.addFilter(_OfRun(None))
    return handler


@contextmanager
def attached(handler: logging.Handler) -> Iterator[None]:
    """Have *handler* get every record while the block runs."""
    root, ours = logging.getLogger(), logging.getLogger(OURS)
    before = ours.level
    if ours.level == logging.NOTSET or handler.level < ours.level:
        ours.setLevel(handler.level)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
        ours.setLevel(before)


@contextmanager
def run_log(run_dir: Path, level: str, redactor: Redactor) -> Iterator[Path]:
    """Write what this run says to ``logs/YYYYMMDD_HHMMSS.log``, with ``run.log`` a link to the newest."""
    folder = run_dir / "logs"
    folder.mkdir(exist_ok=True)
    path, moment = folder, datetime.now().astimezone()
    while path.exists():
        path = folder / f"{moment:%Y%m%d_%H%M%S}.log"
        moment += timedelta(seconds=1)
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setLevel(level)
    handler.setFormatter(LineFormatter(redactor))
    handler.addFilter(_OfRun(str(run_dir)))
    link = run_dir / "run.log"
    link.unlink(missing_ok=True)
    link.symlink_to(path.relative_to(run_dir))
    token = current_run.set(str(run_dir))
    try:
        with attached(handler):
            yield path
    finally:
        current_run.reset(token)
