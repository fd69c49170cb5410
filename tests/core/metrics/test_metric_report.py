"""The document of a report: plain JSON with the fields that readers of metrics.json know."""

from __future__ import annotations

import json

import pytest

from agentcompass.core.metrics.contract import MetricKind, MetricSpec, binary_contract

FIVE = {"a": "111", "b": "101", "c": "0F0", "d": "110", "e": "01."}


@pytest.fixture
def report(run):
    return run(
        FIVE,
        categories={"a": "x", "b": "x"},
        contract=binary_contract(MetricSpec("steps", MetricKind.SCALAR, "Steps", "How many", "1", 2)),
        mode="category_hierarchy",
        hierarchy={"overall": {"aggregation": "unweighted", "children": {"x": {}, "__uncategorized__": {}}}},
    )


def test_a_document_survives_json(report):
    """It is made of plain containers and finite numbers."""
    document = report.document()

    assert document == json.loads(json.dumps(document, allow_nan=False))


def test_known_fields_have_their_names(report):
    """The report's and a series' fields, the former ones and ours."""
    document = report.document()
    series = document["series"][0]

    assert {
        "k",
        "strategy",
        "aggregation",
        "evaluation_failed",
        "extra",
        "series",
        "curves",
        "attempts",
        "resources",
    } == document.keys()
    assert {
        "series_id",
        "metric_id",
        "kind",
        "reducer",
        "role",
        "k",
        "aggregation",
        "value",
        "reference_value",
        "counts",
        "display",
        "categories",
        "hierarchy",
        "extra",
        "standard_error",
        "interval",
        "bounds",
        "partial",
        "note",
    } == series.keys()
    assert {"total", "evaluated", "error", "unavailable", "invalidated"} == series["counts"].keys()
    assert {"low", "high", "level", "method", "note"} == series["interval"].keys()
    assert {"value", "reference_value", "counts", "aggregation_weight"} < series["categories"]["x"].keys()
    assert {"label": "Steps", "description": "How many", "unit": "1", "precision": 2} == document["series"][2][
        "display"
    ]
    assert ("avg", "category_hierarchy", 3) == (document["strategy"], document["aggregation"], document["k"])
    assert ("correct.avg@3", "binary_success", "avg", "headline") == tuple(
        series[name] for name in ("series_id", "kind", "reducer", "role")
    )


def test_words_are_plain_text(report):
    """Enumerations are written as text, not as objects that only look like it."""
    series = report.document()["series"][0]

    assert [str, str, str] == [type(series[name]) for name in ("kind", "reducer", "role")]


def test_values_of_groups_and_points_are_where_readers_expect_them(report):
    """A score's fields stand beside those of what it scores."""
    document = report.document()

    assert pytest.approx(5 / 6) == document["series"][0]["categories"]["x"]["reference_value"]
    assert "score" not in document["series"][0]["hierarchy"]["/overall"]
    assert {"j", "value", "reference_value", "standard_error", "interval"} == document["curves"][0]["points"][0].keys()


def test_a_document_is_the_same_each_time(run):
    """Two aggregations of the same observations are equal to the byte."""
    assert json.dumps(run(FIVE).document()) == json.dumps(run(FIVE).document())


def test_numbers_that_json_lacks_become_null(run):
    """Whatever a benchmark puts into extra, no NaN reaches the file."""
    from dataclasses import replace

    report = replace(run({"a": "1"}), extra={"ratio": float("nan"), "all": (1, float("inf"), "x"), 3: True})

    assert {"ratio": None, "all": [1, None, "x"], "3": True} == report.document()["extra"]


def test_the_headline_is_the_first_series_of_the_primary_metric(report):
    """The terminal shows it."""
    assert ("correct", "headline") == (report.headline.metric_id, report.headline.role)
    assert report.evaluation_failed
