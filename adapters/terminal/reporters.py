"""Which observers a terminal gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from agentcompass.ports.reporter import Reporter


def terminal_reporters(mode: str, stream: TextIO) -> Sequence[Reporter]:
    """Return the observers for *mode*: a live view only on a terminal, lines for ``plain``, nothing for ``none``."""
    if mode == "plain":
        from .plain import PlainReporter

        return (PlainReporter(stream),)
    if mode == "auto" and stream.isatty():
        from .live import LiveReporter

        return (LiveReporter(stream),)
    return ()
