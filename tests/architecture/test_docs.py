"""The documents are complete, and say what the code says."""

from __future__ import annotations

import importlib.util
import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agentcompass import schemas
from agentcompass.adapters.cli.parser import build_parser
from agentcompass.adapters.stores.json_files import FILES
from agentcompass.core.config.sections import ATTEMPTS, EXECUTION, RUNTIME, SELECTION
from agentcompass.core.runtime.phases import Phase
from agentcompass.ports import hookspecs

ROOT = Path(__file__).parents[2]
DOCS = sorted([*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")])


def _generator():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _read(name):
    return (ROOT / "docs" / name).read_text("utf-8")


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_generated_parts_are_up_to_date(path):
    """Running docs/generate.py would change nothing."""
    text = path.read_text("utf-8")

    assert _generator().rewritten(text) == text


@pytest.mark.seed("CL-01")
def test_every_option_is_documented():
    """Each option of each command stands in the page of options."""
    text = _read("options.md")
    missing = []
    for name, parser in _generator().commands(build_parser(), "agentcompass"):
        missing += [f"{name} {option}" for a in parser._actions for option in a.option_strings if option not in text]

    assert [] == [option for option in missing if not option.endswith(("-h", "--help"))]


def test_every_field_is_documented():
    """Each configuration field stands in the page of configuration."""
    text = _read("configuration.md")
    names = [field.name for section in (EXECUTION, RUNTIME, SELECTION, ATTEMPTS) for field in section]

    assert [] == [name for name in names if f"`{name}`" not in text]


def test_every_hook_is_documented_with_its_arguments():
    """Each hook is a heading, with exactly its signature."""
    text = _read("hooks.md")
    hooks = {name: hook for name, hook in vars(hookspecs).items() if name.startswith(("register_", "on_"))}

    assert [] == [
        name
        for name, hook in hooks.items()
        if f"### `{name}{inspect.signature(hook).replace(return_annotation=inspect.Signature.empty)}`" not in text
    ]


def test_every_file_and_schema_is_documented():
    """Each file of a run and each schema stands in the page of files."""
    text = _read("files.md")

    assert [] == [name for name in (*FILES.values(), *schemas.names()) if f"`{name}" not in text]


def test_every_phase_is_documented():
    """Each phase of an attempt has its row."""
    text = _read("life-of-an-attempt.md")

    assert [] == [phase for phase in Phase if f"| `{phase}` |" not in text]


def test_links_between_documents_lead_somewhere():
    """No link points to a file that is not there."""
    broken = []
    for path in DOCS:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text("utf-8")):
            if "://" not in target and not (path.parent / target).exists():
                broken.append(f"{path.name}: {target}")

    assert [] == broken


def test_ci_runs_what_the_readme_says():
    """The test command of the README is the one that continuous integration runs."""
    command = next(line for line in (ROOT / "README.md").read_text("utf-8").splitlines() if "install tox" in line)

    assert command in (ROOT / ".ci" / "run").read_text("utf-8").splitlines()


def test_options_in_the_readme_exist():
    """Each command of the README is one that the parser takes."""
    text = (ROOT / "README.md").read_text("utf-8").replace("\\\n", " ")
    commands = re.findall(r"^\.venv/bin/agentcompass (.*)$", text, re.MULTILINE)

    assert 3 == len(commands)
    for command in commands:
        build_parser().parse_args(shlex.split(command))


def test_the_example_of_embedding_runs():
    """Another tool's sandbox and store are enough to drive an evaluation."""
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "examples" / "embed.py"], capture_output=True, text=True, check=True
    )

    tasks = [f"HumanEval/{number}" for number in range(5)]
    assert f"completed 0.0 {tasks}" == done.stdout.strip()


def test_the_project_speaks_of_itself_alone():
    """No file names a place on one machine."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    words = re.compile(r"/(work/(main|venv|shared)|root/\.|opt/pypi)")
    found = []
    for name in listed.splitlines():
        path = ROOT / name
        if (
            path.suffix in (".py", ".md", ".cfg", ".ini", ".toml", ".json")
            and path.is_file()
            and path != Path(__file__)
        ):
            found += [f"{name}: {line.strip()}" for line in path.read_text("utf-8").splitlines() if words.search(line)]

    assert [] == found
