"""Several requests from Python, from a document or a file, more than one orchestration at a time."""

from __future__ import annotations

import asyncio

import pytest

from agentcompass import UsageError, async_launch, launch


def _document(*names, **script):
    return {
        "defaults": {"harness": {"id": "toy"}, "environment": {"id": "toy"}},
        "requests": [{"name": name, "benchmark": {"id": "toy", "tasks": {name: script}}} for name in names],
    }


def _quiet(tmp_path):
    return {"results_dir": str(tmp_path / "results"), "progress": "none", "log_level": "ERROR"}


@pytest.mark.seed("SD-01")
def test_a_document_is_launched(toys, tmp_path):
    """Each request has its result."""
    result = launch(_document("a", "b"), runtime=_quiet(tmp_path), run_id="r")

    assert "completed" == result.status
    assert [("a", 1.0), ("b", 1.0)] == [(outcome.name, outcome.result.score) for outcome in result.outcomes]
    assert (tmp_path / "results" / "a" / "r" / "summary.md").exists()


@pytest.mark.seed("SD-01")
def test_two_orchestrations_at_a_time(toys, tmp_path):
    """In one process, and one event loop."""

    async def both():
        return await asyncio.gather(*(async_launch(_document(name), runtime=_quiet(tmp_path)) for name in ("a", "b")))

    assert ["completed", "completed"] == [result.status for result in asyncio.run(both())]


def test_a_failure_is_an_outcome(toys, tmp_path):
    """Not an exception: the others have results."""
    result = launch(_document("a", run="fatal:x:y"), runtime=_quiet(tmp_path))

    assert ("failed", "failed") == (result.status, result.outcomes[0].status)


def test_a_wrong_document_is_refused(toys, tmp_path):
    """Before anything is made."""
    with pytest.raises(UsageError, match="requests"):
        launch({"requests": []}, runtime=_quiet(tmp_path))
    assert not (tmp_path / "results").exists()
