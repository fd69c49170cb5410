"""What has shown a bug once is played for ever."""

from __future__ import annotations

import pytest
from sim.agreement import agree
from sim.play import play
from sim.settings import draw
from sim.tapes import Tape, all_tapes, read, record, uncrashed

TAPES = all_tapes()


@pytest.mark.parametrize("tape", TAPES, ids=lambda tape: tape.name)
def test_a_tape_plays_without_a_fault(tape):
    """What the tape once showed does not come back, in the world or in the engine."""
    play(tape.settings)

    agree(uncrashed(tape.settings))


def test_there_are_tapes_and_each_tells_its_story():
    """A tape says what it is kept for."""
    assert [] != TAPES
    assert [] == [tape.name for tape in TAPES if len(tape.story.split()) < 5]


def test_a_tape_is_read_as_it_was_recorded(tmp_path):
    """A seed can be put on tape."""
    tape = Tape("an-example", "only to see that it works", draw(11))

    assert tape == read(record(tape, tmp_path))
