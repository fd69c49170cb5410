"""What the attempts consumed: tokens, money and time, per task and in all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .contract import MetricKind, MetricSpec
from .estimate import Sample, Scale, alone, estimate
from .intervals import LEVEL, bootstrap_interval
from .observation import Observation
from .records import TaskRecord
from .report import Interval, Quantity, Resources

RESAMPLES = 1000
BOOTSTRAP_LIMIT = 200  #: tasks; a mean of more is near enough to normal, and resampling them costs seconds
_MOST = 1e18  #: no attempt consumes as much

Reader = Callable[[Observation], float | None]
_QUANTITIES: tuple[tuple[str, str, Reader], ...] = (
    ("seconds", "s", lambda seen: seen.seconds),
    ("model_seconds", "s", lambda seen: seen.usage.model_seconds),
    ("tool_seconds", "s", lambda seen: seen.usage.tool_seconds),
    ("prompt_tokens", "tokens", lambda seen: seen.usage.prompt_tokens),
    ("cached_tokens", "tokens", lambda seen: seen.usage.cached_tokens),
    ("completion_tokens", "tokens", lambda seen: seen.usage.completion_tokens),
    ("model_calls", "calls", lambda seen: seen.usage.model_calls),
    ("cost_usd", "USD", lambda seen: seen.usage.cost_usd),
    ("discarded_prompt_tokens", "tokens", lambda seen: seen.discarded.prompt_tokens),
    ("discarded_completion_tokens", "tokens", lambda seen: seen.discarded.completion_tokens),
    ("discarded_cost_usd", "USD", lambda seen: seen.discarded.cost_usd),
)


def resources(records: Sequence[TaskRecord], primary: MetricSpec, seed: int) -> Resources:
    """Return the consumption of all attempts in *records*; *primary* says which of them succeeded.

    What is unknown stays unknown: a task enters a mean only with all its attempts and the quantity known for each, and
    a total says over how many attempts it is.
    """
    observed = [seen for record in records for seen in record.observed]
    priced = [(cost, seen) for seen in observed if (cost := _known(seen.usage.cost_usd)) is not None]
    won = _won(primary, [seen for _, seen in priced])
    spans = _spans(records)
    return Resources(
        tasks=len(spans),
        attempts=len(observed),
        quantities=tuple(
            _quantity(name, unit, [_known(read(seen)) for seen in observed], spans, seed)
            for name, unit, read in _QUANTITIES
        ),
        cost_per_success=math.fsum(cost for cost, _ in priced) / won if won else None,
        priced_successes=won,
        retries=sum(seen.retries for seen in observed),
        retried_attempts=sum(seen.retries > 0 for seen in observed),
        retried_tasks=sum(any(seen.retries > 0 for seen in record.observed) for record in records),
        seed=seed,
        resamples=RESAMPLES,
    )


def _spans(records: Sequence[TaskRecord]) -> list[slice]:
    """Return where the attempts of each complete task are among all observed ones."""
    spans, start = [], 0
    for record in records:
        stop = start + len(record.attempts) - record.attempts.count(None)
        if record.complete:
            spans.append(slice(start, stop))
        start = stop
    return spans


def _won(primary: MetricSpec, observed: Sequence[Observation]) -> int:
    if primary.kind is not MetricKind.BINARY_SUCCESS:
        return 0
    return sum(bool(seen.metrics.get(primary.id)) for seen in observed)


def _quantity(name: str, unit: str, amounts: Sequence[float | None], spans: Sequence[slice], seed: int) -> Quantity:
    """Return a quantity from its *amounts*, one for each observed attempt."""
    known = [amount for amount in amounts if amount is not None]
    per_task = _per_task(amounts, spans) if known else []
    found = estimate({"": Sample(per_task, range(len(per_task)), 0)}, alone, Scale(low=0.0))
    return Quantity(
        id=name,
        unit=unit,
        tasks=len(per_task),
        mean=found.value,
        standard_error=found.standard_error,
        interval=_bootstrapped(per_task, seed) or found.interval,
        attempts=len(known),
        total=_total(known) if known else None,
    )


def _per_task(amounts: Sequence[float | None], spans: Sequence[slice]) -> list[float]:
    if len(spans) == len(amounts):  # a single attempt each, by far the most common plan
        return [amount for amount in amounts if amount is not None]
    return [total for span in spans if (total := _total(amounts[span])) is not None]


def _total(amounts: Sequence[float | None]) -> float | None:
    """Return the sum, of whole numbers as a whole number, or None when any amount is unknown."""
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(amounts):
        return None
    total = sum(known)
    return total if isinstance(total, int) else math.fsum(known)


def _known(value: float | None) -> float | None:
    """Take a possible amount as known; anything else that a harness reports is not (a NaN is no amount)."""
    return value if value is not None and 0 <= value < _MOST else None


def _bootstrapped(values: Sequence[float], seed: int) -> Interval | None:
    """Return the bootstrap interval of the mean of a few values that differ: consumption is skewed."""
    if len(values) > BOOTSTRAP_LIMIT or len(set(values)) < 2:
        return None
    ends = bootstrap_interval(values, _mean, seed, RESAMPLES)
    return ends and Interval(*ends, LEVEL, "bootstrap", f"percentile, {RESAMPLES} resamples, seed {seed}")


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
