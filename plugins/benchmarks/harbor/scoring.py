"""Which number of a verifier is the score, and what it may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentcompass.core.errors import UsageError
from agentcompass.core.metrics.contract import MetricContract, binary_contract, scalar_contract
from agentcompass.core.model.issue import Severity
from agentcompass.core.model.result import Verdict

from .reward import USUAL
from .values import HarborTask, Step


@dataclass(frozen=True, slots=True)
class Scoring:
    """The reward of *key* (None: ``reward``, or the only one) from *minimum* to *maximum*.

    With *binary*, only the maximum is a success, and nothing else counts.
    """

    key: str | None = None
    minimum: float = 0.0
    maximum: float = 1.0
    binary: bool = False

    def __post_init__(self) -> None:
        """Refuse a range that holds nothing."""
        if not self.minimum < self.maximum:
            problem = f"[{self.minimum:g}, {self.maximum:g}] is empty"
            raise UsageError("benchmarks.harbor.reward_range", problem, "put the least reward first")

    @property
    def contract(self) -> MetricContract:
        """The metric that this is."""
        return binary_contract() if self.binary else scalar_contract(minimum=self.minimum, maximum=self.maximum)

    def metrics(self, reward: float) -> Mapping[str, Any]:
        """Return *reward* as the metric; one out of range stays, so that it is refused where all values are checked."""
        inside = self.minimum <= reward <= self.maximum
        value = reward >= self.maximum if self.binary and inside else reward
        return {self.contract.primary.id: value}

    @property
    def nothing(self) -> Mapping[str, Any]:
        """The metric of an attempt that the verifier gave nothing."""
        return self.metrics(self.minimum)


def misses(step: Step, verdict: Verdict, key: str | None) -> str | None:
    """Return which reward of *verdict* is below what the next step asks for, None if none is."""
    wanted = step.min_reward
    if wanted is None:
        return None
    rewards: Mapping[str, float] = verdict.evidence.get("rewards", {})
    least = wanted if isinstance(wanted, Mapping) else {key or USUAL: wanted}
    for name, value in least.items():
        reward = verdict.evidence.get("reward") if not isinstance(wanted, Mapping) else rewards.get(name)
        if reward is None or reward < value:
            return f"{name} is {reward}, and the step {step.name} asks for {value:g}"
    return None


def combined(task: HarborTask, verdicts: Sequence[Verdict], scoring: Scoring) -> Verdict:
    """Return the verdict of an attempt whose steps got *verdicts*.

    The mean is over the steps that were graded, as the format says. The last step counts only if it was reached.
    """
    steps = task.config.steps
    rewards = [_reward(verdict, scoring) for verdict in verdicts]
    if task.config.final_step_counts:
        value = rewards[-1] if len(verdicts) == len(steps) else scoring.minimum
    else:
        value = sum(rewards) / len(rewards)
    outside = [reward for reward in rewards if not scoring.minimum <= reward <= scoring.maximum]
    evidence: dict[str, Any] = {
        "steps": {step.name: dict(verdict.evidence) for step, verdict in zip(steps, verdicts, strict=False)},
        "steps_planned": len(steps),
        "steps_graded": len(verdicts),
        "strategy": "final" if task.config.final_step_counts else "mean",
    }
    if len(verdicts) < len(steps):
        evidence["stopped"] = misses(steps[len(verdicts) - 1], verdicts[-1], scoring.key)
    issues = tuple(issue for verdict in verdicts for issue in verdict.issues)
    if any(issue.severity is Severity.FATAL for issue in issues):
        return Verdict({}, issues, evidence)
    return Verdict(scoring.metrics(outside[0] if outside else value), issues, evidence)


def _reward(verdict: Verdict, scoring: Scoring) -> float:
    reward = verdict.evidence.get("reward")
    return scoring.minimum if reward is None else float(reward)
