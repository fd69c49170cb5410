"""The toys."""

from __future__ import annotations

from support.toys import toys

__all__ = ["toys"]
