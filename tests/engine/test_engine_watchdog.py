"""A component that blocks the event loop is named."""

from __future__ import annotations

import time

import pytest
from support.toys import ToyHarness

from agentcompass.adapters.engine import watchdog


@pytest.mark.seed("RR-06")
def test_what_blocks_the_loop_is_named_with_its_place(toys, monkeypatch):
    """One warning on the terminal and in the run's log says where in the code nothing moves."""
    patience = 0.05
    original = watchdog.watched
    monkeypatch.setattr("agentcompass.adapters.engine.run.watched", lambda: original(patience))

    async def blocking(self, session, prepared, *, timeout):
        time.sleep(patience * 6)

    monkeypatch.setattr(ToyHarness, "execute_task", blocking)
    ran = toys.run({"a": {}}, "--log-level", "WARNING", quiet=False)

    log = (ran.run_dir / "run.log").read_text("utf-8")
    assert 0 == ran.status
    assert "nothing moves for 0.05 s, because of:" in ran.err
    assert "time.sleep(patience * 6)" in log


def test_a_run_that_moves_is_not_warned_about(toys, monkeypatch):
    """Waiting is not blocking."""
    original = watchdog.watched
    monkeypatch.setattr("agentcompass.adapters.engine.run.watched", lambda: original(5.0))

    assert "nothing moves" not in toys.run({"a": {"run": "crowd:2"}}, quiet=False).err
