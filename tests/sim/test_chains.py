"""Hundreds of simulated chains: what crashes or is stopped is continued, and comes to what it would have come to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sim.chain import draw_chain, play_chain
from sim.play import seeds
from sim.world import World

CHUNKS = 5


@pytest.mark.seed("RE-02", "RE-03", "RE-04", "RE-05", "RE-06")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_chain_shows_anything_that_must_not_be(chunk):
    """Every invariant holds in each link, nothing is executed or paid twice, nothing is forgotten."""
    for seed in range(chunk, seeds() // 2, CHUNKS):
        play_chain(seed)


def test_chains_meet_everything():
    """Links crash while they take over, are stopped, and continue what stands, what is to be graded and what failed."""
    players = [play_chain(seed) for seed in range(120)]
    worlds = [world for player in players for world in player.worlds]
    later = [world for player in players for world in player.worlds[1:]]
    met = [account for world in later for account in world.watch.accounts.values() if account.executions]

    assert {2, 3, 4} == {len(player.worlds) for player in players}
    assert {True, False} == {world.crashed for world in worlds}
    assert any(
        world.crashed and not player.taken.get(f"run-0.{n}")
        for player in players
        for n, world in enumerate(player.worlds)
        if n
    )
    assert any(account.stands for world in later for account in world.watch.accounts.values())
    assert any(account.retries_before and account.spent for account in met)
    assert {True, False} == {account.graded_only for account in met}


def test_a_chain_without_troubles_comes_to_what_one_run_comes_to():
    """The same values of the same attempts, and the same score."""
    compared = 0
    for seed in range(500):
        chain = draw_chain(seed)
        if chain.links[0].troubles or chain.changed or any(order.max_retries for order in chain.links[0].orders):
            continue
        last = play_chain(seed).worlds[-1]
        alone = World(replace(chain.links[-1])).run()
        for ours, theirs in zip(last.offices, alone.offices, strict=True):
            compared += 1
            if ours.order.strategy == "avg":
                values = [{name: a["metrics"] for name, a in o.store.attempts.items()} for o in (ours, theirs)]
                assert values[0] == values[1], seed
            scores = [o.store.report.headline.score.value for o in (ours, theirs)]
            assert scores[0] == scores[1], seed
    assert compared > 10
