"""What a benchmark measures: its declared metrics, and the check that every value passes before it counts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..errors import AgentCompassError, UsageError, nearest
from ..model.request import AttemptPlan, Strategy
from .estimators import finite

_ID = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_SHOWN = 80  #: characters of a wrong value that an error message repeats


class MetricKind(StrEnum):
    """What values a metric takes: true or false, or finite real numbers."""

    BINARY_SUCCESS = "binary_success"
    SCALAR = "scalar"


PRIMARY_IDS = {MetricKind.BINARY_SUCCESS: "correct", MetricKind.SCALAR: "score"}


class MetricInvalidError(AgentCompassError):
    """A value is not one that its metric takes; *problem* says what is wrong, *mend* what would be right."""

    def __init__(self, metric: str, value: Any, problem: str, mend: str) -> None:
        super().__init__(f"metric {metric}: {_shown(value)} {problem}; {mend}")
        self.metric, self.value, self.problem, self.mend = metric, value, problem, mend


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One declared metric.

    *label*, *description*, *unit* and *precision* (digits after the point) are for people. *minimum* and *maximum*
    bound a scalar, both included; None leaves that end open. The range of a binary metric is always 0 to 1.

    Raises:
        UsageError: the id, the kind, the precision or the range is wrong.
    """

    id: str
    kind: MetricKind
    label: str = ""
    description: str = ""
    unit: str = ""
    precision: int = 4
    minimum: float | None = None
    maximum: float | None = None

    def __post_init__(self) -> None:
        """Refuse a metric that could not be stored or shown."""
        if not _ID.fullmatch(self.id):
            raise UsageError("metrics", f"{self.id!r} is not a metric id", "a letter, then letters, digits, _ . or -")
        if not isinstance(self.kind, MetricKind):
            raise UsageError(f"metrics.{self.id}.kind", f"{self.kind!r} is not a kind", "give a MetricKind")
        if self.precision < 0:
            raise UsageError(f"metrics.{self.id}.precision", f"{self.precision} is negative", "give 0 or more")
        self._check_range()

    def _check_range(self) -> None:
        path, ends = f"metrics.{self.id}", [end for end in (self.minimum, self.maximum) if end is not None]
        if ends and self.kind is MetricKind.BINARY_SUCCESS:
            raise UsageError(path, "has a range, but a binary metric is true or false", "leave minimum and maximum out")
        if not all(map(finite, ends)):
            raise UsageError(path, "has a range that does not end", "give finite numbers, or None for an open end")
        if len(ends) == 2 and ends[0] >= ends[1]:
            raise UsageError(path, f"has the empty range {ends[0]:g} to {ends[1]:g}", "put minimum below maximum")

    @property
    def span(self) -> tuple[float | None, float | None]:
        """The least and the greatest value that the metric can take, None where it has no end."""
        return (0.0, 1.0) if self.kind is MetricKind.BINARY_SUCCESS else (self.minimum, self.maximum)


@dataclass(frozen=True, slots=True)
class MetricContract:
    """All metrics of a benchmark: the *primary* one, and the *auxiliary* ones.

    Raises:
        UsageError: a primary metric is not named for its kind, an auxiliary one has a primary's name, or two share one.
    """

    primary: MetricSpec
    auxiliary: tuple[MetricSpec, ...] = ()

    def __post_init__(self) -> None:
        """Refuse metrics that could not be told apart."""
        wanted = PRIMARY_IDS[self.primary.kind]
        if self.primary.id != wanted:
            raise UsageError(
                "metrics.primary",
                f"the {self.primary.kind} metric {self.primary.id!r} is misnamed",
                f"name it {wanted}",
            )
        seen: set[str] = set()
        for spec in self.auxiliary:
            if spec.id in PRIMARY_IDS.values():
                raise UsageError("metrics.auxiliary", f"{spec.id!r} is reserved for primary metrics", "rename it")
            if spec.id in seen:
                raise UsageError("metrics.auxiliary", f"{spec.id!r} is declared twice", "rename one")
            seen.add(spec.id)

    @property
    def metrics(self) -> tuple[MetricSpec, ...]:
        """Every declared metric, the primary one first."""
        return (self.primary, *self.auxiliary)


def binary_contract(*auxiliary: MetricSpec) -> MetricContract:
    """Return the contract of a benchmark whose tasks succeed or fail."""
    return MetricContract(MetricSpec(PRIMARY_IDS[MetricKind.BINARY_SUCCESS], MetricKind.BINARY_SUCCESS), auxiliary)


def scalar_contract(
    *auxiliary: MetricSpec, minimum: float | None = None, maximum: float | None = None
) -> MetricContract:
    """Return the contract of a benchmark whose tasks earn a number between *minimum* and *maximum*."""
    kind = MetricKind.SCALAR
    return MetricContract(MetricSpec(PRIMARY_IDS[kind], kind, minimum=minimum, maximum=maximum), auxiliary)


def check(contract: MetricContract, values: Mapping[str, Any]) -> dict[str, bool | int | float]:
    """Return *values*, known to be right, by metric id in the contract's order; metrics may be absent.

    Raises:
        MetricInvalidError: a metric is not declared, or its value is not one that it takes: a binary metric takes only
            true and false, a scalar one only finite real numbers within its range (never true or false).
    """
    given: Any = values  # it comes from a grader, whose types nobody has checked
    if not isinstance(given, Mapping):
        raise MetricInvalidError("values", given, "is not a mapping", "give a value by metric id")
    declared = {spec.id for spec in contract.metrics}
    for key, value in given.items():
        if key not in declared:
            raise MetricInvalidError(repr(key), value, "belongs to no declared metric", nearest(str(key), declared))
    return {spec.id: _checked(spec, given[spec.id]) for spec in contract.metrics if spec.id in given}


def require_strategy(contract: MetricContract, plan: AttemptPlan) -> None:
    """Refuse a *plan* under which the primary metric has no value.

    Raises:
        UsageError: strategy pass with a scalar primary metric.
    """
    if plan.strategy is Strategy.PASS and contract.primary.kind is MetricKind.SCALAR:
        raise UsageError(
            "execution.attempts.strategy",
            f"pass needs a binary primary metric, and {contract.primary.id!r} is a scalar",
            "give avg",
        )


def _checked(spec: MetricSpec, value: Any) -> bool | int | float:
    if spec.kind is MetricKind.BINARY_SUCCESS:
        if not isinstance(value, bool):
            raise MetricInvalidError(repr(spec.id), value, "is not a boolean", "give true or false")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MetricInvalidError(repr(spec.id), value, "is not a number", "give a finite real number")
    if not finite(value):
        raise MetricInvalidError(repr(spec.id), value, "is not finite", "give a finite real number")
    _check_within(spec, value)
    # Subclasses (an IntEnum, a NumPy float) would not survive a round trip through JSON.
    return int(value) if isinstance(value, int) else float(value)


def _check_within(spec: MetricSpec, value: float) -> None:
    if spec.minimum is not None and value < spec.minimum:
        raise MetricInvalidError(repr(spec.id), value, "is out of range", f"give {spec.minimum:g} or more")
    if spec.maximum is not None and value > spec.maximum:
        raise MetricInvalidError(repr(spec.id), value, "is out of range", f"give {spec.maximum:g} or less")


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # a value that cannot be shown must not hide what is wrong with it
        return f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
