"""Time budgets: who sets one, what stretches it, and how its expiry is told.

The base is the first that is given of: the request, the benchmark's plan, the task, (for a run) the harness. The
phase's own multiplier replaces the common one; the two never multiply, and no multiplier makes a budget.
"""

from __future__ import annotations

from collections.abc import Iterable

from .model.plan import Budget


def resolve(
    candidates: Iterable[tuple[str, float | None]], common_multiplier: float, own_multiplier: float | None
) -> Budget | None:
    """Return the budget from the first of *candidates* (source, seconds) that has seconds, or None for no limit."""
    multiplier = common_multiplier if own_multiplier is None else own_multiplier
    for source, base in candidates:
        if base is not None:
            return Budget(base * multiplier, base, multiplier, source)
    return None


def describe(budget: Budget) -> str:
    """Return the budget in words: its seconds, how they came about, and who set them."""
    stretched = "" if budget.multiplier == 1 else f" = {budget.base:g} s x {budget.multiplier:g}"
    return f"{budget.seconds:g} s{stretched}, set by {budget.source}"
