"""The record of a run, and the request in it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.documents import problems

from agentcompass.core.config.sections import parse_execution, parse_selection
from agentcompass.core.metrics.contract import binary_contract
from agentcompass.core.model.environment import EnvironmentSpec
from agentcompass.core.model.network import NetworkMode, NetworkPolicy
from agentcompass.core.model.plan import Budget, EvaluationMode, Plan
from agentcompass.core.model.request import Choice, ModelSpec, Output, RunRequest
from agentcompass.core.model.task import RejectedItem
from agentcompass.core.records.run_info import RunInfo, params_document, plan_document, request_document
from agentcompass.core.runtime.ledger import retry_policy

EXECUTION = parse_execution({})[0]
REQUEST = RunRequest(
    Choice("b", {"depth": None, "tags": [], "nested": {"x": {}}, "_hidden": 1, "kept": ""}),
    Choice("h"),
    Choice("e", {"_session": "x", "cpu": 2}),
    ModelSpec("m", "", "", ("openai-chat", "other"), {"temperature": 0, "_client": object()}),
    parse_selection({"limit": 3}, "b")[0],
    EXECUTION,
    Output("", "r"),
)
PLAN = Plan(
    "docker",
    EnvironmentSpec(NetworkPolicy(NetworkMode.ALLOWLIST, ("a.org",)), image="debian:12"),
    EvaluationMode.FRESH,
    True,
    EXECUTION.attempts,
    Budget(20.0, 10.0, 2.0, "task t"),
    120.0,
    None,
    60.0,
    None,
    retry_policy(EXECUTION),
    binary_contract(),
    False,
    NetworkPolicy(NetworkMode.ALLOWLIST, ("a.org",)),
    NetworkPolicy(NetworkMode.ALLOWLIST, ("a.org",)),
)


def _same(document):
    return document


def _info():
    started = "2026-01-02T03:04:05+00:00"
    return RunInfo("r", started, request_document(REQUEST), {"python": "3"}, binary_contract())


@pytest.mark.seed("RR-07", "RR-09")
def test_the_request_drops_what_says_nothing():
    """Nulls, empty containers and private keys are left out; empty texts, zeros and false stay."""
    document = request_document(REQUEST)

    assert {"aggregation_mode": "micro_weighted", "kept": "", "limit": 3} == document["benchmark"]["params"]
    assert {"id": "h"} == document["harness"]
    assert {"id": "e", "params": {"cpu": 2}} == document["environment"]
    assert {"temperature": 0} == document["model"]["params"]
    assert ["openai-chat", "other"] == document["model"]["api_protocol"]
    assert "run_timeout_seconds" not in document["execution"]
    assert document["execution"]["keep_environment"] is False
    assert "metadata" not in document


def test_no_model_and_no_protocol():
    """A run without a model has no such section; a model without a protocol has an empty one."""
    assert "model" not in request_document(replace(REQUEST, model=None))
    assert "" == request_document(replace(REQUEST, model=ModelSpec("m")))["model"]["api_protocol"]


def test_params_are_the_part_for_a_summary():
    """Only model, benchmark, attempts and output; what is unset in them is left out."""
    document = params_document(REQUEST)

    assert {
        "model": {"id": "m", "api_protocol": ["openai-chat", "other"], "params": {"temperature": 0}},
        "benchmark": request_document(REQUEST)["benchmark"],
        "execution": {"attempts": {"k": 1, "strategy": "avg"}},
        "output": {"run_id": "r"},
    } == document
    assert [] == problems("params.v1", document)


@pytest.mark.seed("CP-05", "TO-03")
def test_a_plan_tells_its_budgets_and_policies():
    """A plan keeps its nulls and empties, and names the source of each budget."""
    document = plan_document(PLAN)

    assert [] == problems("plan.v1", {"task_id": "t", "attempt": 1, "plan": document})
    assert (20.0, None) == (document["run_timeout_seconds"], document["evaluation_timeout_seconds"])
    assert "task t" == document["budgets"]["run"]["source"]
    assert document["environment"] == document["evaluation_environment"]
    policy = {"network_mode": "allowlist", "allowed_hosts": ["a.org"], "denied_hosts": []}
    assert [policy] * 3 == [
        document["environment"]["network_policy"],
        document["run_network_policy"],
        document["verifier_network_policy"],
    ]


@pytest.mark.parametrize("mode", [EvaluationMode.NONE, EvaluationMode.REUSE])
def test_only_a_fresh_grading_has_an_environment_of_its_own(mode):
    """Grading without a sandbox, or in the run's, plans no other one."""
    assert plan_document(replace(PLAN, evaluation_mode=mode))["evaluation_environment"] is None


def test_the_record_is_due_at_growing_intervals():
    """It asks to be written after 1, 4, 16, 64, ... plans, so that the cost per attempt stays the same."""
    info = _info()
    document = plan_document(PLAN)
    due = [n for n in range(1, 1100) if info.add_plan(f"t{n}", 1, document)]

    assert [1, 4, 16, 64, 256, 1024] == due


def test_every_plan_is_in_the_record():
    """Plans are found by task and attempt, equal ones and different ones alike; a later one of an attempt counts."""
    info = _info()
    short = plan_document(replace(PLAN, run=None))
    info.add_plan("t", 1, plan_document(PLAN))
    info.add_plan("t", 2, plan_document(PLAN))
    info.add_plan("u", 1, plan_document(PLAN))
    info.add_plan("u", 1, short)
    plans = info.document(_same)["resolved_execution_plans"]

    assert {
        "t": {"attempts": {"1": plan_document(PLAN), "2": plan_document(PLAN)}},
        "u": {"attempts": {"1": short}},
    } == plans


def test_the_record_grows_with_the_run():
    """At first there is no end and no plan; what is added later is there, valid at every point."""
    info = _info()
    first = info.document(_same)
    info.add_plan("t", 1, plan_document(PLAN))
    info.reject([RejectedItem("data:1", "no id")])
    info.finish(
        "failed", "2026-01-02T03:05:05+00:00", "why", {"k": 1, "strategy": "avg", "aggregation": "micro_weighted"}
    )
    last = info.document(_same)

    assert {"schema_version", "run_id", "started_at", "request", "versions", "metric_contract"} == set(first)
    assert [{"where": "data:1", "reason": "no id"}] == last["rejected_items"]
    assert ("failed", "why", "evaluation") == (last["status"], last["error"], last["metric_artifacts"]["source"])
    assert [[], []] == [problems("run_info.v3", document) for document in (first, last)]


def test_a_completed_run_has_no_error():
    """Without an error the field is absent, and without numbers so are their settings."""
    info = _info()
    info.finish("completed", "2026-01-02T03:05:05+00:00", None, None)

    assert not {"error", "metric_artifacts"} & set(info.document(_same))
    assert [] == problems("run_info.v3", info.document(_same))


def test_what_comes_late_is_redacted_too():
    """The end of a run, and items of data, pass the redactor before they are in the record."""
    info = _info()
    info.reject([RejectedItem("data:1", "secret")])
    info.finish("failed", "2026-01-02T03:05:05+00:00", "secret", None)
    document = info.document(lambda value: json.loads(json.dumps(value).replace("secret", "hidden")))

    assert ("hidden", "hidden") == (document["error"], document["rejected_items"][0]["reason"])
