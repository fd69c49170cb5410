"""From merged configuration and choices to the sections of one request."""

from __future__ import annotations

import pytest

from agentcompass.core.config.environment import split_environment
from agentcompass.core.config.request import Choices, check_config, merged, model_spec
from agentcompass.core.errors import UsageError
from agentcompass.core.model.request import SandboxOptions

KNOWN = {"environments": ("docker", "host_process"), "harnesses": ("oracle",), "benchmarks": ("humaneval",)}


@pytest.mark.seed("CL-06")
@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"excution": {}}, "excution: unknown key; did you mean 'execution'?"),
        ({"environments": {"dokcer": {}}}, "environments.dokcer: unknown key; did you mean 'docker'?"),
        ({"benchmarks": {"swebench": {}}}, "benchmarks.swebench: unknown key; known: humaneval"),
        ({"models": {}}, "models: a configuration holds no models; choose the model on the command line"),
        ({"harnesses": ["oracle"]}, "harnesses: ['oracle'] is not a mapping; write key: value pairs"),
    ],
)
def test_unknown_sections_and_components_are_refused(config, message):
    """A misspelt section or component is named with the nearest known one."""
    with pytest.raises(UsageError) as refused:
        check_config(config, KNOWN)

    assert message == str(refused.value)


def test_known_sections_are_taken():
    """Empty sections and components say nothing, and are no mistake."""
    config = {"execution": None, "runtime": {}, "environments": {"docker": None}, "harnesses": None}

    assert check_config(config, KNOWN) is None


@pytest.mark.seed("CL-06")
def test_choices_lie_over_the_configuration():
    """Only the chosen components' sections count, with what the caller gives over them."""
    config = {
        "execution": {"max_retries": 1, "attempts": {"k": 2}},
        "benchmarks": {"humaneval": {"a": {"x": 1}}, "other": {"a": "${UNSET}"}},
        "environments": {"docker": {"cpu": 1}},
    }
    choices = Choices(
        "humaneval",
        "oracle",
        "docker",
        benchmark_params={"a": {"y": "${KEY}"}},
        execution={"attempts": {"strategy": "pass"}},
    )
    found = merged(config, choices, {"KEY": "v"})

    assert {"max_retries": 1, "attempts": {"k": 2, "strategy": "pass"}} == found.execution
    assert ({"a": {"x": 1, "y": "v"}}, {"cpu": 1}, {}) == (found.benchmark, found.environment, found.harness)
    assert {"KEY": "v"} == found.referenced


@pytest.mark.seed("LA-02")
@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"benchmarks": {"humaneval": {"a": "${NO}"}}}, "benchmarks.humaneval.a"),
        ({"runtime": {"results_dir": "${NO}"}}, "runtime.results_dir"),
        ({"execution": 3}, "execution"),
        ({"benchmarks": {"humaneval": [1]}}, "benchmarks.humaneval"),
    ],
)
def test_a_wrong_section_is_named(config, field):
    """The path leads to the field."""
    with pytest.raises(UsageError) as refused:
        merged(config, Choices("humaneval", "oracle"), {})

    assert field == refused.value.field


@pytest.mark.seed("TO-02")
def test_the_creation_limit_is_common_to_all_environments():
    """The limit of a creation is taken out; the rest is the provider's own."""
    given = {"setup": {"build_timeout_seconds": 90}, "mounts": ["a"]}
    options, own = split_environment(given, "environments.docker")

    assert (90.0, {"mounts": ["a"]}) == (options.setup.build_timeout_seconds, own)
    assert (SandboxOptions(), {}) == split_environment({}, "environments.docker")
    with pytest.raises(UsageError, match=r"environments\.docker\.setup\.build_timeout: unknown key; did you mean"):
        split_environment({"setup": {"build_timeout": 1}}, "environments.docker")


def test_a_model_with_its_endpoint():
    """Endpoint, key and parameters may be references; automatic protocols are none."""
    env = {"URL": "http://x/v1", "KEY": "k", "T": "0.5"}
    choices = Choices("b", "h", model="m", model_base_url="${URL}", model_api_key="${KEY}", model_params={"t": "${T}"})
    spec = model_spec(choices, env)

    assert ("m", "http://x/v1", "k", (), {"t": "0.5"}) == (
        spec.id,
        spec.base_url,
        spec.api_key,
        spec.api_protocols,
        spec.params,
    )
    assert "'k'" not in repr(spec)


@pytest.mark.parametrize(
    ("given", "protocols"),
    [("", ()), ("auto", ()), ("a", ("a",)), (["a", "b", "a"], ("a", "b")), (["auto", "", "a"], ("a",)), ((), ())],
)
def test_protocols_are_an_ordered_choice(given, protocols):
    """One name or several, each once, in the order of preference."""
    assert protocols == model_spec(Choices("b", "h", model="m", model_api_protocol=given), {}).api_protocols


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"model_base_url": "http://x"}, "--model-base-url"),
        ({"model_api_key": "k"}, "--model-api-key"),
        ({"model_api_protocol": "p"}, "--model-api-protocol"),
        ({"model_params": {"a": 1}}, "--model-params"),
        ({"model": "  "}, "model"),
        ({"model": "m", "model_api_protocol": 3}, "--model-api-protocol"),
        ({"model": "m", "model_api_protocol": ["a", 3]}, "--model-api-protocol"),
        ({"model": "m", "model_api_key": "${NO}"}, "--model-api-key"),
        ({"model": "m", "model_base_url": "https://${HOST}/v1"}, "--model-base-url"),
        ({"model": "m", "model_api_key": 3}, "--model-api-key"),
        ({"model": "m", "model_params": {"a": ["${NO}"]}}, "model.params.a[0]"),
        ({"model": "m", "model_params": []}, "model.params"),
    ],
)
def test_wrong_model_options_are_refused(options, field):
    """Options without a model, half references and wrong types are named by their option."""
    with pytest.raises(UsageError) as refused:
        model_spec(Choices("b", "h", **options), {"HOST": "x"})

    assert field == refused.value.field


def test_no_model_is_none():
    """A harness without a model needs no options for one."""
    assert model_spec(Choices("b", "h"), {}) is None
