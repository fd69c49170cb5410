"""``task.toml``: every key of the format, its old spellings, and what is wrong with others, by line."""

from __future__ import annotations

import re

import pytest

from agentcompass.core.model.artifact import Artifact, ArtifactCommand
from agentcompass.core.model.environment import Resources
from agentcompass.core.model.network import NetworkMode, NetworkPolicy
from agentcompass.plugins.benchmarks.harbor.toml_task import parse
from agentcompass.plugins.benchmarks.harbor.values import Healthcheck

OFFLINE = NetworkPolicy(NetworkMode.NO_NETWORK)
GOOD = {
    "": ("name", None),
    '[task]\nname = "org/short"\ndescription = ""\nkeywords = ["a"]\n[[task.authors]]\nname = "A"': (
        "name",
        "org/short",
    ),
    "[metadata]\nany = {thing = 1}": ("metadata", {"any": {"thing": 1}}),
    "[agent]\ntimeout_sec = 10": ("agent.timeout_seconds", 10.0),
    "[agent]\nuser = 1000": ("agent.user", "1000"),
    '[agent]\nuser = "root"': ("agent.user", "root"),
    '[agent]\nnetwork_mode = "no-network"': ("agent.network", OFFLINE),
    '[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["A.example", "10.0.0.0/8"]': (
        "agent.network",
        NetworkPolicy(NetworkMode.ALLOWLIST, ("a.example", "10.0.0.0/8")),
    ),
    "[verifier]\ntimeout_sec = 1.5": ("verifier.timeout_seconds", 1.5),
    '[verifier]\nenv = {KEY = "${HOST:-x}"}': ("verifier.env", {"KEY": "${HOST:-x}"}),
    '[verifier]\nuser = "grader"': ("verifier.user", "grader"),
    '[verifier]\nenvironment_mode = "separate"': ("separate", True),
    '[verifier]\nenvironment_mode = "shared"': ("separate", False),
    '[verifier.environment]\ndocker_image = "v:1"': ("verifier.machine.image", "v:1"),
    "[verifier.environment]\ncpus = 1": ("separate", True),
    '[[verifier.collect]]\ncommand = "x"\nuser = "root"': (
        "verifier.collect",
        (ArtifactCommand("x", 60.0, "root", optional=True),),
    ),
    "[environment]\nbuild_timeout_sec = 5": ("machine.build_timeout_seconds", 5.0),
    '[environment]\ndocker_image = "a:1"': ("machine.image", "a:1"),
    '[environment]\nos = "Linux"': ("machine.image", None),
    "[environment]\ncpus = 1.5\nmemory_mb = 64\nstorage_mb = 10\ngpus = 2": (
        "machine.resources",
        Resources(1.5, 64, None, 10, 2),
    ),
    "[environment]\nmemory_mb = 64.0\ngpus = 0": ("machine.resources", Resources(memory_mb=64)),
    '[environment]\nmemory = "2G"\nstorage = "512M"': ("machine.resources", Resources(memory_mb=2048, storage_mb=512)),
    '[environment]\nmemory = "2G"\nmemory_mb = 7': ("machine.resources", Resources(memory_mb=7)),
    "[environment]\nallow_internet = false": ("machine.network", OFFLINE),
    "[environment]\nallow_internet = true": ("machine.network", NetworkPolicy()),
    '[environment]\nallow_internet = false\nnetwork_mode = "public"': ("machine.network", NetworkPolicy()),
    '[environment]\nenv = {A = "b"}\nworkdir = "/w"': ("machine.workdir", "/w"),
    '[environment]\nskills_dir = "/skills"': ("machine.skills_dir", "/skills"),
    '[[environment.mcp_servers]]\nname = "m"\nurl = "http://x"': (
        "machine.mcp_servers",
        ({"name": "m", "url": "http://x", "transport": "sse"},),
    ),
    '[[environment.mcp_servers]]\nname = "m"\ntransport = "http"\nurl = "u"\nheaders = {A = "b"}': (
        "machine.mcp_servers",
        ({"name": "m", "transport": "streamable-http", "url": "u", "headers": {"A": "b"}},),
    ),
    '[environment.healthcheck]\ncommand = "true"\nretries = 9': (
        "machine.healthcheck",
        Healthcheck("true", 5.0, 30.0, 0.0, 5.0, 9),
    ),
    '[solution]\nenv = {A = "b"}': ("solution_env", {"A": "b"}),
    'artifacts = ["/a/", {source = "/b", destination = "c", exclude = ["*.o"]}]': (
        "artifacts",
        (Artifact("/a", "a"), Artifact("/b", "c", ("*.o",))),
    ),
    'artifacts = ["out.txt"]\n[environment]\nworkdir = "/w"': ("artifacts", (Artifact("/w/out.txt", "w/out.txt"),)),
    'multi_step_reward_strategy = "final"\n[[steps]]\nname = "a"': ("final_step_counts", True),
}
OLD = ['version = "1.0"', 'schema_version = "1.3"', 'source = "x"', '\ufeffversion = "1.0"']

BAD = {
    "x": (1, "no TOML"),
    'a = "': (1, "no TOML"),
    "a = 1\na = 2": (2, "no TOML"),
    "a = " + "[" * 3000: (1, "nested too deeply"),
    "a = " + "9" * 5000: (1, "no TOML"),
    'version = "2.0"': (1, "version: '2.0' is not understood"),
    'schema_version = "x"': (1, "not understood"),
    "\n[task]\nversion = '1'": (2, "task.name: is missing"),
    "[task]\nname = 'short'": (2, "not of the form org/name"),
    "[task]\nname = 'a/..b'": (2, "not of the form org/name"),
    "task = 1": (1, "task: is no table"),
    "[agent]\n\ntimeout_sec = 0": (3, "not above 0"),
    "[agent]\ntimeout_sec = true": (2, "no finite number"),
    "[agent]\ntimeout_sec = inf": (2, "no finite number"),
    "[agent]\ntimeout_sec = " + "9" * 400: (2, "no finite number"),
    "[agent]\nuser = true": (2, "neither a user's name"),
    "[agent]\nallowed_hosts = ['a']": (2, 'needs network_mode = "allowlist"'),
    "[agent]\nnetwork_mode = 'public'\nallowed_hosts = ['a']": (3, 'needs network_mode = "allowlist"'),
    "[agent]\nnetwork_mode = 'open'": (2, "is none of"),
    "[environment]\nallowed_hosts = ['a b']\nnetwork_mode = 'allowlist'": (2, "neither a host name"),
    "[environment]\nos = 'Windows'": (2, "windows tasks are not supported"),
    "[environment]\nos = 'plan9'": (2, "is none of linux"),
    "[environment]\ncpus = -1": (2, "below 0|not above 0"),
    "[environment]\nmemory_mb = 1.5": (2, "no whole number"),
    "[environment]\nmemory = '2X'": (2, "no size such as"),
    "[environment]\nenv = {A = 1}": (2, "quote it"),
    "[environment.env]\nA-B = '1'": (1, "no name of a variable"),
    "[environment]\nworkdir = 'app'": (2, "no absolute path"),
    "[environment]\nskills_dir = '/a/../b'": (2, "no absolute path"),
    "[environment.healthcheck]\nretries = 1": (1, "command: is missing"),
    "[[environment.mcp_servers]]\nname = 'a'\nurl = 'u'\n\n[[environment.mcp_servers]]\nname = 'b'": (
        5,
        "url: is missing",
    ),
    "[[environment.mcp_servers]]\nname = 'a'\ntransport = 'stdio'": (1, "command: is missing"),
    "[verifier]\nenvironment_mode = 'shared'\n[verifier.environment]\ncpus = 1": (2, "is shared, but"),
    "[[verifier.collect]]\ncommand = ''": (2, "is empty"),
    "[[verifier.collect]]\ncommand = 'a'\nservice = 'db'": (3, "only the service main"),
    "[verifier]\ncollect = 1": (2, "no list of tables"),
    "artifacts = 'x'": (1, "is no list"),
    "artifacts = ['/a/../b']": (1, "not an absolute path"),
    "artifacts = ['x']": (1, "no workdir is declared"),
    "artifacts = [{source = '/a', destination = '/b'}]": (1, "not a relative path"),
    "artifacts = [{source = '/a', destination = 'manifest.json'}]": (1, "not a relative path"),
    "artifacts = [{source = '/a', service = 'db'}]": (1, "only the service main"),
    "artifacts = ['/a', '/a/b']": (1, "lies with"),
    "multi_step_reward_strategy = 'best'": (1, "is none of mean, final"),
    "[[steps]]\nname = 'a'\n[[steps]]\nname = 'A'": (4, "the name of an earlier step"),
    "[[steps]]\nname = 'a/b'": (2, "no portable name"),
    "[[steps]]\nname = 'nul'": (2, "no portable name"),
    "[[steps]]\nname = 'a.'": (2, "no portable name"),
    "[[steps]]\n": (1, "name: is missing"),
    "[[steps]]\nname = 'a'\nmin_reward = 'x'": (3, "no finite number"),
    "[[steps]]\nname = 'a'\n[[steps]]\nname = 'b'\n[steps.verifier]\nenvironment_mode = 'separate'": (
        6,
        "differs from",
    ),
    'a = """\n[agent]\nuser = true\n"""\n[agent]\nuser = true': (6, "neither a user's name"),
}
WARNED = {
    "[agent]\ntimeout = 1": (2, "agent.timeout: unknown key; did you mean 'timeout_sec'?"),
    "\ntimout = 1": (2, "timout: unknown key"),
    "[environment]\nallow_internet = true": (2, 'an old spelling of network_mode = "public"'),
    "[environment]\nmemory = '1G'": (2, "an old spelling of memory_mb"),
    "version = '1.0'": (1, "an old spelling of schema_version"),
    "schema_version = '1.9'": (1, "newer than 1.4"),
    "[environment]\ngpu_types = ['H100']": (2, "not enforced"),
    "multi_step_reward_strategy = 'mean'": (1, "no effect without steps"),
    "[[steps]]\nname = 'a'\n[steps.agent]\nfoo = 1": (4, "steps[0].agent.foo: unknown key"),
}


def _value(config, path):
    for name in path.split("."):
        config = getattr(config, name)
    return config


@pytest.mark.parametrize("text", GOOD)
def test_every_key_is_read(text):
    """What a table says is what comes out, and nothing is wrong with it."""
    config, findings = parse(text.encode(), "task.toml")
    path, wanted = GOOD[text]

    assert wanted == _value(config, path)
    assert [] == [finding.message for finding in findings if finding.is_error]


@pytest.mark.parametrize("text", OLD)
def test_old_versions_are_accepted(text):
    """So is a byte order mark."""
    _, findings = parse(text.encode(), "task.toml")

    assert [] == [finding.message for finding in findings if finding.is_error]


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:60])
def test_what_is_wrong_is_named_with_its_line(text):
    """One error, at the line that says it."""
    _, findings = parse(text.encode(), "task.toml")
    errors = [finding for finding in findings if finding.is_error]
    line, message = BAD[text]

    assert [f"task.toml:{line}"] == [finding.where for finding in errors], errors
    assert re.search(message, errors[0].message), errors[0].message


@pytest.mark.parametrize("text", WARNED)
def test_what_does_no_harm_is_a_warning(text):
    """With its line, and the key that may have been meant."""
    _, findings = parse(text.encode(), "task.toml")
    line, message = WARNED[text]

    assert any(f"task.toml:{line}" == finding.where and message in finding.message for finding in findings), findings
    assert not any(finding.is_error for finding in findings)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"a = 1\nb = '\xe9'", b"\0", b"\xef\xbb\xbf\xff", b"[\x1b"])
def test_odd_bytes_are_an_error_and_no_crash(data):
    """Whatever the file holds."""
    _, findings = parse(data, "task.toml")

    assert 1 == len(findings)
    assert findings[0].is_error


def test_a_step_is_what_the_task_is_unless_it_says_otherwise():
    """Budgets, users and variables are inherited one by one."""
    text = (
        '[agent]\ntimeout_sec = 5\nuser = "a"\n[verifier]\ntimeout_sec = 6\nenv = {A = "1", B = "2"}\n'
        '[[steps]]\nname = "x"\nmin_reward = {reward = 0.5}\n[steps.agent]\ntimeout_sec = 7\n'
        '[steps.verifier]\nenv = {B = "3"}\n'
    )
    config, _ = parse(text.encode(), "task.toml")
    step = config.steps[0]

    assert (7.0, "a") == (config.agent_of(step).timeout_seconds, config.agent_of(step).user)
    assert (6.0, {"A": "1", "B": "3"}) == (config.verifier_of(step).timeout_seconds, config.verifier_of(step).env)
    assert {"reward": 0.5} == step.min_reward
