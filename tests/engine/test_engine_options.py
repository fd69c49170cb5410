"""Options that the chosen components cannot fulfil are refused before anything is made."""

from __future__ import annotations

import pytest


@pytest.mark.seed("AR-10")
@pytest.mark.parametrize(
    ("execution", "field"),
    [
        ({"artifacts": []}, "artifacts"),
        ({"artifact_collect": []}, "artifact_collect"),
        ({"save_artifacts": True}, "save_artifacts"),
    ],
)
def test_a_benchmark_without_artifacts_takes_no_overrides(toys, execution, field):
    """A clear refusal before anything is made."""
    ran = toys.run({"a": {}}, execution=execution)

    assert (2, None) == (ran.status, ran.run_dir)
    assert f"execution.{field}: toy collects no artifacts" in ran.err


LISTED = {"network_mode": "allowlist", "allowed_hosts": ["a.org"]}


@pytest.mark.seed("CO-06", "CP-05", "EV-01")
@pytest.mark.parametrize(
    ("params", "part"),
    [
        ({"resources": {"cpu": 2}}, "environments.toy.resources.cpu: toy cannot limit it here"),
        ({"resources": {"memory": 2}}, "environments.toy.resources.memory: unknown key; did you mean 'memory_mb'?"),
        ({"resources": {"cpu": 0}}, "environments.toy.resources.cpu: 0 is not a finite positive number"),
        ({"setup": {"image": "x"}}, "environment toy: cannot run the image 'x'"),
        ({"network_policy": "no-network"}, "environment toy: cannot enforce the network mode 'no-network'"),
        ({"run_network_policy": LISTED}, "environment toy: cannot enforce the network mode 'allowlist'"),
        ({"verifier_network_policy": "no-network"}, "environment toy: cannot enforce the network mode 'no-network'"),
        ({"network_policy": "off"}, "environments.toy.network_policy.network_mode: 'off' is not a choice"),
        ({"network_policy": {"network_mode": "allowlist"}}, "allowed_hosts: the mode 'allowlist' needs hosts"),
        ({"network_policy": {"allowed_hosts": ["a.org"]}}, "allowed_hosts: has no meaning with 'public'"),
        (
            {"network_policy": {**LISTED, "allowed_hosts": ["http://a.org"]}},
            "environments.toy.network_policy.allowed_hosts[0]: 'http://a.org'",
        ),
        ({"evaluation_environment_mode": "later"}, "evaluation_environment_mode: 'later' is not a choice"),
        ({"evaluation_environment_mode": "fresh"}, "toy collects no artifacts that a fresh verifier could grade"),
        ({"evaluation_environment_mode": "none"}, "toy grades in a sandbox; use 'reuse'"),
        ({"evaluation_setup": {"image": "x"}}, "evaluation_setup: needs the evaluation mode fresh"),
        ({"evaluation_resources": {"cpu": 1}}, "evaluation_resources: needs the evaluation mode fresh"),
        ({"evaluation_environment_network_policy": "public"}, "network_policy: needs the evaluation mode fresh"),
    ],
)
def test_what_the_provider_or_the_mode_cannot_do_is_refused(toys, params, part):
    """One line that names the option, exit code 2, and no folder."""
    ran = toys.run({"a": {}}, env_params=params, mode="reuse")

    assert (2, None) == (ran.status, ran.run_dir)
    assert part in ran.err
    assert 1 == len(ran.err.splitlines())
