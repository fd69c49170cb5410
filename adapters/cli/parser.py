"""The whole command line as one parser; it imports no command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from agentcompass.core.config.words import LEVELS, PROGRESS_MODES
from agentcompass.core.errors import UsageError

from .options import JSON_OPTIONS, add_config

KINDS = ("benchmark", "harness", "env", "model", "store", "recipe")


class _Parser(argparse.ArgumentParser):
    """Tells mistakes like every other mistake: one line, no usage text before it."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(self.prog, message, f"see {self.prog} --help")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of ``agentcompass``."""
    top = _Parser(prog="agentcompass", description="Know how good an AI agent really is.", allow_abbrev=False)
    top.add_argument("--version", action="store_true", help="print the version and exit")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    _run(commands)
    _list(commands)
    _config(commands)
    _summary(commands)
    _launch(commands)
    _rescore(commands)
    _compare(commands)
    _power(commands)
    _env(commands)
    _tasks(commands)
    commands.add_parser("doctor", help="tell what is installed, what answers, what is missing", allow_abbrev=False)
    return top


def _run(commands: Any) -> None:
    run = commands.add_parser("run", help="run one evaluation", allow_abbrev=False)
    run.add_argument("benchmark", metavar="BENCHMARK", help="see: agentcompass list benchmark")
    run.add_argument("harness", metavar="HARNESS", help="see: agentcompass list harness")
    run.add_argument("model", metavar="MODEL", nargs="?", help="the model's id; not for harnesses that need none")
    run.add_argument("--env", default="host_process", metavar="ID", help="the sandbox provider (host_process)")
    model = run.add_argument_group("model")
    model.add_argument(
        "--model-base-url", default="", metavar="URL", help="the endpoint; ${NAME} is read from the environment"
    )
    model.add_argument("--model-api-key", default="", metavar="KEY", help="its key, better as '${NAME}'")
    model.add_argument(
        "--model-api-protocol", default="", metavar="NAME", help="auto, a protocol, or a JSON list of them"
    )
    parts = run.add_argument_group("parameters (JSON objects)")
    for option, meaning in JSON_OPTIONS:
        parts.add_argument(option, metavar="JSON", help=meaning)
    _choice_of_tasks(run.add_argument_group("tasks and attempts"))
    _limits(run.add_argument_group("limits"))
    _output(run.add_argument_group("output"))
    recipes = run.add_argument_group("recipes")
    recipes.add_argument("--recipe", action="append", metavar="ID", help="only these recipes; may be repeated")
    recipes.add_argument(
        "--recipe-dir", action="append", default=[], metavar="DIR", help="a folder of modules that register more"
    )
    run.add_argument("--dry-run", action="store_true", help="check everything and list what would run; create nothing")


def _choice_of_tasks(group: Any) -> None:
    group.add_argument("--limit", metavar="N", help="only the first N tasks")
    group.add_argument(
        "--allow-invalid", action="store_true", default=None, help="run the tasks that can be read, without the others"
    )
    group.add_argument("--sample-ids", metavar="ID[,ID...]", help="only these tasks; commas, or a JSON list")
    group.add_argument("--k", metavar="N", help="attempts per task (1)")
    group.add_argument("--attempt-strategy", metavar="avg|pass", help="how attempts become a task's value (avg)")
    group.add_argument("--max-retries", metavar="N", help="extra executions per attempt (0)")
    group.add_argument("--retry-pattern-list", metavar="JSON", help="regular expressions of ERROR issues to retry")


def _limits(group: Any, *, of_all: bool = False) -> None:
    group.add_argument("--task-concurrency", metavar="N", help="attempts at the same time (32)")
    group.add_argument("--timeout-seconds", metavar="S", help="deadline of the whole run (360000; 0 for none)")
    group.add_argument("--cleanup-grace-seconds", metavar="S", help="how long a stopped run may tidy up (30)")
    group.add_argument("--provider-limit", action="append", metavar="ENV=N", help="attempts at once on one provider")
    group.add_argument("--env-open-qps", action="append", metavar="ENV=Q", help="sandboxes opened per second")
    if of_all:
        return
    group.add_argument("--keep-environment", action="store_true", default=None, help="leave sandboxes open")


def _output(group: Any) -> None:
    add_config(group)
    group.add_argument("--results-dir", metavar="DIR", help="where run folders go (results)")
    group.add_argument("--data-dir", metavar="DIR", help="where benchmarks keep what they download (data)")
    group.add_argument("--run-name", default="", metavar="NAME", help="a group of runs: a folder above them")
    group.add_argument("--run-id", metavar="ID", help="the run's own folder (the time)")
    group.add_argument(
        "--reuse", nargs="?", const="", metavar="RUN_ID", help="continue an earlier run: the latest, or this one"
    )
    group.add_argument(
        "--no-checkpoint-resume",
        dest="checkpoint_resume",
        action="store_const",
        const=False,
        help="run the agent again where only the grading is missing",
    )
    group.add_argument("--progress", metavar="|".join(PROGRESS_MODES), help="what the terminal shows (auto)")
    group.add_argument("--log-level", metavar="LEVEL", help=f"least level on the terminal: {', '.join(LEVELS)} (INFO)")
    group.add_argument("--file-log-level", metavar="LEVEL", help="least level in the run's log file (DEBUG)")
    group.add_argument("--output", choices=("text", "json"), default="text", help="form of the result on stdout")


def _list(commands: Any) -> None:
    lister = commands.add_parser("list", help="list what is registered", allow_abbrev=False)
    lister.add_argument("kind", nargs="?", choices=KINDS, metavar="|".join(KINDS), help="only this kind")
    lister.add_argument("--json", action="store_true", help="print one JSON document")


def _config(commands: Any) -> None:
    config = commands.add_parser("config", help="show, explain or check configuration", allow_abbrev=False)
    what = config.add_subparsers(dest="what", metavar="show|docs|validate", parser_class=_Parser)
    show = what.add_parser("show", help="print the effective configuration, redacted", allow_abbrev=False)
    add_config(show)
    show.add_argument("--format", choices=("yaml", "json"), default="yaml")
    docs = what.add_parser("docs", help="explain every field of a section or a component", allow_abbrev=False)
    docs.add_argument("kind", choices=("execution", "runtime", *KINDS), metavar="execution|runtime|" + "|".join(KINDS))
    docs.add_argument("id", nargs="?", help="the component, for a kind of component")
    docs.add_argument("--json", action="store_true", help="print one JSON document")
    validate = what.add_parser("validate", help="check configuration files", allow_abbrev=False)
    add_config(validate)
    validate.add_argument("files", nargs="*", metavar="FILE", help="files to check as layers, after --config")


def _summary(commands: Any) -> None:
    summary = commands.add_parser("summary", help="aggregate a run again from its files", allow_abbrev=False)
    summary.add_argument("run_dir", metavar="RUN_DIR")
    summary.add_argument("--benchmark-params", metavar="JSON", help="other aggregation parameters")
    summary.add_argument("--dry-run", action="store_true", help="print the summary, write nothing")
    summary.add_argument("--output", choices=("text", "json"), default="text", help="form of the result on stdout")


def _launch(commands: Any) -> None:
    launch = commands.add_parser("launch", help="run the requests of an orchestration file", allow_abbrev=False)
    launch.add_argument("file", metavar="FILE", help="YAML or JSON")
    _limits(launch, of_all=True)
    add_config(launch)
    launch.add_argument("--results-dir", metavar="DIR", help="where run folders go (results)")
    launch.add_argument("--data-dir", metavar="DIR", help="where benchmarks keep what they download (data)")
    launch.add_argument("--run-id", metavar="ID", help="the id of every new run")
    launch.add_argument(
        "--reuse", action="store_true", default=None, help="continue the latest run of each request by default"
    )
    launch.add_argument(
        "--no-checkpoint-resume",
        dest="checkpoint_resume",
        action="store_const",
        const=False,
        help="run agents again where only the grading is missing",
    )
    launch.add_argument(
        "--auto-install-dependencies", action="store_true", help="install missing extras of trusted components first"
    )
    launch.add_argument("--progress", metavar="|".join(PROGRESS_MODES), help="what the terminal shows (auto)")
    launch.add_argument("--log-level", metavar="LEVEL", help=f"least level on the terminal: {', '.join(LEVELS)} (INFO)")
    launch.add_argument("--file-log-level", metavar="LEVEL", help="least level in log files (DEBUG)")
    launch.add_argument("--output", choices=("text", "json"), default="text", help="form of the result on stdout")
    launch.add_argument("--dry-run", action="store_true", help="check everything and print it; create nothing")


def _rescore(commands: Any) -> None:
    rescore = commands.add_parser("rescore", help="grade saved work again, without its agent", allow_abbrev=False)
    rescore.add_argument("run_dir", metavar="RUN_DIR", help="the run whose work is graded again")
    rescore.add_argument("--task", action="append", metavar="ID", help="only this task; may be repeated")
    rescore.add_argument("--only-failed", action="store_true", help="only attempts that were not right")
    rescore.add_argument("--env", metavar="ID", help="another sandbox provider")
    rescore.add_argument("--env-params", metavar="JSON", help="over the source's parameters of the environment")
    rescore.add_argument("--benchmark-params", metavar="JSON", help="over the source's parameters of the benchmark")
    rescore.add_argument("--task-concurrency", metavar="N", help="gradings at the same time (32)")
    rescore.add_argument("--max-retries", metavar="N", help="extra gradings per attempt (0)")
    rescore.add_argument("--run-id", metavar="ID", help="the new run's own folder (the time)")
    rescore.add_argument("--progress", metavar="|".join(PROGRESS_MODES), help="what the terminal shows (auto)")
    rescore.add_argument("--output", choices=("text", "json"), default="text", help="form of the result on stdout")


def _compare(commands: Any) -> None:
    compare = commands.add_parser("compare", help="compare runs task by task", allow_abbrev=False)
    compare.add_argument("baseline", metavar="RUN_A", help="the folder of the run to compare with")
    compare.add_argument("others", metavar="RUN_B", nargs="+", help="folders of one or more other runs")
    compare.add_argument("--output", choices=("text", "json", "markdown"), default="text", help="form on stdout")


def _power(commands: Any) -> None:
    power = commands.add_parser("power", help="how many tasks show a difference", allow_abbrev=False)
    power.add_argument("runs", metavar="RUN_DIR", nargs="*", help="one run, or two, whose spread is assumed")
    power.add_argument("--difference", metavar="D", help="the difference to be shown (0.05)")
    power.add_argument("--spread", metavar="SD", help="standard deviation of the differences within tasks")
    power.add_argument("--tasks", metavar="N", help="how many tasks there are: tells what they can show")
    power.add_argument("--output", choices=("text", "json"), default="text", help="form on stdout")


def _env(commands: Any) -> None:
    env = commands.add_parser("env", help="list or close sandboxes that nobody has closed", allow_abbrev=False)
    what = env.add_subparsers(dest="what", metavar="list|close", parser_class=_Parser)
    lister = what.add_parser("list", help="list what there is, on every provider that answers", allow_abbrev=False)
    lister.add_argument("--json", action="store_true", help="print one JSON document")
    close = what.add_parser("close", help="close sandboxes by id, or all without a living owner", allow_abbrev=False)
    close.add_argument("ids", nargs="*", metavar="ID", help="what to close, whoever it belongs to")
    close.add_argument("--all", action="store_true", help="close all that are abandoned or were kept")
    for parser in (lister, close):
        parser.add_argument("--results-dir", default="results", metavar="DIR", help="where records are (results)")


def _tasks(commands: Any) -> None:
    tasks = commands.add_parser("tasks", help="check tasks before money is spent on them", allow_abbrev=False)
    what = tasks.add_subparsers(dest="what", metavar="lint|check", parser_class=_Parser)
    lint = what.add_parser("lint", help="report what is wrong with task folders", allow_abbrev=False)
    check = what.add_parser("check", help="the oracle must pass each task, nop none", allow_abbrev=False)
    for parser in (lint, check):
        parser.add_argument("path", metavar="PATH", help="a folder of tasks, one task, or a registry file")
        parser.add_argument(
            "--benchmark", default="harbor", metavar="ID", help="the benchmark that reads them (harbor)"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON document")
    check.add_argument("--env", default="docker", metavar="ID", help="the sandbox provider (docker)")
    check.add_argument("--env-params", metavar="JSON", help="parameters of the environment")
    check.add_argument("--task-concurrency", metavar="N", help="attempts at the same time")
    check.add_argument("--results-dir", metavar="DIR", help="where run folders go (results)")
    check.add_argument("--progress", metavar="|".join(PROGRESS_MODES), help="what the terminal shows (auto)")


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the parsed command line.

    Raises:
        UsageError: it is wrong.
    """
    parser = build_parser()
    args, rest = parser.parse_known_args(argv)
    if args.command == "run" and args.model is None and rest and not rest[0].startswith("-"):
        args.model = rest.pop(0)  # it came after options, where older versions of argparse do not look for it
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return args
