"""A disk that fails, stalls or is watched: what an adapter calls `os`, with some of its functions replaced."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any


class Disk:
    """The module `os`, but for what `replace_with` has been given; *before* is called ahead of every call."""

    def __init__(self) -> None:
        self.before: Callable[[str], None] = lambda name: None
        self._instead: dict[str, Callable[..., Any]] = {}

    def replace_with(self, name: str, function: Callable[..., Any]) -> None:
        """Have the adapter call *function* for ``os.<name>``."""
        self._instead[name] = function

    def fail(self, name: str, error: BaseException) -> None:
        """Have ``os.<name>`` raise *error*."""

        def failing(*args: Any, **kwargs: Any) -> Any:
            raise error

        self.replace_with(name, failing)

    def heal(self) -> None:
        """Take every replacement back."""
        self._instead.clear()

    def __getattr__(self, name: str) -> Any:
        real = self._instead.get(name) or getattr(os, name)
        if not callable(real) or isinstance(real, type):
            return real

        def call(*args: Any, **kwargs: Any) -> Any:
            self.before(name)
            return real(*args, **kwargs)

        return call
