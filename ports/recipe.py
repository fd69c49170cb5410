"""Recipes: what makes a benchmark fit a provider or a harness, by changing the plans of its tasks and nothing else."""

from __future__ import annotations

from typing import Protocol

from agentcompass.core.model.plan import TaskPlan
from agentcompass.core.model.request import RunRequest
from agentcompass.core.model.task import Task


class Recipe(Protocol):
    """One adaptation. Subclass it for the defaults.

    Recipes that match are applied in the order of *priority*, then of their ids; each sees what those before it made.
    What the user asked for lies over the result. Those without *enabled_by_default* apply only when they are named.
    """

    priority: int = 0
    enabled_by_default: bool = True

    def matches(self, request: RunRequest, task: Task, plan: TaskPlan) -> bool:
        """Tell whether the recipe is for this task of this request; must not touch the world."""
        ...

    def apply(self, request: RunRequest, task: Task, plan: TaskPlan) -> TaskPlan:
        """Return the changed plan: another image, limit, network, budget, artifact."""
        ...
