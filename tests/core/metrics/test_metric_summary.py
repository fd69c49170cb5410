"""summary.md: numbers that a reader can add up, and text of users that stays text."""

from __future__ import annotations

import pytest

from agentcompass.core.metrics.aggregate import aggregate
from agentcompass.core.metrics.contract import MetricKind, MetricSpec, binary_contract
from agentcompass.core.metrics.markdown import digits, escaped, number
from agentcompass.core.metrics.observation import TaskKey
from agentcompass.core.metrics.summary import counts_text, headline_text, summary_markdown
from agentcompass.core.model.request import AttemptPlan, Strategy
from agentcompass.core.model.result import Usage

FIVE = {"a": "111", "b": "101", "c": "000", "d": "110", "e": "010"}


def test_the_headline_has_its_interval_and_size(run):
    """Value, error, interval, tasks and attempts in one line."""
    assert "0.533 ± 0.170 (95 % CI 0.06–1.00, n=5 tasks × 3)" == headline_text(run(FIVE))


def test_a_sure_headline_has_more_digits(run):
    """The digits follow the standard error, up to the metric's precision."""
    tasks = {f"t{place}": "1" if place % 4 else "0" for place in range(4000)}

    assert "0.7500 ± 0.0068 (95 % CI 0.7363–0.7632, n=4000 tasks)" == headline_text(run(tasks))


def test_a_headline_without_interval_says_why(run):
    """One task of three attempts."""
    assert "0.667 (no interval: a single task shows no spread, n=1 task × 3)" == headline_text(run({"a": "110"}))


def test_a_headline_without_value_says_so(run):
    """Nothing was evaluated."""
    assert "no score: no task was evaluated" == headline_text(run({"a": ".", "b": "F"}))


@pytest.mark.seed("ER-07")
def test_a_failed_evaluation_is_marked_everywhere(run):
    """The headline, the table and the closing note say that nothing is official."""
    report = run({"a": "1", "b": "T", "c": "F"})
    text = summary_markdown(report, {})

    assert headline_text(report).endswith("(reference)")
    assert "| correct | headline | the value | 1.0000 (reference) |" in text
    assert text.endswith(
        "**No official score: FATAL issues invalidated 2 of 3 tasks. "
        "Values marked (reference) cover the remaining tasks only.**\n"
    )


def test_an_official_summary_has_no_reference(run):
    """Neither marks nor note appear in a valid run."""
    text = summary_markdown(run(FIVE), {})

    assert "(reference)" not in text
    assert "No official score" not in text


def test_counts_are_shown_as_a_sum(run):
    """Tasks by state, and the attempts with errors."""
    assert (
        "5 tasks = 2 evaluated + 2 unavailable + 1 invalidated; 3 of 4 finished attempts ended with ERROR or FATAL"
    ) == counts_text(run({"a": "1", "b": "S", "c": "E", "d": ".", "e": "F"}))


def test_title_and_facts_come_first(run):
    """The benchmark titles the summary; the facts keep their order."""
    lines = summary_markdown(run({"a": "1"}), {"Benchmark": "demo|1", "Model": "m/x_1", "Run id": "r"}).splitlines()

    assert ["# DEMO\\|1 Evaluation Results", "", "| Fact | Value |", "| --- | --- |"] == lines[:4]
    assert ["| Benchmark | demo\\|1 |", "| Model | m/x_1 |", "| Run id | r |"] == lines[4:7]


def test_several_attempts_have_a_plan_and_curves(run):
    """The attempt plan adds up, and both curves have a table."""
    text = summary_markdown(run(FIVE), {})

    assert "k=3, strategy avg; 15 planned = 15 finished + 0 not needed + 0 missing." in text
    assert "| correct (avg@3) | headline | mean of k attempts | 0.5333 | 0.1700 | 0.0614–1.0000 | 5 |" in text
    assert "## Curve: correct.pass@j" in text
    assert "| 2 | 0.7333 |" in text
    assert "## Curve: correct.pass^j" in text
    assert "| 2 | 0.3333 |" in text


def test_one_attempt_has_neither(run):
    """A single attempt needs no plan and has no curve."""
    text = summary_markdown(run({"a": "1", "b": "0"}), {})

    assert "Attempt plan" not in text
    assert "Curve" not in text


def test_missing_tasks_show_their_bounds_and_partial_mean(run):
    """What is missing, what it could change, and what is known without being official."""
    text = summary_markdown(run({"a": "11", "b": "1.", "c": "..", "d": "00"}), {})

    assert "2 of 4 tasks have no value: with all of them at worst 0.2500, at best 0.7500." in text
    assert "Partial mean, not official: 0.6667 over 3 tasks, 1 of them with fewer than 2 values." in text


def test_categories_have_a_table(run):
    """A row for each category, escaped, with `-` where there is no value; a single category needs none."""
    text = summary_markdown(run({"a": "1", "b": "."}, categories={"a": "x|y\n`z`"}), {})

    assert "| x\\|y \\`z\\` | 1.0000 | 0.2065–1.0000 | 1.0000 | 1 | 0 | 0 | 0 | 1 |" in text
    assert "| \\_\\_uncategorized\\_\\_ | - | - | 0.0000 | 0 | 1 | 0 | 0 | 1 |" in text
    assert "Details" not in summary_markdown(run({"a": "1", "b": "0"}), {})


def test_the_hierarchy_has_a_table_and_a_note(run):
    """A row for each node; what the value leaves out is said, and does not count as covered."""
    report = run(
        {"a": "1", "b": "0", "c": "1"},
        categories={"a": "x", "b": "x", "c": "*other*"},
        mode="category_hierarchy",
        hierarchy={"overall": {"aggregation": "unweighted", "children": {"x": {}}}},
    )
    text = summary_markdown(report, {})

    assert "| /overall/x | 0.5000 |" in text
    assert "left out, not in the hierarchy: '\\*other\\*'" in text
    assert "n=2 tasks" in headline_text(report)


def test_names_in_notes_are_escaped(run):
    """The name of a category reaches the headline's note; there too it is text."""
    report = run({"a": "1", "b": "0", "c": "1"}, categories={"c": "<b>|"}, mode="category_mean")

    assert "'<b>|': a single task shows no spread" in headline_text(report)
    assert "'&lt;b&gt;\\|': a single task shows no spread" in summary_markdown(report, {})


def test_resources_have_a_table(observe):
    """Known quantities only, with their coverage, the price of a success and the retries."""
    report = aggregate(
        contract=binary_contract(MetricSpec("steps", MetricKind.SCALAR)),
        plan=AttemptPlan(1, Strategy.AVG),
        tasks=[TaskKey("a"), TaskKey("b"), TaskKey("c")],
        observations=[
            observe("a", correct=True, usage=Usage(prompt_tokens=10, cost_usd=0.25), retries=1),
            observe("b", correct=False, usage=Usage(prompt_tokens=10)),
        ],
        mode="micro_weighted",
        hierarchy=None,
    )
    text = summary_markdown(report, {})

    assert "| prompt_tokens (tokens) | 10.0 | - | 2 | 20 | 2 |" in text
    assert "| cost_usd (USD) | 0.2500 | - | 1 | 0.2500 | 1 |" in text
    assert "seconds" not in text
    assert "Tasks: of 2 with all their attempts. Attempts: of 2 finished." in text
    assert "Cost per success: $0.2500 (1 successes)." in text
    assert "Retries: 1, of 1 attempts; 1 tasks show an attempt that was a retry." in text


def test_tables_are_rectangular(run):
    """Every row has as many cells as its header, whatever the names."""
    text = summary_markdown(run(FIVE, categories={"a": "p|q", "b": "\\|", "c": "``"}), {"x|y": "a\r\nb"})
    width = None
    for line in text.splitlines():
        cells = line.replace("\\\\", "").replace("\\|", "").count("|") if line.startswith("|") else None
        assert width is None or cells is None or width == cells
        width = cells


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text-1.5", "plain text-1.5"),
        ("a|b", "a\\|b"),
        ("a\\|b", "a\\\\\\|b"),
        ("a\nb\r\n c\t", "a b c"),
        ("`x` *y* [z](u) ~s~", "\\`x\\` \\*y\\* \\[z\\](u) \\~s\\~"),
        ("snake_case_", "snake_case\\_"),
        ("__x__", "\\_\\_x\\_\\_"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("\x1b[31mred\x00", "\ufffd\\[31mred\ufffd"),
        ("\u202egnp", "\ufffdgnp"),
        ("\udc80", "\ufffd"),
        ("größe 数学", "größe 数学"),
    ],
)
def test_text_stays_text(text, expected):
    """Markup, line breaks, control, direction and broken characters lose their power; letters keep theirs."""
    assert expected == escaped(text)


def test_long_text_is_cut():
    """A cell has at most its length, and shows that it was longer."""
    assert ("ab…", "abc") == (escaped("abcd", 3), escaped("abc", 3))
    assert 200 == len(escaped("x" * 1000))


@pytest.mark.parametrize(
    ("value", "precision", "expected"),
    [(None, 4, "-"), (0.5, 4, "0.5000"), (-0.00001, 2, "0.00"), (1e300, 4, "1e+300"), (12, 0, "12"), (2.5, 1, "2.5")],
)
def test_numbers_are_short(value, precision, expected):
    """A missing number is a dash, none is minus zero, none is hundreds of digits long."""
    assert expected == number(value, precision)


@pytest.mark.parametrize(
    ("error", "expected"), [(None, 2), (0.0, 2), (0.17, 2), (0.0068, 4), (0.0001, 4), (12.0, 0), (0.9, 2)]
)
def test_digits_follow_the_error(error, expected):
    """Two digits of the error, at most four here."""
    assert expected == digits(error, 4)
