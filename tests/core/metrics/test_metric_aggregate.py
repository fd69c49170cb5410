"""From observations to official numbers: states, counts, FATAL, missing tasks, categories and curves."""

from __future__ import annotations

import math

import pytest

from agentcompass.core.config.sections import AGGREGATION_MODES
from agentcompass.core.errors import UsageError
from agentcompass.core.metrics.aggregate import aggregate
from agentcompass.core.metrics.contract import MetricKind, MetricSpec, binary_contract, scalar_contract
from agentcompass.core.metrics.intervals import wilson
from agentcompass.core.metrics.observation import TaskKey
from agentcompass.core.metrics.report import AttemptCoverage, Counts
from agentcompass.core.metrics.table import AggregationMode
from agentcompass.core.model.request import AttemptPlan, Strategy

FIVE = {"a": "111", "b": "101", "c": "000", "d": "110", "e": "010"}
ONE = AttemptPlan(1, Strategy.AVG)


def test_five_tasks_of_three_attempts_have_the_published_values(run):
    """Mean, error over tasks, pass@2 and pass^2."""
    report = run(FIVE)
    unbiased, reliable = report.curves

    assert pytest.approx(0.533333, abs=5e-7) == report.headline.score.value
    assert pytest.approx(0.169967, abs=5e-7) == report.headline.score.standard_error
    assert ["correct.pass@j", "correct.pass^j"] == [unbiased.curve_id, reliable.curve_id]
    assert [1, 2] == [point.j for point in unbiased.points]
    assert [1, 2, 3] == [point.j for point in reliable.points]
    assert pytest.approx(0.733333, abs=5e-7) == unbiased.points[1].score.value
    assert pytest.approx(0.333333, abs=5e-7) == reliable.points[1].score.value
    assert report.headline.score.value == unbiased.points[0].score.value == reliable.points[0].score.value
    assert 0.2 == reliable.points[2].score.value


def test_any_of_three_is_a_series(run):
    """With avg, both the mean and whether any attempt succeeds are headline series, the mean first."""
    report = run(FIVE)

    assert ["correct.avg@3", "correct.pass@3"] == [series.series_id for series in report.series]
    assert "correct.avg@3" == report.headline.series_id
    assert 0.8 == report.series[1].score.value


@pytest.mark.seed("ER-03")
def test_an_error_does_not_override_a_valid_score(run):
    """A verdict beside an ERROR or a WARNING counts as given, right or wrong."""
    series = run({"a": "S", "b": "e", "c": "w", "d": "0"}).headline

    assert 0.5 == series.score.value
    assert Counts(4, evaluated=4, unavailable=0, invalidated=0, error=2) == series.counts


@pytest.mark.seed("ER-03")
def test_no_zero_is_invented(run):
    """An attempt without a value, with or without an ERROR, and one that never ended, are unavailable, not failures."""
    series = run({"a": "1", "b": "E", "c": "?", "d": "."}).headline

    assert 1.0 == series.score.value
    assert Counts(4, evaluated=1, unavailable=3, invalidated=0, error=1) == series.counts


@pytest.mark.seed("ER-07")
def test_a_fatal_attempt_invalidates_its_task_in_every_series(run):
    """Even a task whose other attempts succeeded is out, in mean, any-of-k and curves; nothing is official."""
    report = run({"a": "1T", "b": "10", "c": "00"})

    assert report.evaluation_failed
    for scored in (*report.series, *report.curves):
        assert (2, 1) == (scored.counts.evaluated, scored.counts.invalidated)
    assert [None, None] == [series.score.value for series in report.series]
    assert [0.25, 0.5] == [series.score.reference_value for series in report.series]
    assert [None] * 3 == [point.score.value for curve in report.curves for point in curve.points]
    assert [0.25, 0.25, 0.0] == [point.score.reference_value for curve in report.curves for point in curve.points]


@pytest.mark.seed("ER-07")
def test_invalidated_tasks_invalidate_auxiliary_series_too(observe):
    """A FATAL attempt takes every metric of its task along."""
    from agentcompass.core.model.issue import Severity

    report = aggregate(
        contract=binary_contract(MetricSpec("steps", MetricKind.SCALAR)),
        plan=ONE,
        tasks=[TaskKey("a"), TaskKey("b")],
        observations=[
            observe("a", correct=True, steps=4),
            observe("b", correct=True, steps=9, severity=Severity.FATAL),
        ],
        mode="micro_weighted",
        hierarchy=None,
    )

    assert [1.0, 4.0] == [series.score.reference_value for series in report.series]
    assert [None, None] == [series.score.value for series in report.series]


@pytest.mark.seed("ER-07")
def test_without_valid_tasks_both_values_are_null(run):
    """No reference is made of nothing."""
    for outcomes in ({"a": "T", "b": "F"}, {"a": "F", "b": "."}):
        report = run(outcomes)

        assert report.evaluation_failed
        assert (None, None) == (report.headline.score.value, report.headline.score.reference_value)


@pytest.mark.seed("ER-07")
def test_reference_values_leave_invalid_tasks_out_of_weights(run):
    """A category of invalid tasks only has no weight in a macro mean, and no numbers."""
    report = run({"a": "1", "b": "0", "c": "T"}, categories={"a": "x", "b": "x", "c": "y"}, mode="category_mean")
    lost = report.headline.categories["y"]

    assert 0.5 == report.headline.score.reference_value
    assert (None, None, 0.0) == (lost.score.value, lost.score.reference_value, lost.aggregation_weight)
    assert 1.0 == report.headline.categories["x"].aggregation_weight
    assert "left out, without a value: 'y'" == report.headline.note


@pytest.mark.seed("ER-07")
def test_a_valid_run_is_official(run):
    """ERROR alone does not fail an evaluation; reference values stay empty."""
    report = run({"a": "S", "b": "0"})

    assert not report.evaluation_failed
    assert (0.5, None) == (report.headline.score.value, report.headline.score.reference_value)


@pytest.mark.seed("ER-08")
def test_each_task_is_in_one_state_and_errors_are_apart(run):
    """Two attempts, four tasks: one fatal attempt, one pair with ERROR but valid values."""
    series = run({"a": "1F", "b": "ee", "c": "11", "d": "01"}).headline

    assert Counts(4, evaluated=3, unavailable=0, invalidated=1, error=3) == series.counts


@pytest.mark.seed("ER-08")
def test_an_early_stop_is_not_a_missing_attempt(run):
    """Under pass, attempts after a success were not needed; those after a failure are missing."""
    report = run({"a": "1..", "b": "01.", "c": "00.", "d": "000"}, strategy="pass")

    assert ["correct.pass@3"] == [series.series_id for series in report.series]
    assert 2 / 3 == report.headline.score.value
    assert Counts(4, evaluated=3, unavailable=1, invalidated=0, error=0) == report.headline.counts
    assert AttemptCoverage(planned=12, finished=8, not_needed=3, missing=1, error=0) == report.attempts
    assert () == report.curves


@pytest.mark.seed("ER-08")
def test_attempt_coverage_counts_each_grave_attempt_once(run):
    """ERROR and FATAL attempts are counted as attempts, beside those that are missing."""
    report = run({"a": "SF", "b": "E.", "c": "w1", "d": "1."})

    assert AttemptCoverage(planned=8, finished=6, not_needed=0, missing=2, error=3) == report.attempts


def test_the_mean_of_attempts_needs_all_of_them(run):
    """A task with a missing value is unavailable; its partial mean is shown apart."""
    series = run({"a": "11", "b": "1.", "c": "0?", "d": ".."}).headline

    assert (1.0, 1) == (series.score.value, series.counts.evaluated)
    assert (2 / 3, 3, 2) == (series.partial.value, series.partial.tasks, series.partial.incomplete)


def test_there_is_no_partial_mean_without_partial_tasks(run):
    """Complete runs, single attempts and any-of-k have none; a task without any value adds none."""
    assert [None, None] == [series.partial for series in run({"a": "11", "b": ".."}).series]
    assert run({"a": "1", "b": "."}).headline.partial is None


def test_partial_means_leave_invalidated_tasks_out(run):
    """What a FATAL attempt invalidated does not return through the partial mean."""
    series = run({"a": "11", "b": "1F", "c": "0."}).headline

    assert (0.5, 2, 1) == (series.partial.value, series.partial.tasks, series.partial.incomplete)


def test_missing_tasks_have_bounds(run):
    """Eight of ten tasks scored, all right: 1.0 official, between 0.8 and 1."""
    series = run({f"t{place}": "1" if place < 8 else "." for place in range(10)}).headline

    assert 1.0 == series.score.value
    assert pytest.approx((0.8, 1.0)) == (series.bounds.low, series.bounds.high)


def test_invalidated_tasks_have_bounds(run):
    """A FATAL attempt cannot raise a score unseen."""
    series = run({"a": "1", "b": "T", "c": "0", "d": "1"}).headline

    assert pytest.approx((0.5, 0.75)) == (series.bounds.low, series.bounds.high)


def test_complete_runs_have_no_bounds(run):
    """Nothing is missing, nothing is bounded."""
    assert run({"a": "1", "b": "0"}).headline.bounds is None


def test_bounds_of_scalars_come_from_the_declared_range(run):
    """Without a range there are none."""
    outcomes = {"a": [3.0], "b": "."}
    bounded = run(outcomes, contract=scalar_contract(minimum=-1, maximum=5)).headline.bounds

    assert (1.0, 4.0) == (bounded.low, bounded.high)
    assert run(outcomes, contract=scalar_contract(maximum=5)).headline.bounds is None


def test_one_task_has_no_standard_error(run):
    """n = 1 shows no spread: null, not 0."""
    assert run({"a": "11"}).headline.score.standard_error is None
    assert run({"a": [2.5]}).headline.score.interval.low is None


def test_nothing_at_all_is_a_report_too(run):
    """A run without tasks has series without values."""
    report = run({})

    assert Counts(0, 0, 0, 0, 0) == report.headline.counts
    assert (None, None, False) == (report.headline.score.value, report.headline.bounds, report.evaluation_failed)


def test_a_cancelled_run_counts_what_never_ended(run):
    """Tasks without any observation are unavailable."""
    report = run({"a": "..", "b": ".."})

    assert Counts(2, 0, 2, 0, 0) == report.headline.counts
    assert (None, 0.0, 1.0) == (
        report.headline.score.value,
        report.headline.bounds.low,
        report.headline.bounds.high,
    )


def test_categories_have_their_own_scores(run):
    """Each category has value, error, interval, counts and its share of the value."""
    series = run({"a": "1", "b": "0", "c": "1", "d": "."}, categories={"a": "x", "b": "x", "d": "y"}).headline

    assert ["__uncategorized__", "x", "y"] == list(series.categories)
    assert [1.0, 0.5, None] == [group.score.value for group in series.categories.values()]
    assert [None, 0.5, None] == [group.score.standard_error for group in series.categories.values()]
    assert [1 / 3, 2 / 3, 0.0] == [group.aggregation_weight for group in series.categories.values()]
    assert Counts(1, 0, 1, 0, 0) == series.categories["y"].counts


def test_category_means_weigh_categories_alike(run):
    """Macro: the mean of category means, with the error of that estimator."""
    outcomes = {"a": "1", "b": "0", "c": "1", "d": "1", "e": "0", "f": "0", "g": "1"}
    categories = dict.fromkeys("abcd", "x") | dict.fromkeys("efg", "y")
    series = run(outcomes, categories=categories, mode="category_mean").headline

    assert pytest.approx((3 / 4 + 1 / 3) / 2) == series.score.value
    assert pytest.approx(math.sqrt(1 / 16 + 1 / 9) / 2) == series.score.standard_error
    assert "stratified_t" == series.score.interval.method
    assert [0.5, 0.5] == [group.aggregation_weight for group in series.categories.values()]


def test_a_category_of_one_task_leaves_the_macro_error_undefined(run):
    """The value is given, the error is not, and the note says for which category."""
    series = run({"a": "1", "b": "0", "c": "1"}, categories={"c": "lone"}, mode="category_mean").headline

    assert (0.75, None) == (series.score.value, series.score.standard_error)
    assert "'lone': a single task shows no spread" == series.score.interval.note


def test_empty_categories_are_skipped_and_named(run):
    """A category without values does not pull the macro mean down."""
    series = run({"a": "1", "b": "."}, categories={"a": "x", "b": "y"}, mode="category_mean").headline

    assert 1.0 == series.score.value
    assert "left out, without a value: 'y'" == series.note
    assert (0.5, 1.0) == (series.bounds.low, series.bounds.high)


def test_a_hierarchy_weighs_as_it_says(run):
    """Nodes combine their children by weight; a missing category is an empty node; other tasks are named."""
    hierarchy = {
        "overall": {
            "aggregation": "weighted",
            "children": {
                "x": {"weight": 3},
                "inner": {"weight": 1, "aggregation": "weighted_by_count", "children": {"y": {}, "z": {}, "gone": {}}},
            },
        }
    }
    series = run(
        {"a": "1", "b": "1", "c": "0", "d": "0", "e": "1", "f": "1"},
        categories={"a": "x", "b": "y", "c": "y", "d": "z", "e": "z", "f": "other"},
        mode="category_hierarchy",
        hierarchy=hierarchy,
    ).headline
    nodes = series.hierarchy

    assert pytest.approx(0.75 + 0.25 * 0.5) == series.score.value
    assert [1.0, 0.5, 0.5] == [nodes[f"/overall{path}"].score.value for path in ("/x", "/inner", "/inner/y")]
    assert [1.0, 0.75, 0.25, 0.125, 0.0] == [
        nodes[f"/overall{path}"].aggregation_weight for path in ("", "/x", "/inner", "/inner/z", "/inner/gone")
    ]
    assert Counts(0, 0, 0, 0, 0) == nodes["/overall/inner/gone"].counts
    assert ["weighted", "leaf"] == [nodes[path].aggregation for path in ("/overall", "/overall/x")]
    assert (5, 6) == (series.covered.total, series.counts.total)
    assert "left out, without a value: 'gone'; left out, not in the hierarchy: 'other'" == series.note


def test_clusters_widen_the_headline(run):
    """Tasks that share a site are not independent."""
    outcomes = dict(zip("abcdefghijkl", "111001001111", strict=True))
    clusters = {task: f"site {place // 3}" for place, task in enumerate(outcomes)}
    score = run(outcomes, clusters=clusters).headline.score

    assert pytest.approx(0.192450, abs=5e-7) == score.standard_error
    assert "clustered_t" == score.interval.method


def test_agreement_is_not_certainty(run):
    """Five tasks with every attempt right, or with every score at the top of its range, keep an interval with width."""
    scored = run({task: [1.0] for task in "abcde"}, contract=scalar_contract(minimum=0, maximum=1)).headline.score
    solved = run(dict.fromkeys("abcde", "11")).headline.score

    for score in (scored, solved):
        assert (1.0, 0.0, "wilson") == (score.value, score.standard_error, score.interval.method)
        assert pytest.approx(wilson(5, 5)) == (score.interval.low, score.interval.high)


def test_points_of_curves_have_intervals(run):
    """A share of attempts has a t interval; whether all succeed is a success or failure of the task."""
    unbiased, reliable = run(FIVE).curves

    assert ["t", "t"] == [point.score.interval.method for point in unbiased.points]
    assert ["t", "t", "wilson"] == [point.score.interval.method for point in reliable.points]


def test_curves_cover_complete_tasks(run):
    """pass@j and pass^j come from tasks with all k values; the others are counted as unavailable."""
    curve = run({"a": "11", "b": "1.", "c": "00", "d": "E0"}).curves[0]

    assert Counts(4, evaluated=2, unavailable=2, invalidated=0, error=1) == curve.counts
    assert 0.5 == curve.points[0].score.value


def test_curves_need_a_binary_metric_and_several_attempts(run):
    """Single attempts and scalars have none."""
    assert () == run({"a": "1"}).curves
    assert () == run({"a": [0.5, 1.0]}).curves


def test_scalars_have_a_mean_without_range(run):
    """A scalar benchmark is aggregated alike; its interval is not clipped."""
    series = run({"a": [2.0, 4.0], "b": [10.0, 12.0]}).headline

    assert ("score.avg@2", 7.0, 4.0) == (series.series_id, series.score.value, series.score.standard_error)
    assert series.score.interval.low < 0


@pytest.mark.parametrize("mode", AggregationMode)
def test_modes_are_those_of_the_configuration(run, mode):
    """Every configurable mode is understood, and no other exists."""
    assert set(AGGREGATION_MODES) == set(AggregationMode)
    report = run(
        {"a": "1"},
        categories={"a": "x"},
        mode=mode.value,
        hierarchy={"overall": {"aggregation": "unweighted", "children": {"x": {}}}},
    )

    assert (mode, 1.0) == (report.aggregation, report.headline.score.value)


def test_wrong_settings_are_refused(run):
    """An unknown mode, a missing tree and a strategy without meaning are errors of the request."""
    with pytest.raises(UsageError, match="did you mean 'category_mean'"):
        run({"a": "1"}, mode="category_means")
    with pytest.raises(UsageError, match="category_hierarchy: is missing"):
        run({"a": "1"}, mode="category_hierarchy")
    with pytest.raises(UsageError, match="give avg"):
        run({"a": [1.0]}, strategy="pass")


@pytest.mark.parametrize(
    ("tasks", "attempts", "problem"),
    [
        (["a", "a"], [], "same id"),
        (["a"], [("b", 1)], "task 'b' is not planned"),
        (["a"], [("a", 2)], "attempt 2 of task 'a' is not planned"),
        (["a"], [("a", 0)], "attempt 0 of task 'a' is not planned"),
        (["a"], [("a", 1), ("a", 1)], "observed twice"),
    ],
)
def test_observations_belong_to_planned_attempts(observe, tasks, attempts, problem):
    """A task planned twice, or an observation out of the plan, is a mistake that must not shift a score."""
    with pytest.raises(ValueError, match=problem):
        aggregate(
            contract=binary_contract(),
            plan=ONE,
            tasks=[TaskKey(task) for task in tasks],
            observations=[observe(task, attempt, correct=True) for task, attempt in attempts],
            mode="micro_weighted",
            hierarchy=None,
        )
