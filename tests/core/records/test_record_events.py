"""One event as a line of the stream."""

from __future__ import annotations

import pytest

from agentcompass import schemas
from agentcompass.core.model.event import Event
from agentcompass.core.records.events import event_document, event_of

FIELDS = set(schemas.schema("event.v1")["required"])


@pytest.mark.seed("RR-03")
@pytest.mark.parametrize(
    "event",
    [Event("summary_started", 1.5), Event("phase_changed", 2.0, "t", "c", 3, "plan", "s", {"a": [1]})],
    ids=["bare", "full"],
)
def test_every_field_is_always_there(event):
    """Missing values are null, the payload is an object, and the event can be read back."""
    document = event_document(event, "r")

    assert FIELDS == set(document)
    assert ("r", dict(event.payload)) == (document["run_id"], document["payload"])
    assert event == event_of(document)


def test_a_document_is_apart_from_its_event():
    """Redacting a document does not reach into what observers get."""
    payload = {"a": 1}
    event_document(Event("x", 1.0, payload=payload), "r")["payload"]["a"] = 2

    assert {"a": 1} == payload
