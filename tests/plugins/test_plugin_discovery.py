"""Plugins of strangers: found, listed, documented, run; a broken one is told and costs nobody anything."""

from __future__ import annotations

import json
import sys

import pytest
from support.toys import install

from agentcompass.adapters.cli.main import main

BROKEN = {
    "a missing module": (None, "ModuleNotFoundError: No module named 'its_module'"),
    "a module that raises": ("raise RuntimeError('no licence\\nfor you')", "RuntimeError: no licence"),
    "a module that is no Python": ("def (", "SyntaxError"),
    "a module that leaves": ("import sys; sys.exit(7)", "SystemExit: 7"),
    "a hook that raises": (
        "from agentcompass import hookimpl\n@hookimpl\ndef register_harnesses():\n    raise KeyError('x')",
        "KeyError: 'x'",
    ),
    "a hook that returns garbage": (
        "from agentcompass import hookimpl\n@hookimpl\ndef register_harnesses():\n    return ['my_agent']",
        "TypeError: register_harnesses returned 'my_agent', which is no Component",
    ),
    "a hook that returns one component": (
        "from agentcompass import Component, hookimpl\n@hookimpl\n"
        "def register_harnesses():\n    return Component('my_agent', 'Mine.', 'm:A')",
        "TypeError",
    ),
    "a hook of an unknown name": (
        "from agentcompass import hookimpl\n@hookimpl\ndef register_agents():\n    return []",
        "unknown hook 'register_agents'",
    ),
    "a hook with unknown arguments": (
        "from agentcompass import hookimpl\n@hookimpl\ndef register_harnesses(config):\n    return []",
        "register_harnesses",
    ),
    "an id that is none": (
        "from agentcompass import Component, hookimpl\n@hookimpl\n"
        "def register_harnesses():\n    return [Component('', 'Mine.', 'm:A')]",
        "ValueError: register_harnesses returned a component with the id ''",
    ),
}


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Install a plugin whose module has this text (None: no module)."""

    def make(text, name="its"):
        folder = tmp_path / f"site-{name}"
        install(folder, monkeypatch, name, f"[agentcompass.plugins]\n{name} = {name}_module\n")
        if text is not None:
            (folder / f"{name}_module.py").write_text(text)
        monkeypatch.delitem(sys.modules, f"{name}_module", raising=False)

    yield make
    sys.modules.pop("its_module", None)


def _listed(capsys, *words):
    assert 0 == main(["list", "--json", *words])
    return json.loads(capsys.readouterr().out)


def _ids(document):
    return {row["id"] for row in document["components"]}


def test_an_installed_distribution_is_listed_with_its_plugin(capsys):
    """The example distribution was installed as any other, and nothing but its entry point tells of it."""
    rows = {row["id"]: row["plugin"] for row in _listed(capsys)["components"]}

    assert ("example", "example") == (rows["example_sums"], rows["example_agent"])
    assert "agentcompass.plugins.benchmarks" == rows["humaneval"]


@pytest.mark.seed("CL-03")
@pytest.mark.parametrize(("kind", "ids"), [("benchmark", {"example_sums"}), ("harness", {"example_agent"})])
def test_one_kind_is_listed_alone(capsys, kind, ids):
    """A kind has its own components and no others."""
    found = _listed(capsys, kind)

    assert {kind} == {row["kind"] for row in found["components"]}
    assert ids <= _ids(found)


def test_a_list_for_people_names_the_plugin(capsys):
    """Components in the box have no source beside them, a stranger's has."""
    main(["list", "benchmark"])

    lines = {line.split()[1]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["example_sums"].endswith("[example]")
    assert "[" not in lines["humaneval"]


@pytest.mark.parametrize(("carries", "value", "small"), [(True, 1.0, 1.0), (False, 3 / 9, 1.0)])
def test_a_strangers_benchmark_and_agent_are_run_and_scored(command, carries, value, small):
    """With its parameters, its categories and without any model."""
    ran = command("example_sums", "example_agent", "--harness-params", json.dumps({"carries": carries}))

    metrics = ran.document("metrics.json")
    assert (0, pytest.approx(value)) == (ran.status, metrics["series"][0]["value"])
    assert {"small": 3, "large": 6} == {
        category: sum(task["category"] == category for task in ran.details().values())
        for category in ("small", "large")
    }
    assert small == ran.details()["1+1"]["attempts"]["1"]["metrics"]["correct"]


@pytest.mark.seed("CL-04")
def test_a_strangers_parameters_are_documented(capsys):
    """Field, type, default and meaning come from its schema, those of every benchmark after them."""
    assert 0 == main(["config", "docs", "benchmark", "example_sums", "--json"])

    document = json.loads(capsys.readouterr().out)
    assert {
        "field": "largest",
        "type": "integer",
        "default": 3,
        "meaning": "The largest number that is added.",
    } == document["fields"][0]
    assert "sample_ids" in {row["field"] for row in document["fields"]}


def test_a_strangers_parameters_are_checked(command):
    """By its schema, before anything starts."""
    ran = command("example_sums", "example_agent", "--benchmark-params", '{"largest": 0}')

    assert (2, None) == (ran.status, ran.run_dir)
    assert "error: benchmarks.example_sums.largest: 0 is less than the minimum of 1; " in ran.err


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_plugin_is_told_and_costs_nobody_anything(plugin, command, capsys, kind):
    """It is named with the reason in list and doctor; everything else is there and works."""
    text, reason = BROKEN[kind]
    plugin(text)

    found = _listed(capsys)
    ran = command("example_sums", "example_agent", "--limit", "1")
    status, said = main(["doctor"]), capsys.readouterr().out
    assert reason in found["broken_plugins"]["its"]
    assert {"humaneval", "example_sums", "example_agent", "oracle"} <= _ids(found)
    assert "my_agent" not in _ids(found)
    assert (0, 1) == (ran.status, status)
    assert 1 == sum(line.startswith("BROKEN   plugin its: ") for line in said.splitlines())


def test_a_broken_plugin_is_told_to_people_in_one_line(plugin, capsys):
    """On stderr, so that stdout stays a list."""
    plugin(BROKEN["a module that raises"][0])
    main(["list", "harness"])

    shown = capsys.readouterr()
    assert "broken plugin its: RuntimeError: no licence for you\n" == shown.err
    assert "its" not in shown.out


def test_a_plugin_is_all_or_nothing(plugin, capsys):
    """When one of its hooks fails, none of its components is left half registered."""
    plugin(
        "from agentcompass import Component, hookimpl\n@hookimpl\ndef register_benchmarks():\n"
        "    return [Component('my_bench', 'Mine.', 'm:B')]\n@hookimpl\ndef register_harnesses():\n    return [1]"
    )

    assert "my_bench" not in _ids(_listed(capsys))


CLAIM = """
from agentcompass import Component, hookimpl
@hookimpl
def register_benchmarks():
    return [Component("humaneval", "A forgery.", "its_module:Forgery")]
"""


def test_a_claim_on_an_id_in_use_is_refused_for_both(plugin, command, capsys):
    """Neither is used, both are named, other ids are not concerned."""
    plugin(CLAIM)

    claimed, other = command("humaneval", "nop"), command("example_sums", "example_agent", "--limit", "1")
    found = _listed(capsys)
    assert {"benchmark humaneval": ["agentcompass.plugins.benchmarks", "its"]} == found["conflicts"]
    assert (2, 0) == (claimed.status, other.status)
    assert (
        "error: benchmark: 'humaneval' is registered by agentcompass.plugins.benchmarks and its; "
        "switch one off with AGENTCOMPASS_DISABLE_PLUGINS\n" == claimed.err
    )


def test_a_plugin_can_be_switched_off(plugin, command, monkeypatch, capsys):
    """By the name of its entry point; several are separated by commas."""
    plugin(CLAIM)
    plugin(None, "other")
    monkeypatch.setenv("AGENTCOMPASS_DISABLE_PLUGINS", " its, other ,example")

    found = _listed(capsys)
    assert ({}, {}) == (found["conflicts"], found["broken_plugins"])
    assert "example_sums" not in _ids(found)
    assert 0 == command("humaneval", "nop", "--limit", "1").status


WATCHER = """
from agentcompass import hookimpl
seen = []
@hookimpl
def on_event(event, progress):
    seen.append((event.event, progress.status))
    if BREAKS and len(seen) == 2:
        raise ValueError("enough")
"""


@pytest.mark.parametrize("breaks", [False, True])
def test_a_plugin_may_watch_every_run(plugin, command, breaks):
    """It sees each event and the state after it; one that fails is left out with one warning, and the run goes on."""
    plugin(WATCHER.replace("BREAKS", str(breaks)))
    ran = command("example_sums", "example_agent", "--limit", "1", "--log-level", "WARNING", quiet=False)

    seen = sys.modules["its_module"].seen
    events = [event["event"] for event in ran.events()]
    assert 0 == ran.status
    assert (events[:2] if breaks else events) == [name for name, _ in seen]
    assert ("run_started", "running") == seen[0]
    assert int(breaks) == ran.err.count("the plugin its sees no more events: ValueError: enough")
