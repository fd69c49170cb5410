"""The schemas themselves: valid, complete, closed, explained, and in step with the code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support.documents import SCHEMAS, registry

from agentcompass import schemas
from agentcompass.core.metrics.contract import MetricKind, MetricSpec
from agentcompass.core.model.issue import IssuePhase, Severity
from agentcompass.core.model.network import NetworkMode
from agentcompass.core.model.plan import EvaluationMode
from agentcompass.core.model.request import Execution, Strategy
from agentcompass.core.model.result import ResultStatus, Usage
from agentcompass.core.retry import Scope
from agentcompass.core.runtime.phases import Phase
from agentcompass.core.runtime.run import RunState

NAMES = schemas.names()
#: What only lies below an `unevaluatedProperties` of its users.
SHARED = ("$defs.execution", "$defs.result", "$defs.discarded")


def _objects(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every sub-schema that names properties, with the way to it."""
    if isinstance(schema, dict):
        conditional = path.rpartition(".")[2] in ("if", "then")
        if "properties" in schema and isinstance(schema["properties"], dict) and not conditional:
            yield path, schema
        for key, value in schema.items():
            yield from _objects(value, f"{path}.{key}" if path else key)
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from _objects(value, f"{path}.{index}")


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def test_every_file_has_a_schema_and_every_schema_a_file():
    """The schemas on the shelf are those of the files of a run."""
    assert sorted(SCHEMAS.values()) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_schema_is_valid(name):
    """A schema obeys its dialect, and is called by its name."""
    schema = schemas.schema(name)

    Draft202012Validator.check_schema(schema)
    assert f"urn:agentcompass:schema:{name}" == schema["$id"]


@pytest.mark.parametrize("name", NAMES)
def test_references_lead_somewhere(name):
    """Each reference of a schema can be followed with the shelf alone."""
    schema = schemas.schema(name)
    resolver = registry().resolver(base_uri=schema["$id"])

    assert [] == [ref for ref in _references(schema) if not isinstance(resolver.lookup(ref).contents, dict)]


@pytest.mark.parametrize("name", NAMES)
def test_schema_explains_every_field(name):
    """A schema documents: it has a title, and each of its fields a description."""
    schema = schemas.schema(name)
    missing = [
        f"{path}.{key}"
        for path, found in _objects(schema)
        for key, field in found["properties"].items()
        if isinstance(field, dict) and not field.get("description") and path.count("allOf") == 0
    ]

    assert schema["title"]
    assert schema["description"]
    assert [] == missing


@pytest.mark.parametrize("name", NAMES)
def test_schema_is_closed(name):
    """An object whose fields are ours takes no others."""
    open_ones = [
        path
        for path, found in _objects(schemas.schema(name))
        if not {"additionalProperties", "unevaluatedProperties"} & set(found)
        if path not in SHARED and ".allOf." not in f".{path}"
    ]

    assert [] == open_ones


def test_unknown_name_is_no_schema():
    """A name that nobody gave is refused, not guessed."""
    with pytest.raises(FileNotFoundError):
        schemas.schema("run_info.v0")


def _words(name: str, *way: str) -> set[str]:
    found = schemas.schema(name)
    for step in way:
        found = found[step]
    return set(found["enum"])


RESULT = ("$defs", "execution", "properties")
ISSUE = ("$defs", "issue", "properties")
PLAN = ("$defs", "plan", "properties")
EVENT = ("$defs", "attempt_retry", "properties")


@pytest.mark.parametrize(
    ("code", "found"),
    [
        (ResultStatus, _words("attempt.v3", *RESULT, "status")),
        (Severity, _words("attempt.v3", *ISSUE, "severity")),
        (IssuePhase, _words("attempt.v3", *ISSUE, "phase")),
        (EvaluationMode, _words("plan.v1", *PLAN, "evaluation_environment_mode")),
        (NetworkMode, _words("plan.v1", "$defs", "network_policy", "properties", "network_mode")),
        (Scope, _words("event.v1", *EVENT, "scope")),
        (Strategy, _words("run_info.v3", "$defs", "attempts", "properties", "strategy")),
        (MetricKind, _words("run_info.v3", "$defs", "metric", "properties", "kind")),
        (set(RunState) - {RunState.CREATED}, _words("progress.v1", "properties", "status")),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_words_are_those_of_the_code(code, found):
    """A choice of words in a schema is the enumeration that the code uses."""
    assert {str(word) for word in code} == found


def test_phases_of_the_code_are_documented():
    """Every phase that the runtime enters is one that events may name."""
    phases = next(
        rule["then"]["properties"]["phase"]["enum"]
        for rule in schemas.schema("event.v1")["allOf"]
        if rule["if"]["properties"]["event"]["const"] == "phase_changed"
    )

    assert {str(phase) for phase in Phase} <= set(phases)
    assert {"collect_artifacts", "analyze"} <= set(phases)


@pytest.mark.seed("RR-01")
@pytest.mark.parametrize(
    ("kind", "way", "beyond"),
    [
        (Execution, ("execution",), {"enabled_recipes", "enable_analysis", "analysis_params"}),
        (MetricSpec, ("metric",), set()),
    ],
)
def test_recorded_values_have_the_fields_of_their_class(kind, way, beyond):
    """A new field of a value cannot reach the record without reaching its schema; the seeds' own are allowed too."""
    found = schemas.schema("run_info.v3")["$defs"]
    for step in way:
        found = found[step]

    assert {field.name for field in fields(kind)} | beyond == set(found["properties"])


def test_usage_has_the_fields_of_its_class():
    """What may be consumed is what the schema lists."""
    assert {field.name for field in fields(Usage)} == set(schemas.schema("attempt.v3")["$defs"]["usage"]["properties"])
