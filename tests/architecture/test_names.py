"""What is named by a string exists, and each file says what it is for."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path

import pytest

from agentcompass.adapters.engine.host import BUILTIN, Host
from agentcompass.core.model.component import Kind
from agentcompass.ports import hookspecs

ROOT = Path(__file__).parents[2]
ROOMS = ("core", "ports", "plugins", "adapters", "schemas")
SOURCES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


@pytest.mark.parametrize(
    "registered",
    [r for kind in Kind for r in Host(external=False).registered(kind)],
    ids=lambda r: f"{r.kind}-{r.component.id}",
)
def test_every_factory_is_there_and_takes_its_parameters(registered):
    """A component's string leads to something that takes every parameter that its schema names."""
    module, _, attribute = registered.component.factory.partition(":")
    factory = getattr(import_module(module), attribute)

    assert set(registered.component.properties) <= set(inspect.signature(factory).parameters)


def test_every_built_in_plugin_implements_a_hook():
    """No built-in plugin is registered for nothing."""
    hooks = {name for name in vars(hookspecs) if name.startswith("register_")}

    assert [] == [name for name in BUILTIN if not hooks & set(vars(import_module(name)))]


def test_every_kind_has_its_hook():
    """Each port that plugins can fill has one hook, and each hook a port."""
    hooks = {name for name in vars(hookspecs) if name.startswith("register_")}

    assert {f"register_{kind.plural}" for kind in Kind} == hooks


def test_every_file_says_what_it_does_in_its_first_line():
    """Each module opens with a docstring whose first line is a sentence."""
    silent = []
    for path in SOURCES:
        first = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]
        if not first.endswith((".", ":")):
            silent.append(str(path.relative_to(ROOT)))

    assert [] == silent


def test_no_file_and_no_function_outgrows_a_reader():
    """Files stay under 400 lines and functions under 60."""
    large = []
    for path in SOURCES:
        text = path.read_text("utf-8")
        if text.count("\n") > 400:
            large.append(str(path.relative_to(ROOT)))
        for node in ast.walk(ast.parse(text)):
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if function and (node.end_lineno or 0) - node.lineno >= 60:
                large.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")

    assert [] == large
