"""Every field of every section, by the tables that define them: a new field is tested by being there."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest

from agentcompass.core.config.artifacts import COMMAND, LIMITS
from agentcompass.core.config.environment import RESOURCES, SETUP
from agentcompass.core.config.fields import parse_section
from agentcompass.core.config.sections import (
    ATTEMPTS,
    EXECUTION,
    RUNTIME,
    SELECTION,
    parse_execution,
    parse_runtime,
    parse_selection,
)
from agentcompass.core.errors import UsageError
from agentcompass.core.model.request import AttemptPlan, Execution, Runtime, Strategy, TaskSelection

NAN, INF = float("nan"), float("inf")
NUMBERS = [0, -1, -0.5, NAN, INF, -INF, 10**400, 0.5, 1, 2.0]
OTHERS = ["x", "1", "", True, False, None, [], [1], ["a"], ["("], {}, {"k": 1}, {"docker": "x"}, {"docker": -1}, b"1"]
VALUES = [*NUMBERS, *OTHERS]


def _number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def _finite(value):
    return _number(value) and abs(value) < 10**308 and math.isfinite(value)


def _positive(value):
    return _finite(value) and value > 0


def _whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _text(value):
    return isinstance(value, str)


def _one_of(*words):
    return lambda value: isinstance(value, str) and value.lower() in words


def _table(item):
    return lambda value: value is None or (isinstance(value, dict) and all(map(item, value.values())))


def _or_none(kind):
    return lambda value: value is None or kind(value)


def _patterns(value):
    return value is None or (
        isinstance(value, list) and all(isinstance(entry, str) and entry != "(" for entry in value)
    )


def _ids(value):
    items = value if isinstance(value, list) else [value]
    return value is None or all(isinstance(item, str | int) and not isinstance(item, bool) for item in items)


def _attempts(value):
    return value is None or (isinstance(value, dict) and set(value) <= {"k", "strategy"})


#: What a field takes, by the word for its type that people see.
TAKES = {
    "integer": lambda value: _whole(value) and value >= 1,
    "integer or null": _or_none(lambda value: _whole(value) and value >= 1),
    "boolean": lambda value: isinstance(value, bool),
    "seconds": _positive,
    "seconds or null": _or_none(_positive),
    "factor": _positive,
    "factor or null": _or_none(_positive),
    "path": _text,
    "path or null": _or_none(_text),
    "text": _text,
    "boolean or null": _or_none(lambda value: isinstance(value, bool)),
    "number or null": _or_none(_positive),
    "list of recipe ids": lambda value: isinstance(value, list) and all(_text(item) for item in value),
    "id of a store": _text,
    "text or null": _or_none(_text),
    "mapping": _attempts,
    "mapping or null": _or_none(lambda value: isinstance(value, dict)),
    "list of regular expressions or null": _patterns,
    "list of task ids or null": _ids,
    "mapping from environment to integer": _table(lambda value: _whole(value) and value >= 0),
    "mapping from environment to number": _table(lambda value: _finite(value) and value >= 0),
    "avg | pass": _one_of("avg", "pass"),
    "auto | plain | none": _one_of("auto", "plain", "none"),
    "level": _one_of("debug", "info", "warning", "error", "critical"),
    "micro_weighted | category_mean | category_hierarchy": _one_of(
        "micro_weighted", "category_mean", "category_hierarchy"
    ),
}
#: Fields that take 0 where others of their type do not.
ZERO = {("execution", "max_retries"), ("runtime", "timeout_seconds"), ("runtime", "cleanup_grace_seconds")}
SECTIONS = {
    "execution": EXECUTION,
    "runtime": RUNTIME,
    "selection": SELECTION,
    "attempts": ATTEMPTS,
    "setup": SETUP,
    "resources": RESOURCES,
    "artifact_limits": LIMITS,
    "artifact_collect": COMMAND,
}
#: Fields with a shape of their own, which have tests of their own.
SHAPED = {"artifacts", "artifact_collect", "artifact_limits"}
CASES = [(section, field) for section, table in SECTIONS.items() for field in table if field.name not in SHAPED]


@pytest.mark.seed("CL-06", "TO-02", "TO-08")
@pytest.mark.parametrize(("section", "field"), CASES, ids=lambda value: getattr(value, "name", value))
def test_a_field_takes_what_its_type_says_and_nothing_else(section, field):
    """Zeros, negatives, NaN, infinities, flags, texts and containers are refused by name where they have no meaning."""
    takes, wrong = TAKES[field.kind], []
    for value in VALUES:
        expected = takes(value) or ((section, field.name) in ZERO and _number(value) and value == 0)
        try:
            parse_section(SECTIONS[section], {field.name: value}, section)
        except UsageError as refused:
            assert refused.field.startswith(f"{section}.{field.name}")
            assert refused.problem
            taken = False
        else:
            taken = True
        if taken is not expected:
            wrong.append(value)

    assert [] == wrong


@pytest.mark.parametrize(("section", "field"), CASES, ids=lambda value: getattr(value, "name", value))
def test_a_default_is_what_its_field_takes(section, field):
    """A field left out has the value that giving its default would make, and is explained."""
    if field.default is not None and not isinstance(field.default, AttemptPlan):
        assert field.default == field.parse(field.default, "x")
    assert field.default == parse_section(SECTIONS[section], {}, section)[field.name]
    assert field.meaning.endswith(".")
    assert field.kind in TAKES


@pytest.mark.parametrize(
    ("table", "kind"), [(EXECUTION, Execution), (RUNTIME, Runtime), (SELECTION, TaskSelection), (ATTEMPTS, AttemptPlan)]
)
def test_a_section_has_the_fields_of_its_value(table, kind):
    """Nothing that can be configured is lost on the way, and nothing else is needed."""
    assert [field.name for field in fields(kind)] == [field.name for field in table]


@pytest.mark.seed("CL-06")
@pytest.mark.parametrize(
    ("parse", "given", "message"),
    [
        (parse_execution, {"max_retry": 1}, "execution.max_retry: unknown key; did you mean 'max_retries'?"),
        (parse_execution, {"attempts": {"n": 1}}, "execution.attempts.n: unknown key; known: k, strategy"),
        (
            parse_execution,
            {"attempts": {"stratgy": "avg"}},
            "execution.attempts.stratgy: unknown key; did you mean 'strategy'?",
        ),
        (
            parse_runtime,
            {"Timeout_Seconds": 1},
            "runtime.Timeout_Seconds: unknown key; did you mean 'timeout_seconds'?",
        ),
        (parse_runtime, {"provider_limit": {}}, "runtime.provider_limit: unknown key; did you mean 'provider_limits'?"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(parse, given, message):
    """The full path of the key is told, and what was probably meant."""
    with pytest.raises(UsageError) as refused:
        parse(given)

    assert message == str(refused.value)


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"attempts": {"k": 0}}, "execution.attempts.k", "0 is not a whole number from 1 up"),
        ({"task_concurrency": 1.0}, "execution.task_concurrency", "1.0 is not a whole number"),
        ({"run_timeout_seconds": "60"}, "execution.run_timeout_seconds", "'60' is not a finite positive number"),
        ({"retry_pattern_list": "oops"}, "execution.retry_pattern_list", "'oops' is not a list"),
        ({"retry_pattern_list": ["a", 1]}, "execution.retry_pattern_list[1]", "1 is not text"),
        ({"retry_pattern_list": ["a", "["]}, "execution.retry_pattern_list[1]", "'[' is not a regular expression"),
        ({"retry_pattern_list": ["a{99999999999}"]}, "execution.retry_pattern_list[0]", "is not a regular expression"),
        ({"keep_environment": 1}, "execution.keep_environment", "1 is neither true nor false"),
        (
            {"attempts": {"strategy": "best"}},
            "execution.attempts.strategy",
            "'best' is not a choice; choose from avg, pass",
        ),
    ],
)
def test_a_refusal_names_the_field_and_the_value(given, field, words):
    """What is wrong can be found and mended from the message alone."""
    with pytest.raises(UsageError) as refused:
        parse_execution(given)

    assert field == refused.value.field
    assert words in str(refused.value)


@pytest.mark.seed("ER-04", "TO-01", "TO-03", "TO-04", "TO-05", "TO-06")
def test_the_defaults_of_the_guide():
    """What the user guide promises holds when nothing is configured."""
    execution, warnings = parse_execution({})
    runtime = parse_runtime({})

    assert (32, AttemptPlan(1, Strategy.AVG), 0, None) == (
        execution.task_concurrency,
        execution.attempts,
        execution.max_retries,
        execution.retry_pattern_list,
    )
    assert (None, None, 1.0, None, None, 120.0, 60.0) == (
        execution.run_timeout_seconds,
        execution.evaluation_timeout_seconds,
        execution.timeout_multiplier,
        execution.run_timeout_multiplier,
        execution.evaluation_timeout_multiplier,
        execution.run_timer_compensation_seconds,
        execution.runresult_collect_timeout_seconds,
    )
    assert (360000.0, "results", "auto", "INFO", "DEBUG") == (
        runtime.timeout_seconds,
        runtime.results_dir,
        runtime.progress,
        runtime.log_level,
        runtime.file_log_level,
    )
    assert [] == warnings


@pytest.mark.seed("TO-05")
def test_the_former_name_of_the_collection_budget():
    """The older name still works, with a warning; both names may say the same."""
    old = parse_execution({"harness_result_timeout_seconds": 7})
    both = parse_execution({"harness_result_timeout_seconds": 7, "runresult_collect_timeout_seconds": 7})
    words = "execution.harness_result_timeout_seconds is deprecated: use execution.runresult_collect_timeout_seconds"

    assert [(7.0, [words])] * 2 == [(e.runresult_collect_timeout_seconds, warnings) for e, warnings in (old, both)]


@pytest.mark.seed("TO-05")
def test_two_names_with_two_values_are_refused():
    """Nobody guesses which of them was meant."""
    with pytest.raises(UsageError, match="former name of runresult_collect_timeout_seconds, which differs"):
        parse_execution({"harness_result_timeout_seconds": 7, "runresult_collect_timeout_seconds": 8})


@pytest.mark.seed("TO-05", "TO-08")
def test_the_former_name_takes_what_the_present_one_takes():
    """A wrong value is refused under either name."""
    with pytest.raises(UsageError, match="runresult_collect_timeout_seconds: 0 is not a finite positive number"):
        parse_execution({"harness_result_timeout_seconds": 0})


def test_delays_may_not_contradict_each_other():
    """The longest wait is not below the first one."""
    with pytest.raises(
        UsageError, match=r"retry_max_delay_seconds: 4 is below retry_min_delay_seconds; give 5 or more"
    ):
        parse_execution({"retry_max_delay_seconds": 4})


def test_words_are_taken_in_any_case():
    """A level or a mode is found whatever its capitals, and keeps the documented spelling."""
    assert ("WARNING", "plain") == (
        parse_runtime({"log_level": "warning"}).log_level,
        parse_runtime({"progress": "PLAIN"}).progress,
    )


@pytest.mark.parametrize(
    ("given", "ids"),
    [("a", ("a",)), (7, ("7",)), (["a", 7], ("a", "7")), ([], ()), (None, None)],
)
def test_task_ids_are_texts(given, ids):
    """One id needs no list, and a number is an id too."""
    assert ids == parse_selection({"sample_ids": given}, "benchmarks.b")[0].sample_ids


def test_selection_leaves_the_benchmarks_own_parameters():
    """What every benchmark has is taken out; the rest is for the benchmark's own schema."""
    selection, own = parse_selection({"limit": 2, "depth": 3, "cluster_by": "category"}, "benchmarks.b")

    assert (2, "category", {"depth": 3}) == (selection.limit, selection.cluster_by, own)


def test_a_hierarchy_that_is_asked_for_must_be_there():
    """Aggregating by a tree needs the tree."""
    with pytest.raises(UsageError, match=r"benchmarks\.b\.category_hierarchy: is missing"):
        parse_selection({"aggregation_mode": "category_hierarchy"}, "benchmarks.b")
