"""Recipes change plans and nothing else, in a stated order, and the plan says which did."""

from __future__ import annotations

import json
import textwrap

import pytest

RECIPES = """
from dataclasses import replace
from agentcompass import Component, hookimpl

class Budget:
    priority, enabled_by_default = 5, True
    def matches(self, request, task, plan):
        return task.id != "b"
    def apply(self, request, task, plan):
        return replace(plan, run_timeout_seconds=(plan.run_timeout_seconds or 0) + 7)

class Early(Budget):
    priority = -1
    def apply(self, request, task, plan):
        return replace(plan, run_timeout_seconds=100)

class Asked(Budget):
    enabled_by_default = False

class Garbage(Asked):
    def apply(self, request, task, plan):
        return None

@hookimpl
def register_recipes():
    names = ("Budget", "Early", "Asked", "Garbage")
    return [Component(name.lower(), "For the tests.", f"{__name__}:{name}") for name in names]
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with recipes."""
    made = tmp_path / "recipes"
    made.mkdir()
    (made / "mine.py").write_text(textwrap.dedent(RECIPES))
    return str(made)


def _plans(ran):
    plans = [json.loads(line) for line in (ran.run_dir / "plans.jsonl").read_text("utf-8").splitlines()]
    return {plan["task_id"]: (plan["plan"]["run_timeout_seconds"], plan["plan"]["applied_recipes"]) for plan in plans}


@pytest.mark.seed("CP-04")
def test_recipes_that_match_apply_by_priority_and_are_told(toys, folder):
    """Those on by default apply in order to the tasks that they match; the folder is in the record of the run."""
    ran = toys.run({"a": {}, "b": {}}, "--recipe-dir", folder)

    assert {"a": (107.0, ["early", "budget"]), "b": (None, [])} == _plans(ran)
    assert [folder] == ran.document("run_info.json")["request"]["metadata"]["recipe_dirs"]


@pytest.mark.seed("CP-04")
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (["--recipe", "budget"], (7.0, ["budget"])),
        (["--recipe", "asked", "--recipe", "early"], (107.0, ["early", "asked"])),
    ],
)
def test_named_recipes_are_the_only_ones(toys, folder, how, expected):
    """A list, from either option, leaves out the others, and lets in what is off by default."""
    assert expected == _plans(toys.run({"a": {}}, "--recipe-dir", folder, *how))["a"]


def test_a_list_of_the_configuration_does_the_same(toys, folder):
    """`execution.enabled_recipes` is what the option sets."""
    ran = toys.run({"a": {}}, "--recipe-dir", folder, execution={"enabled_recipes": ["early"]})

    assert {"a": (100.0, ["early"])} == _plans(ran)


def test_the_user_has_the_last_word(toys, folder):
    """What a recipe makes of the task's budget lies under the request's."""
    ran = toys.run({"a": {}}, "--recipe-dir", folder, execution={"run_timeout_seconds": 3})

    assert {"a": (3.0, ["early", "budget"])} == _plans(ran)


def test_a_broken_recipe_costs_its_tasks_only(toys, folder):
    """What it returns is checked like everything else."""
    ran = toys.run({"a": {}, "b": {}}, "--recipe-dir", folder, "--recipe", "garbage")
    details = ran.details()

    assert ["setup_failed"] == [issue["code"] for issue in details["a"]["attempts"]["1"]["issues"]]
    assert "the recipe garbage returned a NoneType" in details["a"]["attempts"]["1"]["issues"][0]["message"]
    assert [] == details["b"]["attempts"]["1"]["issues"]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--recipe", "budgit"], "recipe: 'budgit' is not registered; did you mean 'budget'?"),
        (["--recipe-dir", "/no/such/folder"], "--recipe-dir: '/no/such/folder' is no folder"),
    ],
)
def test_unknown_recipes_are_refused(toys, folder, options, part):
    """In one line, with nothing made."""
    ran = toys.run({"a": {}}, "--recipe-dir", folder, *options)

    assert (2, None) == (ran.status, ran.run_dir)
    assert part in ran.err


def test_a_module_that_breaks_is_named(toys, folder, tmp_path):
    """With its path and what it said."""
    (tmp_path / "recipes" / "other.py").write_text("import no_such_module_at_all")
    ran = toys.run({"a": {}}, "--recipe-dir", folder)

    assert (2, None) == (ran.status, ran.run_dir)
    assert "other.py: ModuleNotFoundError: No module named 'no_such_module_at_all'" in ran.err
