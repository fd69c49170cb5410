"""Log lines: redacted, to the terminal and to the run's own file, whoever emitted them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import TextIO

from agentcompass.core.redaction import Redactor

OURS = "agentcompass"
_lock = Lock()
_attached: dict[logging.Handler, int] = {}  # with the level that our loggers had before the first
_listening: ContextVar[tuple[logging.Handler, ...]] = ContextVar("agentcompass_log_handlers", default=())


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


class _OfThisRun(logging.Filter):
    """Lets through what is said where *handler* was attached, so that runs at the same time stay apart.

    Of other libraries only warnings pass. What is said elsewhere (in a library's own thread) passes if *foreign*.
    """

    def __init__(self, handler: logging.Handler, foreign: bool) -> None:
        super().__init__()
        self._handler, self._foreign = handler, foreign

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether *record* is to be written."""
        listening = _listening.get()
        if self._handler not in listening and (listening or not self._foreign):
            return False
        ours = record.name == OURS or record.name.startswith(f"{OURS}.")
        return ours or record.levelno >= logging.WARNING


class _LogFile(logging.FileHandler):
    """A log file; when it cannot be written, one line says so, and the run goes on."""

    _complained = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  (the library's name)
        """Complain once."""
        if not self._complained:
            self._complained = True
            print(f"warning: {self.baseFilename} could not be written: {sys.exc_info()[1]}", file=sys.stderr)  # noqa: T201


def console(level: str, redactor: Redactor, stream: TextIO | None = None) -> logging.Handler:
    """Return a handler for the terminal (stderr)."""
    return _prepared(logging.StreamHandler(stream or sys.stderr), level, redactor, foreign=True)


def _prepared(handler: logging.Handler, level: str, redactor: Redactor, foreign: bool) -> logging.Handler:
    handler.setLevel(level)
    handler.setFormatter(LineFormatter(redactor))
    handler.addFilter(_OfThisRun(handler, foreign))
    return handler


@contextmanager
def attached(handler: logging.Handler) -> Iterator[None]:
    """Have *handler* get what is said while the block runs, in it and in all that it starts."""
    root, ours = logging.getLogger(), logging.getLogger(OURS)
    with _lock:
        _attached[handler] = next(iter(_attached.values()), ours.level)
        ours.setLevel(min(each.level for each in _attached))
        root.addHandler(handler)
    token = _listening.set((*_listening.get(), handler))
    try:
        yield
    finally:
        _listening.reset(token)
        with _lock:
            root.removeHandler(handler)
            before = _attached.pop(handler)
            ours.setLevel(min((each.level for each in _attached), default=before))
        with suppress(OSError):  # the last lines of a file that cannot be written: it has complained
            handler.close()


@contextmanager
def run_log(run_dir: Path, level: str, redactor: Redactor) -> Iterator[Path]:
    """Write what this run says to ``logs/YYYYMMDD_HHMMSS.log``, with ``run.log`` a link to the newest."""
    folder = run_dir / "logs"
    folder.mkdir(exist_ok=True)
    path, moment = folder, datetime.now().astimezone()
    while path.exists():
        path = folder / f"{moment:%Y%m%d_%H%M%S}.log"
        moment += timedelta(seconds=1)
    handler = _prepared(_LogFile(path, encoding="utf-8"), level, redactor, foreign=False)
    link = run_dir / "run.log"
    link.unlink(missing_ok=True)
    link.symlink_to(path.relative_to(run_dir))
    with attached(handler):
        yield path
