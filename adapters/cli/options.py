"""Options that several commands share, and how their texts become values."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from agentcompass.core.config.layers import refuse_depth
from agentcompass.core.errors import UsageError

JSON_OPTIONS = (
    ("--benchmark-params", "parameters of the benchmark"),
    ("--harness-params", "parameters of the harness"),
    ("--env-params", "parameters of the environment"),
    ("--model-params", "generation parameters, sent with every model request"),
    ("--execution-params", "fields of the section execution"),
)


def json_object(text: str | None, option: str) -> dict[str, Any]:
    """Return the JSON object that *option* was given, an empty one for nothing.

    Raises:
        UsageError: it is no JSON, or no object.
    """
    if text is None or not text.strip():
        return {}
    value = _json(text, option, "give a JSON object in single quotes")
    if not isinstance(value, dict):
        raise UsageError(option, f"{_short(text)} is not a JSON object", 'write {"key": value}')
    return value


def json_list(text: str, option: str) -> list[Any]:
    """Return the JSON list that *option* was given.

    Raises:
        UsageError: it is no JSON, or no list.
    """
    value = _json(text, option, "give a JSON list in single quotes")
    if not isinstance(value, list):
        raise UsageError(option, f"{_short(text)} is not a JSON list", 'write ["..."]')
    return value


def _json(text: str, option: str, mend: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError as exc:
        raise UsageError(option, f"{_short(text)} is not JSON ({exc})", mend) from None
    except RecursionError:
        raise UsageError(option, f"{_short(text)} is nested too deeply", mend) from None
    refuse_depth(value, option)
    return value


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def pairs(texts: list[str] | None, option: str, kind: type[int] | type[float]) -> dict[str, Any]:
    """Return the repeated ``NAME=NUMBER`` of *option* as a mapping.

    Raises:
        UsageError: one is not of that form.
    """
    found: dict[str, Any] = {}
    for text in texts or []:
        name, sign, number = text.partition("=")
        try:
            found[name.strip()] = kind(number)
        except ValueError:
            sign = ""
        if not sign or not name.strip():
            raise UsageError(option, f"{text!r} is not NAME=NUMBER", f"write {option} docker=8")
    return found


def number(text: str | None, option: str, kind: type[int] | type[float]) -> Any:
    """Return the number that *option* was given; what is none is left for the field's own refusal."""
    if text is None:
        return None
    try:
        return kind(text)
    except ValueError:
        raise UsageError(option, f"{text!r} is not a {'whole ' if kind is int else ''}number", "give one") from None


def given(**values: Any) -> Mapping[str, Any]:
    """Return the *values* that are not None."""
    return {key: value for key, value in values.items() if value is not None}


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add ``--config``."""
    parser.add_argument("--config", action="append", default=[], metavar="FILE", help="another layer of configuration")


def runtime_options(args: argparse.Namespace) -> Mapping[str, Any]:
    """Return the fields of the section ``runtime`` that the options of a run or a launch set."""
    return given(
        results_dir=args.results_dir,
        data_dir=args.data_dir,
        timeout_seconds=number(args.timeout_seconds, "--timeout-seconds", float),
        cleanup_grace_seconds=number(args.cleanup_grace_seconds, "--cleanup-grace-seconds", float),
        provider_limits=pairs(args.provider_limit, "--provider-limit", int) or None,
        env_open_qps=pairs(args.env_open_qps, "--env-open-qps", float) or None,
        checkpoint_resume=args.checkpoint_resume,
        progress=args.progress,
        log_level=args.log_level,
        file_log_level=args.file_log_level,
    )
