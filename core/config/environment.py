"""The parameters that every environment has, beside the provider's own: set-up, limits, networks, variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import UsageError
from ..model.environment import VARIABLE_NAME, EvaluationMode, Resources
from ..model.network import NetworkMode, NetworkPolicy
from ..model.request import SandboxOptions, Setup, Variables
from ..network_rules import parse_target
from .fields import (
    Field,
    Section,
    choice,
    count,
    nested,
    nullable,
    parse_section,
    positive_factor,
    positive_seconds,
    text,
)
from .layers import mapping

SETUP: Section = (
    Field(
        "build_timeout_seconds",
        "seconds or null",
        None,
        "How long the creation of one sandbox may take; null for the task's limit, or none.",
        nullable(positive_seconds),
    ),
    Field("image", "text or null", None, "The image of the sandbox, in place of the task's.", nullable(text)),
    Field("workdir", "path or null", None, "Where commands run, in place of the task's choice.", nullable(text)),
)
RESOURCES: Section = (
    Field("cpu", "number or null", None, "Processors of one sandbox.", nullable(positive_factor)),
    Field("memory_mb", "integer or null", None, "Memory of one sandbox, in MiB.", nullable(count(1))),
    Field("pids", "integer or null", None, "Processes and threads of one sandbox.", nullable(count(1))),
    Field("storage_mb", "integer or null", None, "Disk space of one sandbox, in MiB.", nullable(count(1))),
    Field("gpus", "integer or null", None, "Graphics processors of one sandbox.", nullable(count(1))),
)


def _hosts(value: Any, path: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(host, str) for host in value):
        raise UsageError(path, f"{value!r} is not a list of hosts", "give names, *.suffixes, addresses or ranges")
    for index, host in enumerate(value):
        try:
            parse_target(host)
        except ValueError as exc:
            raise UsageError(f"{path}[{index}]", f"{host!r}: {exc}", "give a host without scheme or path") from None
    return tuple(value)


POLICY: Section = (
    Field("network_mode", " | ".join(NetworkMode), NetworkMode.PUBLIC, "How much is open.", choice(*NetworkMode)),
    Field("allowed_hosts", "list of hosts", (), "With allowlist: names, *.suffixes, addresses, ranges.", _hosts),
    Field("denied_hosts", "list of hosts", (), "With denylist: likewise.", _hosts),
)


def policy(value: Any, path: str) -> NetworkPolicy:
    """Take a network mode, or a mapping of one with its hosts."""
    given = parse_section(POLICY, {"network_mode": value} if isinstance(value, str) else value, path)
    mode = NetworkMode(given["network_mode"])
    for name, wanted in (("allowed_hosts", NetworkMode.ALLOWLIST), ("denied_hosts", NetworkMode.DENYLIST)):
        if given[name] and mode is not wanted:
            raise UsageError(f"{path}.{name}", f"has no meaning with {mode.value!r}", f"network_mode: {wanted.value}")
        if not given[name] and mode is wanted:
            raise UsageError(f"{path}.{name}", f"the mode {wanted.value!r} needs hosts", "name at least one")
    return NetworkPolicy(mode, given["allowed_hosts"], given["denied_hosts"])


def _variables(value: Any, path: str) -> dict[str, str]:
    """Return a map from names that a shell can hold to text."""
    found = dict(mapping(value, path))
    for name, content in found.items():
        if not (isinstance(name, str) and VARIABLE_NAME.fullmatch(name)):
            raise UsageError(f"{path}.{name}", f"{name!r} is no name of a variable", "use letters, digits, underscores")
        if not isinstance(content, str) or "\0" in content:
            raise UsageError(f"{path}.{name}", f"{content!r} is not text", "quote it")
    return found


_MAP = "mapping from name to text"
VARIABLES: Section = (
    Field("env_variables", _MAP, {}, "Environment variables at start-up and for every command.", _variables),
    Field("run_env_variables", _MAP, {}, "Those of the agent's set-up and run, over env_variables.", _variables),
    Field("evaluation_env_variables", _MAP, {}, "Those of the grader's commands, over env_variables.", _variables),
    Field(
        "evaluation_environment_env_variables",
        f"{_MAP}, or null",
        None,
        "Those at the start of a fresh verifier, in place of env_variables; needs the evaluation mode fresh.",
        nullable(_variables),
    ),
)
VARIABLE_KEYS = frozenset(field.name for field in VARIABLES)

_POLICY = "network mode, mapping of one with its hosts, or null"
_setup, _resources, _policy = nested(SETUP, Setup), nested(RESOURCES, Resources), nullable(policy)
COMMON: Section = (
    Field("setup", "mapping", Setup(), "How a sandbox is made.", _setup),
    Field("evaluation_setup", "mapping", Setup(), "How a fresh verifier is made, over setup; needs fresh.", _setup),
    Field("resources", "mapping", Resources(), "Limits of a sandbox, over the task's.", _resources),
    Field("evaluation_resources", "mapping", Resources(), "Those of a fresh verifier; needs fresh.", _resources),
    Field("network_policy", _POLICY, None, "The network of a sandbox, in place of the task's.", _policy),
    Field("run_network_policy", _POLICY, None, "The network while the agent works; null: as the task says.", _policy),
    Field("verifier_network_policy", _POLICY, None, "The network while the attempt is graded; likewise.", _policy),
    Field(
        "evaluation_environment_network_policy",
        _POLICY,
        None,
        "The network in which a fresh verifier starts, in place of network_policy; needs fresh.",
        _policy,
    ),
    Field(
        "evaluation_environment_mode",
        f"{' | '.join(EvaluationMode)} | null",
        None,
        "Where attempts are graded, in place of what the benchmark says.",
        nullable(lambda value, path: EvaluationMode(choice(*EvaluationMode)(value, path))),
    ),
    *VARIABLES,
)
ENVIRONMENT_KEYS = tuple(field.name for field in COMMON)  #: what every environment takes


def split_environment(params: Mapping[str, Any], path: str) -> tuple[SandboxOptions, dict[str, Any]]:
    """Split an environment's parameters into those that every environment has and the provider's own.

    Raises:
        UsageError: a key or a value of the common ones is wrong.
    """
    given = parse_section(COMMON, {key: value for key, value in params.items() if key in ENVIRONMENT_KEYS}, path)
    options = SandboxOptions(
        setup=given["setup"],
        verifier_setup=given["evaluation_setup"],
        resources=given["resources"],
        verifier_resources=given["evaluation_resources"],
        network=given["network_policy"],
        run_network=given["run_network_policy"],
        evaluation_network=given["verifier_network_policy"],
        verifier_network=given["evaluation_environment_network_policy"],
        evaluation_mode=given["evaluation_environment_mode"],
        variables=Variables(
            given["env_variables"],
            given["run_env_variables"],
            given["evaluation_env_variables"],
            given["evaluation_environment_env_variables"],
        ),
    )
    return options, {key: value for key, value in params.items() if key not in ENVIRONMENT_KEYS}
