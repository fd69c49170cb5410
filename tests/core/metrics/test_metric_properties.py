"""What holds for every run: counts add up, order does not matter, bounds bound."""

from __future__ import annotations

import random

import pytest

from agentcompass.core.metrics.report import Counts

HIERARCHY = {
    "overall": {
        "aggregation": "weighted",
        "children": {
            "x": {"weight": 2.5},
            "rest": {
                "weight": 1,
                "aggregation": "weighted_by_count",
                "children": {"y": {}, "__uncategorized__": {}, "z": {}},
            },
        },
    }
}
SEEDS = range(60)


def drawn(seed):
    """Draw a run: its outcomes and its settings."""
    draw = random.Random(seed)
    k, alphabet = draw.randint(1, 4), draw.choice(["01", "01.?", "01.?SeEw", "01.?SeEwTF"])
    outcomes = {f"t{place}": "".join(draw.choices(alphabet, k=k)) for place in range(draw.randint(0, 25))}
    return outcomes, {
        "strategy": draw.choice(["avg", "pass"]),
        "mode": draw.choice(["micro_weighted", "category_mean", "category_hierarchy"]),
        "hierarchy": HIERARCHY,
        "categories": {task: draw.choice(["x", "y", "z", None]) for task in outcomes},
        "clusters": {task: draw.choice(["p", "q", "r", None]) for task in outcomes} if seed % 2 else {},
    }


def adds_up(counts: Counts) -> bool:
    return counts.total == counts.evaluated + counts.unavailable + counts.invalidated


@pytest.mark.seed("ER-08")
@pytest.mark.parametrize("seed", SEEDS)
def test_counts_add_up(run, seed):
    """evaluated + unavailable + invalidated = total, in every series, curve, category and node."""
    outcomes, settings = drawn(seed)
    report = run(outcomes, **settings)
    everything = "".join(outcomes.values())
    invalid = sum("T" in attempts or "F" in attempts for attempts in outcomes.values())

    for scored in (*report.series, *report.curves):
        assert adds_up(scored.counts)
        assert (len(outcomes), invalid) == (scored.counts.total, scored.counts.invalidated)
        assert sum(everything.count(grave) for grave in "SeETF") == scored.counts.error
    for series in report.series:
        assert all(adds_up(group.counts) for group in (*series.categories.values(), *series.hierarchy.values()))
        assert len(outcomes) == sum(group.counts.total for group in series.categories.values())


@pytest.mark.seed("ER-08")
@pytest.mark.parametrize("seed", SEEDS)
def test_attempts_add_up(run, seed):
    """finished + not needed + missing = planned."""
    outcomes, settings = drawn(seed)
    attempts = run(outcomes, **settings).attempts

    assert attempts.planned == attempts.finished + attempts.not_needed + attempts.missing
    assert sum(map(len, outcomes.values())) == attempts.planned


@pytest.mark.parametrize("seed", SEEDS)
def test_order_changes_nothing(run, seed):
    """The same tasks in another order give the same document, to the last digit."""
    outcomes, settings = drawn(seed)
    shuffled = dict(random.Random(seed).sample(list(outcomes.items()), len(outcomes)))

    assert run(outcomes, **settings).document() == run(shuffled, **settings).document()


@pytest.mark.parametrize("seed", SEEDS)
def test_values_lie_within_their_intervals_and_bounds(run, seed):
    """Every given number is in the metric's range, its interval and its bounds."""
    outcomes, settings = drawn(seed)
    report = run(outcomes, **settings)
    for series in report.series:
        scores = [series.score, *(group.score for group in (*series.categories.values(), *series.hierarchy.values()))]
        for score in scores:
            assert score.shown is None or 0 <= score.shown <= 1
            if score.interval.low is not None:
                assert 0 <= score.interval.low <= score.shown + 1e-12
                assert score.shown - 1e-12 <= score.interval.high <= 1
        if series.bounds and series.score.shown is not None:
            assert series.bounds.low - 1e-12 <= series.score.shown <= series.bounds.high + 1e-12


@pytest.mark.seed("ER-07")
@pytest.mark.parametrize("seed", SEEDS)
def test_official_and_reference_values_exclude_each_other(run, seed):
    """Exactly when a task is invalidated nothing is official, anywhere in the report."""
    outcomes, settings = drawn(seed)
    report = run(outcomes, **settings)
    failed = any(set("TF") & set(attempts) for attempts in outcomes.values())
    groups = [group.score for s in report.series for group in (*s.categories.values(), *s.hierarchy.values())]
    points = [point.score for curve in report.curves for point in curve.points]

    assert failed is report.evaluation_failed
    for score in (*(series.score for series in report.series), *groups, *points):
        assert (score.value if failed else score.reference_value) is None


@pytest.mark.parametrize("seed", SEEDS)
def test_curves_fall_and_rise(run, seed):
    """More draws cannot make any-of-j less likely, nor all-of-j more likely."""
    outcomes, settings = drawn(seed)
    for curve in run(outcomes, **{**settings, "strategy": "avg"}).curves:
        values = [point.score.shown for point in curve.points if point.score.shown is not None]

        assert values == sorted(values, reverse="^" in curve.curve_id)
