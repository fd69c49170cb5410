"""Who opened a sandbox, in a form that fits into a label, and whether that process has ended."""

from __future__ import annotations

import hashlib
import os
import socket
from contextlib import suppress
from functools import cache

from .process_table import born, is_ended


def owner() -> str:
    """Return the name of this process: the machine, its number, and when it began (a number is used again)."""
    return f"{_machine()}.{os.getpid()}.{born(os.getpid()) or 0}"


def abandoned(name: str) -> bool:
    """Tell whether the process *name* has ended; False when that cannot be known, as of another machine's."""
    machine, _, rest = name.partition(".")
    pid, _, began = rest.partition(".")
    if machine != _machine() or not pid.isdecimal():
        return False
    if began != "0":
        return born(int(pid)) != began or is_ended(int(pid))
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


@cache
def _machine() -> str:
    """Return what tells this machine, since it started, from others; process numbers hold in one namespace only."""
    facts = [socket.gethostname()]
    with suppress(OSError):
        facts.append(_text("/proc/sys/kernel/random/boot_id"))
    with suppress(OSError):
        facts.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]


def _text(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read().strip()
