"""What a request is made of: every layer, in its order, checked before anything starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.scripted import scripted_host

from agentcompass.adapters.config.requests import prepare, with_run_id
from agentcompass.core.config.request import Choices
from agentcompass.core.errors import UsageError
from agentcompass.core.model.request import Output, Strategy
from agentcompass.core.records.run_info import request_document
from agentcompass.core.redaction import HIDDEN


@pytest.fixture(scope="module")
def host():
    """Return the known components."""
    return scripted_host()


class _Home:
    """A user with a project."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.env = {"XDG_CONFIG_HOME": str(path / "xdg"), "HOME": str(path)}

    def write(self, name: str, text: str) -> str:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Stand in the project's folder."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return _Home(tmp_path)


TASKS = {"tasks": [{"id": "t"}]}


def _prepared(host, home, *configs, harness="scripted", **choices):
    choices.setdefault("benchmark_params", TASKS)
    return prepare(
        Choices("scripted", harness, **choices), config_paths=configs, output=Output("n"), env=home.env, host=host
    )


FIELD = "execution: {{max_retries: {}, attempts: {{{}}}}}\n"


@pytest.mark.seed("CL-06")
def test_each_layer_lies_over_the_ones_below(host, home):
    """Defaults, user, project, each --config in order, then mappings and options of the caller."""
    seen = [_prepared(host, home).request.execution.max_retries]
    home.write("xdg/agentcompass/config.yaml", FIELD.format(1, "k: 2"))
    seen.append(_prepared(host, home).request.execution.max_retries)
    home.write("project/agentcompass.yaml", FIELD.format(2, "strategy: pass"))
    seen.append(_prepared(host, home).request.execution.max_retries)
    one, two = home.write("1.yaml", FIELD.format(3, "")), home.write("2.json", '{"execution": {"max_retries": 4}}')
    seen.append(_prepared(host, home, one).request.execution.max_retries)
    seen.append(_prepared(host, home, one, two).request.execution.max_retries)
    seen.append(_prepared(host, home, two, one).request.execution.max_retries)
    last = _prepared(host, home, one, two, execution={"max_retries": 5}).request.execution
    seen.append(last.max_retries)

    assert [0, 1, 2, 3, 4, 3, 5] == seen
    assert (2, Strategy.PASS) == (last.attempts.k, last.attempts.strategy)


@pytest.mark.seed("CL-06")
def test_component_sections_are_layers_too(host, home):
    """Parameters of a component come from every layer; lists replace, null inherits."""
    first = home.write("1.yaml", "benchmarks: {scripted: {tasks: [{id: a}, {id: b}], mode: fresh, limit: 2}}\n")
    second = home.write("2.yaml", "benchmarks: {scripted: {tasks: [{id: c}]}}\nexecution: {run_timeout_seconds: 5}\n")
    prepared = _prepared(
        host, home, first, second, benchmark_params={"limit": 1}, execution={"run_timeout_seconds": None}
    )

    assert ([{"id": "c"}], "fresh") == (prepared.benchmark_params["tasks"], prepared.benchmark_params["mode"])
    assert (1, None) == (prepared.request.selection.limit, prepared.request.execution.run_timeout_seconds)


@pytest.mark.seed("RR-01")
def test_the_files_are_recorded(host, home):
    """One file is recorded as a path, several as a JSON array in a string, none not at all."""
    one, two = home.write("1.yaml", ""), home.write("2é.yaml", "")
    found = [_prepared(host, home, *configs).request for configs in ((), (one,), (one, two))]
    recorded = [request_document(request).get("metadata", {}).get("config_path") for request in found]

    assert [None, one, json.dumps([one, two], ensure_ascii=False)] == recorded


@pytest.mark.seed("CL-06", "CL-07")
@pytest.mark.parametrize(
    ("config", "field"),
    [
        ("excution: {}\n", "excution"),
        ("execution: {max_retry: 1}\n", "execution.max_retry"),
        ("runtime: {timeout_seconds: -1}\n", "runtime.timeout_seconds"),
        ("runtime: {provider_limits: {dokcer: 1}}\n", "runtime.provider_limits.dokcer"),
        ("runtime: {env_open_qps: {host_proces: 1}}\n", "runtime.env_open_qps.host_proces"),
        ("runtime: {env_open_qps: {host_process: .inf}}\n", "runtime.env_open_qps.host_process"),
        ("benchmarks: {scripted: {mod: none}}\n", "benchmarks.scripted.mod"),
        ("benchmarks: {scripted: {mode: sometimes}}\n", "benchmarks.scripted.mode"),
        ("benchmarks: {scripted: {rejected: 1.5}}\n", "benchmarks.scripted.rejected"),
        ("benchmarks: {scripted: {params: {mode: none}}}\n", "benchmarks.scripted.params"),
        ("benchmarks: {scripted: {limit: 0}}\n", "benchmarks.scripted.limit"),
        ("benchmarks: {scripte: {}}\n", "benchmarks.scripte"),
        ("harnesses: {scripted: {depth: 1}}\n", "harnesses.scripted.depth"),
        ("harnesses: {scripted: {env: {A: b}}}\n", "harnesses.scripted.env"),
        ("environments: {host_process: {setup: {build: 1}}}\n", "environments.host_process.setup.build"),
        (
            "environments: {host_process: {setup: {build_timeout_seconds: 0}}}\n",
            "environments.host_process.setup.build_timeout_seconds",
        ),
        ("benchmarks: {scripted: {mode: '${NO_SUCH}'}}\n", "benchmarks.scripted.mode"),
    ],
)
def test_a_mistake_is_refused_with_its_full_path(host, home, config, field):
    """Whatever is unknown or wrong, at any level, is named before anything has been made."""
    path = home.write("c.yaml", config)
    with pytest.raises(UsageError) as refused:
        _prepared(host, home, path)

    assert field == refused.value.field
    assert [] == list(Path.cwd().iterdir())


def test_the_nearest_environment_is_offered(host, home):
    """A limit of a provider that nobody knows would limit nothing."""
    with pytest.raises(UsageError, match="did you mean 'host_process'"):
        _prepared(host, home, runtime={"provider_limits": {"hostprocess": 2}})


def test_a_parameter_that_is_needed_is_asked_for(host, home):
    """A required parameter is named with its meaning."""
    with pytest.raises(UsageError, match=r"benchmarks\.scripted\.tasks: is missing; What happens"):
        _prepared(host, home, benchmark_params={})


@pytest.mark.seed("RR-07")
def test_secrets_of_every_source_are_learned(host, home):
    """Values of telling variables, references and parameters, and the model's key, are hidden in free text."""
    home.env |= {"MY_API_KEY": "from-the-variable", "PLAIN": "an-ordinary-value"}
    config = home.write("c.yaml", "benchmarks: {scripted: {broken: '${PLAIN}'}}\n")
    tasks = {"tasks": [{"id": "t", "password": "from-a-parameter"}]}
    prepared = _prepared(
        host, home, config, benchmark_params=tasks, model="m", model_api_key="from-the-option",
        model_params={"nested": {"auth_token": ["from-a-list-there"]}},
    )  # fmt: skip
    text = "from-the-variable from-a-parameter from-the-option from-a-list-there an-ordinary-value"

    assert f"{HIDDEN} {HIDDEN} {HIDDEN} {HIDDEN} an-ordinary-value" == prepared.redactor.text(text)
    assert "from-" not in json.dumps(prepared.redactor.document(request_document(prepared.request)))


def test_a_benchmark_that_runs_itself_takes_no_harness_parameters(host, home):
    """The harness called none has no parameters."""
    config = home.write("c.yaml", "execution: {}\n")

    assert {} == _prepared(host, home, config, harness="none").harness_params
    with pytest.raises(UsageError, match=r"harnesses\.none: takes no parameters"):
        _prepared(host, home, config, harness="none", harness_params={"a": 1})


def test_the_creation_limit_is_not_the_providers(host, home):
    """The limit of a creation is taken out of the environment's parameters, and recorded with them."""
    prepared = _prepared(host, home, environment_params={"setup": {"build_timeout_seconds": 9}})

    assert 9.0 == prepared.request.sandbox.setup.build_timeout_seconds
    assert "setup" not in prepared.environment_params
    assert {"setup": {"build_timeout_seconds": 9}} == request_document(prepared.request)["environment"]["params"]


def test_deprecated_names_are_told(host, home):
    """A warning about a former name reaches whoever asked."""
    prepared = _prepared(host, home, execution={"harness_result_timeout_seconds": 9})

    assert ["execution.harness_result_timeout_seconds"] == [warning.split(" ")[0] for warning in prepared.warnings]


def test_a_reserved_id_is_the_requests(host, home):
    """The id that was reserved is the one that is recorded; nothing else changes."""
    prepared = _prepared(host, home)
    named = with_run_id(prepared, "r7")

    assert (None, "r7", "n") == (
        prepared.request.output.run_id, named.request.output.run_id, named.request.output.run_name,
    )  # fmt: skip
