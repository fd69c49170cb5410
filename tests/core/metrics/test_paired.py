"""Paired comparisons: the worked values, the edges, and what several comparisons cost."""

from __future__ import annotations

import pytest

from agentcompass.core.metrics.paired import (
    Side,
    compare,
    holm,
    least_difference,
    mcnemar,
    tasks_needed,
)


def _side(name, text, **more):
    return Side(name, {f"t{n}": float(digit) for n, digit in enumerate(text)}, trials=True, **more)


def test_the_worked_comparison():
    """Mean difference, paired and unpaired error of ten tasks."""
    found = compare(_side("B", "1011001001"), _side("A", "1111101101"))

    assert 10 == found.common
    assert pytest.approx(0.3) == found.difference
    assert pytest.approx(0.152753, abs=1e-6) == found.standard_error
    assert pytest.approx(0.213437, abs=1e-6) == found.unpaired
    assert (0.5, 0.8) == found.means
    assert pytest.approx((0.3 - 2.262157 * 0.152753, 0.3 + 2.262157 * 0.152753), abs=1e-5) == found.interval
    assert pytest.approx(2.801585 * 0.152753, abs=1e-5) == found.detectable
    assert (5, 2, (), ("t1", "t4", "t7")) == (
        found.flips.both,
        found.flips.neither,
        found.flips.first,
        found.flips.second,
    )


@pytest.mark.parametrize(
    ("first", "second", "p"), [(10, 2, 0.038574), (7, 20, 0.019157), (1, 0, 1.0), (0, 0, 1.0), (5, 5, 1.0)]
)
def test_the_exact_test(first, second, p):
    """McNemar's, two-sided, by the binomial distribution."""
    assert pytest.approx(p, abs=1e-6) == mcnemar(first, second)
    assert mcnemar(first, second) == mcnemar(second, first)


def test_how_many_tasks_show_a_difference():
    """The worked power calculation, and its inverse."""
    assert 785 == tasks_needed(0.05, 0.5)
    assert pytest.approx(0.109, abs=1e-3) == least_difference(0.5 / 164**0.5)
    with pytest.raises(ValueError, match="no difference"):
        tasks_needed(0, 1)


def test_only_common_tasks_are_paired():
    """What one side lacks is named, and counts for nothing."""
    found = compare(Side("a", {"x": 1.0, "y": 0.0, "only": 1.0}), Side("b", {"y": 1.0, "x": 1.0, "other": 0.0}))

    assert (2, ("only",), ("other",), 0.5) == (found.common, found.only_first, found.only_second, found.difference)


@pytest.mark.parametrize(("tasks", "common"), [({}, 0), ({"x": 1.0}, 1)])
def test_too_few_tasks_say_nothing_of_certainty(tasks, common):
    """No error, no interval, no p; never zero."""
    found = compare(Side("a", tasks), Side("b", tasks))

    assert common == found.common
    assert [None] * 5 == [found.standard_error, found.interval, found.bootstrap, found.p_value, found.detectable]


def test_equal_runs_do_not_differ():
    """The p of no difference at all is 1, and a constant difference is certain."""
    same = compare(_side("a", "1010"), _side("b", "1010"))
    shifted = compare(Side("a", {"x": 0.0, "y": 0.5}), Side("b", {"x": 0.25, "y": 0.75}))

    assert (0.0, 1.0, 1.0) == (same.difference, same.p_value, same.exact)
    assert (0.25, 0.0) == (shifted.difference, shifted.p_value)


def test_clusters_widen_the_interval():
    """Tasks that share a cluster are not independent."""
    first, second = "000000", "111000"
    clusters = {f"t{n}": "one" if n < 3 else "two" for n in range(6)}
    plain = compare(_side("a", first), _side("b", second))
    shared = compare(_side("a", first, clusters=clusters), _side("b", second))

    assert shared.clustered
    assert not plain.clustered
    assert shared.standard_error > plain.standard_error


def test_several_attempts_have_no_exact_test():
    """Means are no single trials."""
    found = compare(Side("a", {"x": 0.5, "y": 1.0}), Side("b", {"x": 1.0, "y": 1.0}))

    assert (None, None) == (found.exact, found.flips)
    assert found.decisive_p == found.p_value


def test_the_bootstrap_is_the_same_every_time():
    """The same bytes for the same data, whatever their order."""
    first, second = Side("a", {"x": 0.0, "y": 0.0, "z": 1.0}), Side("b", {"z": 1.0, "y": 1.0, "x": 0.0})
    turned = Side("a", dict(reversed(first.values.items())))

    assert compare(first, second).bootstrap == compare(turned, second).bootstrap


def test_holm_adjusts_and_keeps_the_order():
    """The least is multiplied by their number, the next by one less, never falling."""
    assert [0.03, None, 0.06, 0.06] == [None if p is None else round(p, 10) for p in holm([0.01, None, 0.04, 0.03])]
    assert [1.0, 1.0] == holm([0.9, 0.8])
    assert [] == holm([])
