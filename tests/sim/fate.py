"""Fates: what becomes of an effect, and when, as a function of the seed and of which effect it is; never of the order.

A fate knows nothing of limits and cancellations: those are the drivers' business, and what the drivers must agree on.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from math import inf, log
from struct import Struct

from .settings import Settings

#: Mean seconds of each kind of work.
MEANS = {
    "load": 1.0,
    "open": 4.0,
    "prepare": 2.0,
    "next": 1.0,
    "start": 2.0,
    "run": 40.0,
    "run_task": 40.0,
    "kill": 0.3,
    "collect": 1.0,
    "switch": 0.1,
    "ready": 2.0,
    "download": 3.0,
    "restore": 3.0,
    "close_session": 0.5,
    "close": 1.0,
    "evaluate": 12.0,
    "save_attempt": 0.02,
    "save_task": 0.5,
    "save_retry": 0.02,
    "save_checkpoint": 0.02,
    "save_plans": 0.02,
    "save_report": 0.02,
    "save_run_info": 0.02,
}
_PHASES = ("raise", "sandbox", "fatal", "error", "warning", "cancels", "hang", "exits")
#: What may befall each kind; the first of them that the dice choose happens.
TROUBLES = {
    "plan": ("raise",),
    "load": ("hang",),
    "open": ("raise", "sandbox", "fatal", "cancels", "hang", "exits"),
    "prepare": _PHASES,
    "next": _PHASES,
    "start": _PHASES,
    "run": (*_PHASES, "timeout"),
    "run_task": (*_PHASES, "issues"),
    "kill": ("raise", "sandbox", "hang"),
    "collect": (*_PHASES, "issues"),
    "switch": ("raise", "sandbox", "hang"),
    "ready": ("raise", "sandbox", "error", "cancels", "hang"),
    "reserve": ("save",),
    "download": ("raise", "sandbox", "error", "cancels", "hang"),
    "restore": ("raise", "sandbox", "cancels", "hang"),
    "close_session": ("raise", "sandbox", "warning", "cancels", "hang"),
    "close": ("raise", "sandbox", "hang"),
    "evaluate": (*_PHASES, "issues", "metrics"),
    "save_attempt": ("save",),
    "save_task": ("save",),
    "save_retry": ("save",),
    "save_checkpoint": ("save",),
    "save_plans": ("save",),
    "save_report": ("save",),
    "save_run_info": ("save",),
}
_STUBBORN = frozenset({"open", "prepare", "start", "run", "run_task", "collect", "evaluate"})
_RETRIED_LATER = frozenset({"fatal", "error"})


DICE = Struct("<9I")  #: how many numbers a fate is made of


@dataclass(slots=True)
class Fate:
    """What becomes of one effect: after *latency* seconds *trouble*, or none.

    *stubborn* is how many seconds it takes to end after it has been cancelled. *dice* are drawn from [0, 1), for the
    details of what it brings.
    """

    latency: float
    trouble: str | None
    stubborn: float
    retry_after: float | None
    dice: tuple[float, ...]


def fate_of(settings: Settings, name: str, kind: str, may_hang: bool) -> Fate:
    """Return the fate of the effect *name* of *kind*; it never hangs unless it *may_hang*."""
    digest = hashlib.blake2b(f"{settings.seed}/{name}/{kind}".encode(), digest_size=DICE.size).digest()
    dice = [number / 2**32 for number in DICE.unpack(digest)]
    rates = settings.troubles
    trouble = _trouble(rates, TROUBLES.get(kind, ()), dice[0])
    latency = round(-MEANS.get(kind, 0.0) * log(1 - dice[1]), 6) + 1e-6
    if dice[2] < rates.get("slow", 0.0):
        latency *= 10
    if kind.startswith("save") and rates.get("slow disk"):
        latency *= 50
    if trouble == "hang":
        latency, trouble = (inf, None) if may_hang else (latency, None)
    stubborn = 0.0
    if kind in _STUBBORN and dice[4] < rates.get("stubborn", 0.0):
        stubborn = inf if dice[3] < rates.get("obstinate", 0.0) else round(8 * dice[3], 6)
    retry_after = round(300 * dice[5], 3) if trouble in _RETRIED_LATER and dice[5] < 0.3 else None
    return Fate(latency, trouble, stubborn, retry_after, tuple(dice[6:]))


def _trouble(rates: dict[str, float], possible: tuple[str, ...], dice: float) -> str | None:
    for name in possible:
        rate = rates.get(name, 0.0)
        if dice < rate:
            return name
        dice -= rate
    return None
