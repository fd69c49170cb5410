"""How success depends on the number of attempts: pass@j and pass^j from the same k attempts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..model.request import AttemptPlan, Strategy
from .contract import MetricContract, MetricKind
from .estimate import Scale
from .estimators import pass_at_k, pass_hat_k
from .records import TaskRecord, counts
from .reducers import successes
from .report import Curve, CurvePoint, Score

Estimator = Callable[[int, int, int], float | None]
Scorer = Callable[[Sequence[float | None], Scale], Score]


def curves(
    contract: MetricContract, plan: AttemptPlan, records: Sequence[TaskRecord], score: Scorer
) -> tuple[Curve, ...]:
    """Return pass@j for j < k and pass^j for j <= k of a binary primary metric; none for one attempt or early stops.

    They cover the tasks that have all k values. (The series pass@k also covers those that succeeded with fewer, so it
    is no point of the curve.) *score* turns a column of task values into a score.
    """
    primary, k = contract.primary, plan.k
    if k == 1 or plan.strategy is Strategy.PASS or primary.kind is not MetricKind.BINARY_SUCCESS:
        return ()
    tallies = [None if record.invalidated else successes(record.values(primary.id)) for record in records]
    covered = counts(records, tallies)

    def points(estimator: Estimator, last: int) -> Iterator[CurvePoint]:
        for j in range(1, last + 1):
            by_tally = [estimator(k, c, j) for c in range(k + 1)]
            column = [None if tally is None else by_tally[tally] for tally in tallies]
            # One attempt of k is a fraction; all k attempts succeed or they do not.
            yield CurvePoint(j, score(column, Scale(0.0, 1.0, unit=True, proportion=j == k)))

    return (
        Curve(f"{primary.id}.pass@j", primary.id, "1 - C(k-c, j) / C(k, j)", covered, tuple(points(pass_at_k, k - 1))),
        Curve(f"{primary.id}.pass^j", primary.id, "C(c, j) / C(k, j)", covered, tuple(points(pass_hat_k, k))),
    )
