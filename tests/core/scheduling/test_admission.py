"""Who may start now: slots, limits, pacing, delays, withdrawals."""

from __future__ import annotations

import heapq
from math import inf

import pytest

from agentcompass.core.scheduling import admission as machine
from agentcompass.core.scheduling.admission import Admission


def _offered(admission, *keys, provider="p", **more):
    for key in keys:
        admission.offer(key, provider, (keys.index(key),), **more)


@pytest.mark.seed("CO-01")
def test_slots_bound_what_runs():
    """As many run at once as there are slots; a freed slot goes to the next in order."""
    admission = Admission(2, {}, {})
    _offered(admission, "a", "b", "c", "d")
    first = admission.admit(0.0)
    again = admission.admit(0.0)
    admission.done("b")
    second = admission.admit(1.0)

    assert [(["a", "b"], inf), ([], inf), (["c"], inf)] == [first, again, second]
    assert {"a": "p", "c": "p"} == admission.running


def test_the_order_is_that_of_priorities_not_of_offers():
    """The lowest tuple starts first, whoever was offered first; of equal ones the earlier offer."""
    admission = Admission(10, {}, {})
    for key, priority in (
        ("late", (1, 5)),
        ("early", (0, 9, 9)),
        ("twin 1", (1, 0)),
        ("twin 2", (1, 0)),
        ("short", (0, 9)),
    ):
        admission.offer(key, "p", priority)

    assert ["short", "early", "twin 1", "twin 2", "late"] == admission.admit(0.0)[0]


def test_keys_need_no_order():
    """What is admitted may be anything that can be a key."""
    admission = Admission(10, {}, {})
    keys = [frozenset({1}), None, "text", 3]
    for key in keys:
        admission.offer(key, "p", (0,))
        admission.offer(key, "p", (0,), at=5.0)

    assert keys == admission.admit(5.0)[0]


@pytest.mark.seed("CO-02")
@pytest.mark.parametrize(("slots", "limit", "running"), [(8, 3, 3), (2, 3, 2), (8, 0, 6), (8, None, 6)])
def test_the_lower_bound_holds(slots, limit, running):
    """Slots and the provider's limit both hold; 0 and no entry are no limit."""
    admission = Admission(slots, {} if limit is None else {"p": limit}, {})
    _offered(admission, *"abcdef")

    assert running == len(admission.admit(0.0)[0])


@pytest.mark.seed("CO-02")
def test_a_full_provider_holds_nobody_else_up():
    """Offers of other providers overtake those that wait for a full one, and wake nobody."""
    admission = Admission(10, {"full": 1}, {})
    _offered(admission, "a", "b", provider="full")
    admission.offer("z", "free", (9,))
    started, wake = admission.admit(0.0)
    admission.done("a")

    assert (["a", "z"], inf) == (started, wake)
    assert ["b"] == admission.admit(0.0)[0]


@pytest.mark.seed("CO-03")
def test_openings_are_paced():
    """Sandboxes of one provider open at least a spacing apart, without a burst after a pause."""
    admission = Admission(10, {}, {"p": 4.0})
    _offered(admission, "a", "b", "c")
    steps = [admission.admit(now) for now in (0.0, 0.1, 0.25, 100.0)]
    admission.offer("d", "p", (9,))
    late = admission.admit(100.0)

    assert [(["a"], 0.25), ([], 0.25), (["b"], 0.5), (["c"], inf)] == steps
    assert ([], 100.25) == late


@pytest.mark.seed("CO-03")
@pytest.mark.parametrize("rates", [{}, {"p": 0}, {"p": 0.0}, {"other": 1.0}])
def test_no_rate_is_no_pacing(rates):
    """0 switches pacing off, and one provider's pace is not another's."""
    admission = Admission(10, {}, rates)
    _offered(admission, "a", "b", "c")

    assert (["a", "b", "c"], inf) == admission.admit(0.0)


@pytest.mark.seed("CO-03")
def test_what_opens_nothing_is_not_paced():
    """Pacing concerns the creation of sandboxes only: a repeated grading without one starts at once."""
    admission = Admission(10, {}, {"p": 1.0})
    _offered(admission, "a", "b", opens=False)
    admission.offer("c", "p", (8,))
    admission.offer("d", "p", (9,), opens=False)

    assert (["a", "b", "c", "d"], inf) == admission.admit(0.0)


@pytest.mark.seed("CO-03")
def test_openings_of_running_attempts_share_the_pace():
    """A second sandbox of something that runs reserves its turn, and new starts wait for theirs."""
    admission = Admission(10, {}, {"p": 1.0})
    _offered(admission, "a", "b")
    started = admission.admit(0.0)
    turns = [admission.reserve_opening("p", 0.5), admission.reserve_opening("p", 0.5)]

    assert ((["a"], 1.0), [1.0, 2.0]) == (started, turns)
    assert [([], 3.0), (["b"], inf)] == [admission.admit(2.9), admission.admit(3.0)]
    assert 7.0 == admission.reserve_opening("elsewhere", 7.0)


def test_a_delayed_offer_holds_nothing():
    """Until its time an offer has no slot; then it starts by its priority."""
    admission = Admission(1, {"p": 1}, {})
    admission.offer("later", "p", (0,), at=5.0)
    admission.offer("now", "p", (1,))
    steps = [admission.admit(0.0)]
    admission.done("now")
    admission.offer("other", "p", (2,))
    steps.append(admission.admit(5.0))

    assert [(["now"], 5.0), (["later"], inf)] == steps


def test_the_next_time_is_the_earliest():
    """Asking again is due at the first delay or pace that ends, or only after a change."""
    admission = Admission(5, {}, {"paced": 0.5})
    admission.offer("a", "paced", (0,))
    admission.offer("b", "paced", (1,))
    admission.offer("c", "p", (2,), at=9.0)
    admission.offer("d", "p", (3,), at=1.5)

    assert (["a"], 1.5) == admission.admit(0.0)
    assert (["d"], 2.0) == admission.admit(1.5)
    assert (["b"], 9.0) == admission.admit(2.0)
    assert (["c"], inf) == admission.admit(9.0)


def test_full_slots_wake_nobody_for_pacing():
    """With no slot free, the end of a pace changes nothing; a delay is told all the same."""
    admission = Admission(1, {}, {"p": 1.0})
    _offered(admission, "a", "b")

    assert (["a"], inf) == admission.admit(0.0)
    admission.offer("c", "p", (9,), at=3.0)
    assert ([], 3.0) == admission.admit(2.0)


def test_a_withdrawn_offer_never_starts():
    """Ready or delayed, at the head or behind it, what is taken back is gone, and leaves no reason to wake."""
    admission = Admission(10, {}, {})
    _offered(admission, "a", "b", "c")
    admission.offer("d", "p", (3,), at=5.0)
    for key in ("a", "c", "d", "never offered"):
        admission.withdraw(key)

    assert (["b"], inf) == admission.admit(0.0)
    assert ([], inf) == admission.admit(9.0)


def test_an_offer_can_be_made_again():
    """A second offer takes the first one's place, whether that was withdrawn, delayed or ready: it starts once."""
    admission = Admission(10, {"p": 2}, {})
    admission.offer("a", "p", (0,))
    admission.withdraw("a")
    admission.offer("a", "q", (5,))
    admission.offer("b", "p", (1,), at=3.0)
    admission.offer("b", "p", (1,))
    admission.offer("c", "p", (2,))
    admission.offer("c", "p", (2,), at=4.0)

    assert (["b", "a"], 4.0) == admission.admit(0.0)
    assert {"b": "p", "a": "q"} == admission.running
    assert (["c"], inf) == admission.admit(4.0)
    for key in "abc":
        admission.done(key)
    assert ({}, ([], inf)) == (admission.running, admission.admit(9.0))


def test_done_is_for_what_runs():
    """Freeing what holds nothing is a defect of the caller."""
    admission = Admission(1, {}, {})
    _offered(admission, "a")

    with pytest.raises(KeyError):
        admission.done("a")


class _Heap:
    """The standard heap, counting its operations."""

    def __init__(self) -> None:
        self.operations = 0

    def heappush(self, heap, item):
        self.operations += 1
        heapq.heappush(heap, item)

    def heappop(self, heap):
        self.operations += 1
        return heapq.heappop(heap)


def _operations(monkeypatch, offers, limit):
    heap = _Heap()
    monkeypatch.setattr(machine, "heapq", heap)
    admission = Admission(1000, {"p": limit}, {})
    for number in range(offers):
        admission.offer(number, "p", (0, number), at=1.0 if number % 2 else -inf)
    finished, now = [], 1.0
    while True:
        started, wake = admission.admit(now)
        if not started:
            break
        for key in started:
            admission.done(key)
        finished += started
        assert wake == inf
    assert list(range(offers)) == finished
    return heap.operations


def test_waiting_offers_cost_nothing(monkeypatch):
    """Twenty thousand offers behind a full provider are touched a few times each, not once per admission."""
    assert _operations(monkeypatch, 20_000, 4) == 3 * 20_000
