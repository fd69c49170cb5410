"""The settings of one simulated run, drawn from a seed: a swarm, in which each seed knows only some of the troubles."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

PROVIDERS = ("docker", "modal", "daytona", "local")
TROUBLES = (
    "raise",  # an exception that nobody classified
    "sandbox",  # the sandbox itself breaks
    "fatal",  # a component classifies its own failure
    "error",
    "warning",
    "timeout",  # the harness stops at its own budget
    "hang",  # never answers
    "stubborn",  # takes its time to be cancelled, or answers late
    "obstinate",  # stubborn work never lets itself be cancelled
    "cancels",  # the work cancels itself
    "exits",  # a component leaves the process
    "issues",  # a result comes with issues
    "metrics",  # a verdict is not what the contract allows
    "save",  # the disk is full
    "slow",
    "slow disk",
    "killed",  # processes have to be killed
)


@dataclass(frozen=True, slots=True)
class Order:
    """One request of a run."""

    tasks: int
    categories: int
    aggregation: str
    k: int
    strategy: str
    speculative: bool
    isolated: bool
    scalar: bool
    provider: str
    mode: str
    harness: bool
    keep: bool
    max_retries: int
    patterns: tuple[str, ...]
    min_delay: float
    max_delay: float
    run_seconds: float | None
    evaluation_seconds: float | None
    multiplier: float
    run_multiplier: float | None
    evaluation_multiplier: float | None
    compensation: float
    collect_seconds: float
    build_seconds: float | None
    success: float
    load: str
    rejected: int
    artifacts: int = 0
    networks: bool = False
    steps: int = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """All that a simulated run depends on; times are seconds from its start."""

    seed: int
    orders: tuple[Order, ...]
    slots: int
    limits: Mapping[str, int]
    rates: Mapping[str, float]
    troubles: Mapping[str, float]
    deadline: float | None
    interrupt: float | None
    stop_with_opening: int | None
    grace: float
    crash_at: int | None

    @property
    def may_stop(self) -> bool:
        """Tell whether something is sure to end the run."""
        return self.deadline is not None or self.interrupt is not None

    def document(self) -> dict[str, Any]:
        """Return the settings as JSON."""
        return asdict(self)


def settings_of(document: Mapping[str, Any]) -> Settings:
    """Return the settings that *document* holds."""
    orders = tuple(Order(**{**order, "patterns": tuple(order["patterns"])}) for order in document["orders"])
    return Settings(**{**document, "orders": orders})


def draw(seed: int) -> Settings:
    """Draw the settings of *seed*."""
    rng = random.Random(f"settings {seed}")
    settings = _any(rng, seed)
    theme = rng.random()
    if theme < 0.1:
        return _race(settings, rng)
    if theme < 0.2:
        return _siege(settings, rng)
    if theme < 0.25:
        return _full_disk(settings, rng)
    return _harsh_judge(settings, rng) if theme < 0.35 else settings


def _race(settings: Settings, rng: random.Random) -> Settings:
    """Return settings under which attempts overtake the success that makes them needless."""
    hasty = {"strategy": "pass", "scalar": False, "speculative": True, "isolated": True, "success": 0.8}
    orders = tuple(replace(order, k=rng.choice((3, 5)), **hasty) for order in settings.orders)
    rates = {order.provider: rng.choice((0.02, 0.02, 0.5)) for order in orders}
    troubles = {**settings.troubles, "slow disk": 1.0}
    return replace(settings, orders=orders, slots=rng.choice((3, 8)), rates=rates, troubles=troubles)


def _siege(settings: Settings, rng: random.Random) -> Settings:
    """Return settings under which a stop meets work that does not obey."""
    troubles = {**settings.troubles, "hang": 0.1, "stubborn": 0.5, "obstinate": 0.7}
    orders = tuple(replace(order, run_seconds=rng.choice((None, order.run_seconds))) for order in settings.orders)
    return replace(
        settings,
        orders=orders,
        troubles=troubles,
        deadline=round(rng.uniform(1, 300), 3),
        grace=rng.choice((0.25, 3.0)),
    )


def _full_disk(settings: Settings, rng: random.Random) -> Settings:
    """Return settings under which nothing can be relied on to be saved."""
    return replace(settings, troubles={**settings.troubles, "save": rng.choice((0.05, 0.2))})


def _harsh_judge(settings: Settings, rng: random.Random) -> Settings:
    """Return settings under which grading is repeated, and fails."""
    impatient = {"max_retries": 1, "evaluation_seconds": 15.0, "evaluation_multiplier": 0.5}
    orders = tuple(replace(order, mode=rng.choice(("none", "fresh")), **impatient) for order in settings.orders)
    return replace(settings, orders=orders, troubles={"issues": 0.4, "fatal": 0.05, "raise": 0.05})


def _any(rng: random.Random, seed: int) -> Settings:
    count = 1 if rng.random() < 0.8 else rng.randint(2, 3)
    return Settings(
        seed=seed,
        orders=tuple(_order(rng, 8 // count) for _ in range(count)),
        slots=rng.choice((1, 1, 2, 3, 4, 8, 32)),
        limits={name: rng.choice((0, 1, 2, 5)) for name in PROVIDERS if rng.random() < 0.6},
        rates={name: rng.choice((0.01, 0.05, 0.5, 4.0)) for name in PROVIDERS if rng.random() < 0.5},
        troubles=_troubles(rng),
        deadline=round(rng.uniform(1, 2000), 3) if rng.random() < 0.25 else None,
        interrupt=round(rng.expovariate(1 / 200), 3) if rng.random() < 0.25 else None,
        stop_with_opening=rng.randint(1, 4) if rng.random() < 0.15 else None,
        grace=rng.choice((0.25, 3.0, 30.0, 30.0, 30.0)),
        crash_at=rng.randint(1, 400) if rng.random() < 0.15 else None,
    )


def _troubles(rng: random.Random) -> dict[str, float]:
    rates = {name: rng.choice((0.02, 0.05, 0.2)) for name in TROUBLES if rng.random() < 0.5}
    if "slow disk" in rates:
        rates["slow disk"] = 1.0
    if "save" in rates:
        rates["save"] = 0.01 if rng.random() < 0.5 else 0.0
    return rates


def _order(rng: random.Random, most: int) -> Order:
    strategy = rng.choice(("avg", "pass"))
    keep = rng.random() < 0.1
    categories = rng.randint(0, 3)
    return Order(
        tasks=rng.randint(1, most),
        categories=categories,
        aggregation=rng.choice(("micro_weighted", "category_mean") if categories else ("micro_weighted",)),
        k=rng.choice((1, 1, 2, 3, 5)),
        strategy=strategy,
        speculative=rng.random() < 0.5,
        isolated=rng.random() < 0.6,
        scalar=strategy == "avg" and rng.random() < 0.3,
        provider=rng.choice(PROVIDERS),
        mode=rng.choice(("none", "reuse", "fresh")),
        harness=rng.random() < 0.75,
        keep=keep,
        **_limits(rng),
        success=rng.choice((0.1, 0.5, 0.9)),
        load=rng.choice(("usage", "disk", "defect", "empty", "slow")) if rng.random() < 0.06 else "ok",
        rejected=rng.choice((0, 0, 0, 0, 1, 3)),
        artifacts=rng.choice((0, 0, 1, 2)),
        networks=rng.random() < 0.3,
        steps=rng.choice((1, 1, 1, 1, 2, 3)),
    )


def _limits(rng: random.Random) -> dict[str, Any]:
    return {
        "max_retries": rng.choice((0, 1, 2, 4)),
        "patterns": rng.choice(((), ("reset",), ("(?i)TROUBLE$",), ("stopped after", "_failed"))),
        "min_delay": rng.choice((0.5, 5.0)),
        "max_delay": rng.choice((5.0, 60.0)),
        "run_seconds": rng.choice((None, 30.0, 120.0)),
        "evaluation_seconds": rng.choice((None, 15.0, 60.0)),
        "multiplier": rng.choice((1.0, 1.0, 1.5)),
        "run_multiplier": rng.choice((None, None, 2.0)),
        "evaluation_multiplier": rng.choice((None, None, 0.5)),
        "compensation": rng.choice((1.0, 20.0)),
        "collect_seconds": rng.choice((2.0, 60.0)),
        "build_seconds": rng.choice((None, 10.0, 60.0)),
    }
