"""Rewrites the generated parts of the documents: between ``<!-- generated: NAME -->`` and ``<!-- end -->``.

python docs/generate.py
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from agentcompass.adapters.cli.parser import build_parser
from agentcompass.adapters.engine.host import Host
from agentcompass.core.config.environment import COMMON, POLICY, RESOURCES, SETUP
from agentcompass.core.config.fields import Section
from agentcompass.core.config.sections import EXECUTION, RUNTIME, SELECTION
from agentcompass.core.model.component import Kind
from agentcompass.core.records.jsonable import jsonable
from agentcompass.core.runtime.phases import FOLLOWERS, Phase
from agentcompass.core.runtime.run import TRANSITIONS
from agentcompass.ports import hookspecs

DOCS = Path(__file__).parent
_BLOCK = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def attempt_diagram() -> str:
    """Return the phases of an attempt as a diagram; both ends of every phase are left to the text."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> plan"]
    usual = {Phase.RETRY_WAIT, Phase.SAVE_PARTIAL}
    for before, followers in FOLLOWERS.items():
        if before is not None:
            ends = followers if before in (Phase.EVALUATE, Phase.RETRY_WAIT) else followers - usual
            lines += [f"    {before} --> {after}" for after in sorted(ends)]
    return "\n".join([*lines, "    save_partial --> [*]", "```"])


def run_diagram() -> str:
    """Return the states of a run as a diagram."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> created"]
    lines += [f"    {before} --> {after}: {event}" for (before, event), after in TRANSITIONS.items()]
    return "\n".join([*lines, "```"])


def fields(section: Section) -> str:
    """Return a section's fields as a table."""
    rows = ["| field | type | default | meaning |", "| --- | --- | --- | --- |"]
    for field in section:
        default = json.dumps(jsonable(_plain(field.default)), ensure_ascii=False)
        rows.append(f"| `{field.name}` | {_cell(field.kind)} | `{default}` | {_cell(field.meaning)} |")
    return "\n".join(rows)


def _plain(value: object) -> object:
    return {name: getattr(value, name) for name in value.__slots__} if hasattr(value, "__slots__") else value


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def options() -> str:
    """Return every command with its options."""
    return "\n\n".join(_command(name, parser) for name, parser in commands(build_parser(), "agentcompass"))


def commands(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield every command that has no commands below it."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for action in below:
        for word, child in action.choices.items():
            yield from commands(child, f"{name} {word}")
    if not below:
        yield name, parser


def _command(name: str, parser: argparse.ArgumentParser) -> str:
    rows = [f"### `{name}`", "", "| option | meaning |", "| --- | --- |"]
    for action in parser._actions:
        if "--help" in action.option_strings:
            continue
        title = ", ".join(action.option_strings) or str(action.metavar or action.dest)
        value = "" if action.nargs == 0 or not action.option_strings else f" {action.metavar or action.dest.upper()}"
        rows.append(f"| `{_cell(title + value)}` | {_cell(action.help or '')} |")
    if len(rows) == 4:
        rows = [*rows[:2], "It takes no options."]
    return "\n".join(rows)


def hooks() -> str:
    """Return every hook with its arguments and what it is for."""
    parts = []
    for name, hook in vars(hookspecs).items():
        if name.startswith(("register_", "on_")):
            parts.append(f"### `{name}{inspect.signature(hook).replace(return_annotation=inspect.Signature.empty)}`")
            parts.append(inspect.getdoc(hook) or "")
    return "\n\n".join(parts)


def components() -> str:
    """Return the components in the box."""
    rows = ["| kind | id | what it is | extra |", "| --- | --- | --- | --- |"]
    host = Host(external=False)
    for kind in Kind:
        for registered in host.registered(kind):
            part = registered.component
            rows.append(f"| {kind} | `{part.id}` | {_cell(part.summary)} | {part.extra or ''} |")
    return "\n".join(rows)


def example_benchmark() -> str:
    """Return the benchmark of the example distribution, which the tests install and run."""
    path = DOCS.parent / "tests" / "third_party" / "agentcompass_example" / "sums.py"
    return f"```python\n{path.read_text('utf-8').strip()}\n```"


BLOCKS: dict[str, Callable[[], str]] = {
    "attempt-diagram": attempt_diagram,
    "components": components,
    "example-benchmark": example_benchmark,
    "fields-execution": lambda: fields(EXECUTION),
    "fields-runtime": lambda: fields(RUNTIME),
    "fields-selection": lambda: fields(SELECTION),
    "fields-setup": lambda: fields(SETUP),
    "fields-environment": lambda: fields(COMMON),
    "fields-policy": lambda: fields(POLICY),
    "fields-resources": lambda: fields(RESOURCES),
    "hooks": hooks,
    "options": options,
    "run-diagram": run_diagram,
}


def rewritten(text: str) -> str:
    """Return *text* with its generated parts made anew."""
    return _BLOCK.sub(lambda found: f"{found[1]}{BLOCKS[found[2]]()}\n{found[3]}", text)


def main() -> int:
    for path in sorted(DOCS.glob("*.md")):
        path.write_text(rewritten(path.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
