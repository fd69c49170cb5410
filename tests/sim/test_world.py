"""Thousands of simulated runs, each under its own troubles, and each looked at step by step."""

from __future__ import annotations

import pytest
from sim.play import SeedFailedError, play, play_seed, seeds
from sim.settings import TROUBLES, draw, settings_of
from sim.watch import Violation
from sim.world import World

CHUNKS = 10


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_seed_shows_anything_that_must_not_be(chunk):
    """Whatever is drawn, every invariant holds at every step, and the run ends with its records whole."""
    for seed in range(chunk, seeds(), CHUNKS):
        play_seed(seed)


def test_the_same_seed_tells_the_same_story():
    """A run is a function of its seed."""
    first, second = play_seed(3), play_seed(3)

    assert repr(first.watch.trace) == repr(second.watch.trace)
    assert first.offices[0].store.events == second.offices[0].store.events


def test_settings_survive_a_tape():
    """What is read from a tape is what was drawn."""
    for seed in range(50):
        assert draw(seed) == settings_of(draw(seed).document())


def test_the_swarm_has_every_kind_of_run():
    """A few hundred seeds are enough to meet each trouble, each way to end, and each way to work."""
    drawn = [draw(seed) for seed in range(200)]
    orders = [order for settings in drawn for order in settings.orders]

    assert set(TROUBLES) == {name for settings in drawn for name, rate in settings.troubles.items() if rate}
    assert {1, 2, 3} == {len(settings.orders) for settings in drawn}
    assert {"none", "reuse", "fresh"} == {order.mode for order in orders}
    assert {("avg", False), ("avg", True), ("pass", False), ("pass", True)} == {
        (order.strategy, order.speculative) for order in orders
    }
    for moment in ("deadline", "interrupt", "stop_with_opening", "crash_at"):
        assert {True, False} == {getattr(settings, moment) is None for settings in drawn}, moment


def test_simulated_runs_end_in_every_way():
    """Completed, failed, interrupted, expired, forced and crashed runs all happen."""
    worlds = [play_seed(seed) for seed in range(100)]

    states = {outcome.state.value for world in worlds for outcome in world.outcomes.values()}
    assert {"completed", "failed", "cancelled", "timed_out"} == states
    assert any(world.crashed for world in worlds)
    assert any(world.watch.forced for world in worlds)


def test_a_failure_tells_its_seed_and_the_last_steps(monkeypatch):
    """Whoever reads a failure can play it again."""

    def run(world: World) -> World:
        world.watch.trace.append((1.5, "somebody", "DoesSomething"))
        world.watch.require(False, "nothing is wrong", "except this")
        return world

    monkeypatch.setattr(World, "run", run)

    with pytest.raises(SeedFailedError) as caught:
        play(draw(7))
    assert "seed 7: Violation: nothing is wrong: except this\n      1.500000 somebody DoesSomething" == str(
        caught.value
    )
    assert isinstance(caught.value.__cause__, Violation)
