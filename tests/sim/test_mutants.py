"""The simulator notices planted bugs, and nothing where there is none."""

from __future__ import annotations

import sys

import pytest
from sim.mutants import AFRESH, MUTANTS, Mutant, afresh, caught

SEEDS = 600


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_a_planted_bug_is_caught(mutant):
    """A few hundred seeds are enough to notice the bug."""
    found = caught(mutant, SEEDS)

    assert found is not None, f"{mutant.module}: {mutant.name}: not noticed in {SEEDS} seeds"


@pytest.mark.parametrize("shown", ["world", "engine", "chain"])
def test_without_a_bug_nothing_is_caught(shown):
    """A copy that nothing is planted in passes, so that what is caught is the bug."""
    harmless = Mutant(
        "harmless", "agentcompass.core.runtime.ledger", (("class Ledger:", "class Ledger:  # a copy"),), shown
    )

    assert None is caught(harmless, 40)


def test_a_bug_is_planted_in_a_copy():
    """While a bug is planted its module is another one, and afterwards every module is the old one."""
    mutant = next(mutant for mutant in MUTANTS if mutant.module == "agentcompass.core.retry")
    before = {name: module for name, module in sys.modules.items() if name.startswith(AFRESH)}

    with afresh(mutant) as (play, _, _):
        inside = sys.modules[mutant.module]
        assert inside is not before[mutant.module]
        assert play is sys.modules["sim.play"]

    assert before == {name: module for name, module in sys.modules.items() if name.startswith(AFRESH)}
    assert sys.modules["agentcompass.core"].retry is before[mutant.module]
