"""Each phase has its network: opened with the baseline, switched for the agent, and for the grader."""

from __future__ import annotations

import json

import pytest

LISTED = {"network_mode": "allowlist", "allowed_hosts": ["a.org", "*.b.org"]}


def _run(toys, mode="reuse", networks="dynamic", **policies):
    ran = toys.run({"a": {}}, env_params={"networks": networks, **policies}, mode=mode)
    return ran, toys.board.networks


@pytest.mark.seed("CP-05")
@pytest.mark.parametrize(
    ("policies", "mode", "course"),
    [
        ({}, "reuse", "open public|run|grade"),
        ({"network_policy": "no-network"}, "reuse", "open no-network|run|grade"),
        ({"run_network_policy": "no-network"}, "reuse", "open public|no-network|run|public|grade"),
        ({"run_network_policy": "no-network"}, "none", "open public|no-network|run|grade"),
        ({"verifier_network_policy": "no-network"}, "reuse", "open public|run|no-network|grade"),
        (
            {"network_policy": "no-network", "run_network_policy": LISTED, "verifier_network_policy": "public"},
            "reuse",
            "open no-network|allowlist|run|public|grade",
        ),
        ({"run_network_policy": "no-network"}, "fresh", "open public|no-network|run|open public|grade"),
        (
            {"evaluation_environment_network_policy": "no-network"},
            "fresh",
            "open public|run|open no-network|grade",
        ),
        (
            {"evaluation_environment_network_policy": "public", "verifier_network_policy": LISTED},
            "fresh",
            "open public|run|open public|allowlist|grade",
        ),
    ],
)
def test_the_network_of_each_phase(toys, policies, mode, course):
    """A sandbox is switched where the policies differ, and only there."""
    ran, seen = _run(toys, mode, **policies)

    assert course.split("|") == seen
    assert 0 == ran.status


@pytest.mark.seed("CP-05", "RR-02")
def test_the_plan_tells_all_policies(toys):
    """As run-records says: preparation, run, verification."""
    ran, _ = _run(toys, run_network_policy=LISTED, verifier_network_policy="no-network")
    plan = json.loads((ran.run_dir / "plans.jsonl").read_text("utf-8"))["plan"]

    assert "public" == plan["environment"]["network_policy"]["network_mode"]
    assert {**LISTED, "denied_hosts": []} == plan["run_network_policy"]
    assert "no-network" == plan["verifier_network_policy"]["network_mode"]


@pytest.mark.parametrize("mode", ["reuse", "none"])
def test_a_provider_that_cannot_switch_is_not_asked_to(toys, mode):
    """The attempt fails in its plan, before anything is opened."""
    ran, seen = _run(toys, mode, "static", run_network_policy="no-network")
    (issue,) = ran.details()["a"]["attempts"]["1"]["issues"]

    assert [] == seen
    assert "cannot switch an open sandbox from 'public' to 'no-network'" in issue["message"]


@pytest.mark.seed("CP-05")
@pytest.mark.parametrize(
    ("policy", "part"),
    [
        ("no-network", "Network access in this environment: none."),
        (LISTED, "Network access in this environment: only these can be reached"),
        ({"network_mode": "denylist", "denied_hosts": ["c.org"]}, "these cannot be reached: c.org"),
    ],
)
def test_the_agent_is_told_in_its_prompt(toys, policy, part):
    """A paragraph at the end, after what the task says; nothing where everything is open."""
    toys.run({"a": {"prompt": "do it"}}, env_params={"networks": "dynamic", "run_network_policy": policy})
    toys.run({"a": {"prompt": "do it"}}, env_params={"networks": "dynamic", "network_policy": "public"})
    told, plain = toys.board.prompts

    assert told.startswith("do it\n\n")
    assert part in told
    assert "do it" == plain
