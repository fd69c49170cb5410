"""Reads ``task.toml``: every key of the format, the old spellings too, with a note for whatever is wrong."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from agentcompass.core.config.artifacts import artifact, require_apart
from agentcompass.core.errors import UsageError
from agentcompass.core.model.artifact import Artifact, ArtifactCommand
from agentcompass.core.model.environment import Resources
from agentcompass.core.model.network import NetworkMode, NetworkPolicy
from agentcompass.core.model.task import Finding

from . import readers as read
from .notes import Notes, Table
from .values import AgentPhase, Config, Healthcheck, Machine, Step, VerifierPhase

_LATEST = 4  #: minor version of the format that is known here
_MODES = (NetworkMode.PUBLIC, NetworkMode.NO_NETWORK, NetworkMode.ALLOWLIST)


def parse(data: bytes, file: str, workdir: str | None = None, *, warn: bool = True) -> tuple[Config, Sequence[Finding]]:
    """Return what *file* says, whose bytes are *data*, and what is wrong with it.

    *workdir* is that of the image, below which relative artifacts lie.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = data[: exc.start].count(b"\n") + 1
        return Config(), [Finding(f"{file}:{line}", f"is not UTF-8: {exc.reason}", is_error=True)]
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as exc:  # an integer of 5,000 digits is a plain ValueError
        return Config(), [_syntax_error(file, text, exc)]
    notes = Notes()
    config = _config(Table(document, (), notes), workdir)
    return config, list(notes.findings(file, text, warn=warn))


def _syntax_error(file: str, text: str, exc: Exception) -> Finding:
    message = "is nested too deeply" if isinstance(exc, RecursionError) else f"is no TOML: {exc}"
    found = re.search(r"\(at line (\d+)", message)
    at_end = "at end of document" in message
    line = int(found[1]) if found else text.count("\n") + 1 if at_end else 1
    return Finding(f"{file}:{line}", " ".join(message.split()), is_error=True)


def _config(top: Table, workdir: str | None) -> Config:
    _check_version(top)
    top.take("source", read.text, None)
    machine = _machine(top.table("environment"))
    agent = _agent(top.table("agent"))
    verifier = _verifier(top.table("verifier"))
    base = machine.workdir or workdir
    strategy = top.take("multi_step_reward_strategy", read.one_of("mean", "final"), None)
    steps = tuple(_step(table, base) for table in top.tables("steps"))
    _require_unique(top, steps)
    if strategy and not steps:
        top.warn("multi_step_reward_strategy", "has no effect without steps")
    config = Config(
        name=_identity(top),
        metadata=top.take("metadata", _free, {}),
        artifacts=_artifacts(top, base),
        final_step_counts=strategy == "final",
        agent=agent,
        verifier=verifier,
        machine=machine,
        solution_env=top.table("solution").take("env", read.variables, {}),
        steps=steps,
    )
    _require_alike(top, config)
    return config


def _check_version(top: Table) -> None:
    old = top.take("version", read.schema_version, None)
    version = top.take("schema_version", read.schema_version, old)
    if old and "schema_version" not in top.values:
        top.warn("version", "is an old spelling of schema_version")
    if version and int(version[2:]) > _LATEST:
        key = "schema_version" if "schema_version" in top.values else "version"
        top.warn(key, f"{version} is newer than 1.{_LATEST}: keys that it added are ignored")


def _identity(top: Table) -> str | None:
    """Return the name that the table ``[task]`` gives; it describes nothing else that matters to a run."""
    table = top.table("task")
    if not isinstance(top.values.get("task"), dict):
        return None
    for key in ("version", "description"):
        table.take(key, read.text, None)
    table.take("keywords", read.texts, ())
    for author in table.tables("authors"):
        author.need("name", read.words, "")
        author.take("email", read.text, None)
    return table.need("name", read.task_name, "") or None


def _free(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("is no table")  # noqa: TRY004  (readers have one way to refuse)
    return value


def _agent(table: Table) -> AgentPhase:
    return AgentPhase(
        table.take("timeout_sec", read.positive, None), table.take("user", read.user, None), _override(table)
    )


def _override(table: Table) -> NetworkPolicy | None:
    """Return the network of one phase; None leaves it as it is."""
    mode = table.take("network_mode", read.one_of(*_MODES), None)
    return _policy(table, mode, has_mode="network_mode" in table.values)


def _policy(table: Table, mode: str | None, *, has_mode: bool) -> NetworkPolicy | None:
    hosts = table.take("allowed_hosts", read.hosts, None)
    if hosts is not None and mode != NetworkMode.ALLOWLIST and (mode or not has_mode):
        table.error("allowed_hosts", 'needs network_mode = "allowlist"')
    return None if mode is None else NetworkPolicy(NetworkMode(mode), tuple(hosts or ()))


def _network(table: Table) -> NetworkPolicy:
    """Return the network of a sandbox; the old switch counts only where nothing newer is said."""
    legacy = table.take("allow_internet", read.flag, None)
    newer = "network_mode" in table.values or "allowed_hosts" in table.values
    if legacy is not None:
        instead = "public" if legacy else "no-network"
        table.warn("allow_internet", f'is an old spelling of network_mode = "{instead}"')
    found = _override(table)
    if found is None and legacy is False and not newer:
        return NetworkPolicy(NetworkMode.NO_NETWORK)
    return found or NetworkPolicy()


def _machine(table: Table) -> Machine:
    table.take("os", read.system, "linux")
    return Machine(
        build_timeout_seconds=table.take("build_timeout_sec", read.positive, None),
        image=table.take("docker_image", read.words, None),
        resources=_resources(table),
        network=_network(table),
        env=table.take("env", read.variables, {}),
        workdir=table.take("workdir", read.absolute, None),
        skills_dir=table.take("skills_dir", read.absolute, None),
        mcp_servers=tuple(_mcp_server(entry) for entry in table.tables("mcp_servers")),
        healthcheck=_healthcheck(table),
    )


def _resources(table: Table) -> Resources:
    for key in ("gpu_types", "tpu"):
        table.take(key, read.any_value, None)
        if table.values.get(key):
            table.warn(key, "is not enforced here")
    return Resources(
        cpu=table.take("cpus", read.positive, None),
        memory_mb=_size(table, "memory"),
        storage_mb=_size(table, "storage"),
        gpus=table.take("gpus", read.count, None) or None,
    )


def _size(table: Table, name: str) -> int | None:
    old = table.take(name, read.size_mb, None)
    if name in table.values:
        table.warn(name, f"is an old spelling of {name}_mb")
    return table.take(f"{name}_mb", read.amount, old)


def _mcp_server(table: Table) -> Mapping[str, Any]:
    table.need("name", read.words, "")
    transport = table.take("transport", read.one_of("sse", "streamable-http", "http", "stdio"), "sse")
    table.take("args", read.texts, ())
    table.take("headers", read.text_map, {})
    command, url = table.take("command", read.words, None), table.take("url", read.words, None)
    if transport == "stdio" and command is None:
        table.error("command", "is missing; the transport stdio needs it")
    if transport != "stdio" and url is None:
        table.error("url", f"is missing; the transport {transport} needs it")
    return {**table.values, "transport": "streamable-http" if transport == "http" else transport}


def _healthcheck(parent: Table) -> Healthcheck | None:
    if "healthcheck" not in parent.values:
        parent.take("healthcheck", read.any_value, None)
        return None
    table, usual = parent.table("healthcheck"), Healthcheck("")
    return Healthcheck(
        table.need("command", read.words, ""),
        table.take("interval_sec", read.from_zero, usual.interval_seconds),
        table.take("timeout_sec", read.positive, usual.timeout_seconds),
        table.take("start_period_sec", read.from_zero, usual.start_period_seconds),
        table.take("start_interval_sec", read.from_zero, usual.start_interval_seconds),
        table.take("retries", read.amount, usual.retries),
    )


def _verifier(table: Table) -> VerifierPhase:
    mode = table.take("environment_mode", read.one_of("shared", "separate"), None)
    has_machine = "environment" in table.values
    own = table.table("environment")
    machine = _machine(own) if has_machine else None
    if mode == "shared" and has_machine:
        table.error("environment_mode", "is shared, but there is a [verifier.environment]; leave one of them out")
    return VerifierPhase(
        timeout_seconds=table.take("timeout_sec", read.positive, None),
        env=table.take("env", read.variables, {}),
        user=table.take("user", read.user, None),
        separate=True if has_machine else None if mode is None else mode == "separate",
        network=_override(table),
        machine=machine,
        collect=tuple(_command(entry) for entry in table.tables("collect")),
    )


def _command(table: Table) -> ArtifactCommand:
    _require_main(table)
    return ArtifactCommand(
        table.need("command", read.words, ""),
        table.take("timeout_sec", read.positive, 60.0),
        table.take("user", read.user, None),
        optional=True,
    )


def _require_main(table: Table) -> None:
    if table.take("service", read.words, "main") != "main":
        table.error("service", f"{table.values['service']!r} cannot be reached; only the service main can")


def _step(table: Table, workdir: str | None) -> Step:
    return Step(
        name=table.need("name", read.step_name, ""),
        agent=_agent(table.table("agent")),
        verifier=_verifier(table.table("verifier")),
        min_reward=table.take("min_reward", read.min_reward, None),
        healthcheck=_healthcheck(table),
        artifacts=_artifacts(table, workdir),
    )


def _require_unique(top: Table, steps: Sequence[Step]) -> None:
    seen: set[str] = set()
    for index, step in enumerate(steps):
        name = unicodedata.normalize("NFC", step.name).casefold()
        if name and name in seen:
            top.notes.add(("steps", index, "name"), f"{step.name!r} is the name of an earlier step")
        seen.add(name)


def _artifacts(table: Table, workdir: str | None) -> tuple[Artifact, ...]:
    entries = table.take("artifacts", read.list_of(read.any_value), ())
    found: list[Artifact] = []
    for index, entry in enumerate(entries):
        try:
            found.append(_artifact(entry, Table({}, (*table.path, "artifacts", index), table.notes), workdir))
        except (UsageError, ValueError) as exc:
            problem = exc.problem if isinstance(exc, UsageError) else str(exc)
            table.notes.add((*table.path, "artifacts", index), problem)
    try:
        require_apart(tuple(found), "artifacts")
    except UsageError as exc:
        table.error("artifacts", exc.problem)
    return tuple(found)


def _artifact(entry: Any, place: Table, workdir: str | None) -> Artifact:
    given = Table({"source": entry} if isinstance(entry, str) else _free(entry), place.path, place.notes)
    _require_main(given)
    source = read.words(given.values.get("source", ""))
    if not source.startswith("/"):
        if workdir is None:
            raise ValueError(f"{source!r} is relative, and no workdir is declared; give an absolute path")
        source = f"{workdir}/{source}"
    known = {key: given.take(key, read.any_value, None) for key in ("source", "destination", "exclude")}
    wanted = {key: value for key, value in known.items() if value is not None}
    return artifact({**wanted, "source": source}, "artifacts")


def _require_alike(top: Table, config: Config) -> None:
    """Refuse steps that differ in what is decided once for the whole attempt."""
    if not config.steps:
        return
    first_agent, first_verifier = config.agent_of(config.steps[0]), config.verifier_of(config.steps[0])
    for index, step in enumerate(config.steps[1:], 1):
        agent, verifier = config.agent_of(step), config.verifier_of(step)
        differing = (
            (("agent", "network_mode"), agent.network != first_agent.network),
            (("verifier", "network_mode"), verifier.network != first_verifier.network),
            (("verifier", "environment_mode"), bool(verifier.separate) != bool(first_verifier.separate)),
            (("verifier", "environment"), verifier.machine != first_verifier.machine),
        )
        for keys, differs in differing:
            if differs:
                top.notes.add(("steps", index, *keys), "differs from the first step's, which is not supported")
