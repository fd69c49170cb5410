"""Plays seeds, and tells a failure so that it can be told again."""

from __future__ import annotations

import os

from agentcompass.core.runtime.effects import Cancelled

from .accounts import check_crash, check_run
from .settings import Settings, draw
from .watch import Watch
from .world import World

DEFAULT_SEEDS = 500
LINES = 25  #: how much of the trace a failure shows


class SeedFailedError(AssertionError):
    """A seed shows something that must not be."""


def seeds() -> int:
    """Return how many seeds are to be played."""
    return int(os.environ.get("AGENTCOMPASS_SIM_SEEDS", DEFAULT_SEEDS))


def play(settings: Settings) -> World:
    """Play *settings* in the world, and check it all.

    Raises:
        SeedFailedError: something is wrong; it names the seed, what is wrong, and what happened last.
    """
    world = World(settings)
    try:
        world.run()
        for office in world.offices:
            if world.crashed:
                check_crash(world.watch, office)
            else:
                check_run(world.watch, office, world.outcomes.get(office.index), world.reason)
    except (Exception, Cancelled) as exc:
        raise failed(settings, world.watch, exc) from exc
    return world


def failed(settings: Settings, watch: Watch, exc: BaseException) -> SeedFailedError:
    """Return the failure of a seed, told with the end of its trace."""
    last = "\n".join(f"  {now:12.6f} {who} {what}" for now, who, what in watch.trace[-LINES:])
    return SeedFailedError(f"seed {settings.seed}: {type(exc).__name__}: {exc}\n{last}")


def play_seed(seed: int) -> World:
    """Play what *seed* draws."""
    return play(draw(seed))
