"""``agentcompass config``: show what is in force, explain every field, check files."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from agentcompass.core.config.environment import (
    COMMON,
    ENVIRONMENT_KEYS,
    POLICY,
    RESOURCES,
    SETUP,
    split_environment,
)
from agentcompass.core.config.fields import Section
from agentcompass.core.config.layers import mapping, stack
from agentcompass.core.config.references import reference
from agentcompass.core.config.request import (
    COMPONENT_SECTIONS,
    check_config,
)
from agentcompass.core.config.sections import (
    EXECUTION,
    RUNTIME,
    SELECTION,
    parse_execution,
    parse_runtime,
    parse_selection,
    without_aliases,
)
from agentcompass.core.errors import UsageError
from agentcompass.core.model.component import Kind
from agentcompass.core.records.jsonable import jsonable
from agentcompass.core.redaction import Redactor, secrets_among

from ..config.files import config_layers
from ..engine.host import Host
from ..engine.parameters import validated
from .cmd_list import KIND_OF


def run(args: argparse.Namespace) -> int:
    """Do what the second word says."""
    if args.what == "docs":
        return _docs(args)
    if args.what == "validate":
        return _validate(args)
    if args.what == "show":
        return _show(args)
    raise UsageError("agentcompass config", "says nothing about what to do", "add show, docs or validate")


def _layers(paths: list[str]) -> tuple[dict[str, Any], list[str]]:
    layers, files = config_layers(paths, os.environ, Path.cwd())
    return stack(layers), files


def _show(args: argparse.Namespace) -> int:
    """Print the sections as they are in force, references unresolved, credentials hidden."""
    config, files = _layers(args.config)
    check_config(config, _known(Host()))
    execution, _ = without_aliases(mapping(config.get("execution"), "execution"), "execution")
    shown = {
        "runtime": _with_defaults(RUNTIME, mapping(config.get("runtime"), "runtime")),
        "execution": _with_defaults(EXECUTION, execution),
        **{section: config[section] for section in COMPONENT_SECTIONS if config.get(section)},
    }
    document = Redactor(secrets_among(os.environ)).document(jsonable(shown))
    if args.format == "json":
        print(json.dumps({"files": files, **document}, indent=2, ensure_ascii=False))
    else:
        import yaml

        print("".join(f"# {file}\n" for file in files) + yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    return 0


def _with_defaults(section: Section, given: Mapping[str, Any]) -> dict[str, Any]:
    values = {field.name: jsonable(_plain(field.default)) for field in section}
    return values | dict(given)


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _validate(args: argparse.Namespace) -> int:
    """Check every section of the files in force; references are not resolved, since they may be set later."""
    config, files = _layers([*args.config, *args.files])
    host = Host()
    check_config(config, _known(host))
    parse_runtime(_without_references(mapping(config.get("runtime"), "runtime")))
    parse_execution(_without_references(mapping(config.get("execution"), "execution")))
    for section, kind in COMPONENT_SECTIONS.items():
        for name, given in mapping(config.get(section), section).items():
            _check_component(host, kind, name, mapping(given, f"{section}.{name}"), f"{section}.{name}")
    print("valid: " + (", ".join(files) or "no configuration file"))
    return 0


def _check_component(host: Host, kind: Kind, name: str, given: Mapping[str, Any], path: str) -> None:
    own = _without_references(given)
    if kind is Kind.BENCHMARK:
        _, own = parse_selection(own, path)
    if kind is Kind.ENVIRONMENT:
        _, own = split_environment(own, path)
    component = host.component(kind, name)
    validated(component, own, path, ENVIRONMENT_KEYS if kind is Kind.ENVIRONMENT else ())


def _without_references(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if reference(value) is None}


def _known(host: Host) -> dict[str, tuple[str, ...]]:
    return {section: host.ids(kind) for section, kind in COMPONENT_SECTIONS.items()}


def _docs(args: argparse.Namespace) -> int:
    """Print every field with its type, default and meaning."""
    if args.kind in ("execution", "runtime"):
        title, rows = args.kind, _section_rows(EXECUTION if args.kind == "execution" else RUNTIME)
    else:
        title, rows = _component_docs(KIND_OF.get(args.kind) or Kind(args.kind), args.id)
    if args.json:
        print(json.dumps({"title": title, "fields": rows}, indent=2, ensure_ascii=False))
        return 0
    print(title)
    for row in rows:
        print(f"\n  {row['field']}  ({row['type']}, default {json.dumps(row['default'], ensure_ascii=False)})")
        print(f"      {row['meaning']}")
    return 0


def _section_rows(section: Section) -> list[dict[str, Any]]:
    return [
        {
            "field": field.name,
            "type": field.kind,
            "default": jsonable(_plain(field.default)),
            "meaning": field.meaning,
        }
        for field in section
    ]


def _component_docs(kind: Kind, name: str | None) -> tuple[str, list[dict[str, Any]]]:
    if name is None:
        raise UsageError("id", f"a {kind.value} is to be named", f"see: agentcompass list {kind.value}")
    component = Host().component(kind, name)
    rows = [
        {
            "field": field,
            "type": _type(schema),
            "default": schema.get("default"),
            "meaning": schema.get("description", ""),
        }
        for field, schema in component.properties.items()
    ]
    if kind is Kind.BENCHMARK:
        rows += _section_rows(SELECTION)
    if kind is Kind.ENVIRONMENT:
        rows += environment_rows()
    return f"{kind.value} {component.id}: {component.summary}", rows


def environment_rows() -> list[dict[str, Any]]:
    """Return the fields that every environment has, those of mappings after the mapping."""
    inner = {"setup": SETUP, "resources": RESOURCES, "network_policy": POLICY}
    rows = []
    for row in _section_rows(COMMON):
        if row["field"] in ("setup", "evaluation_setup", "resources", "evaluation_resources"):
            row["default"] = {}
        rows.append(row)
        fields = _section_rows(inner.get(row["field"], ()))
        rows += [{**field, "field": f"{row['field']}.{field['field']}"} for field in fields]
    return rows


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    kinds = schema.get("type", "any")
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)
