"""The command line: parse, import only the chosen command, and turn errors into one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from agentcompass.core.errors import AgentCompassError, UsageError

from .parser import build_parser, parse

USAGE, FAILED, INTERRUPTED = 2, 1, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status: 0, 1 for a failed run, 2 for a wrong request, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a C locale must not turn a task's name into a crash
            stream.reconfigure(errors="backslashreplace")
    try:
        return _run(argv)
    except UsageError as exc:
        print(f"error: {_printable(str(exc))}", file=sys.stderr)
        return USAGE
    except AgentCompassError as exc:
        print(f"error: {_printable(str(exc))}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of stdout went away; keep the interpreter from complaining at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as exc:
        from .crash import report

        print(f"error: unexpected {type(exc).__name__}; a report is in {report(exc)}", file=sys.stderr)
        return FAILED


def _run(argv: Sequence[str] | None) -> int:
    args = parse(argv)
    if args.version:
        from importlib.metadata import version

        print(version("agentcompass"))
        return 0
    if args.command is None:
        build_parser().print_help()
        return 0
    status: int = import_module(f".cmd_{args.command}", __package__).run(args)
    sys.stdout.flush()  # now, while a reader that went away can still be dealt with
    return status


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


if __name__ == "__main__":
    sys.exit(main())
