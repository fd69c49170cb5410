"""The user's tree of categories: its form, its check before the run, and the weights that it gives to leaves."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..errors import UsageError, nearest, unknown_key
from .estimators import finite
from .observation import UNCATEGORIZED

ROOT = "overall"
_KEYS = ("aggregation", "weight", "children")
_DEEPEST = 32  #: levels; a deeper tree is a mistake, or one that contains itself


class NodeAggregation(StrEnum):
    """How a node combines its children: alike, by their weights, by their evaluated tasks; a leaf is a category."""

    LEAF = "leaf"
    UNWEIGHTED = "unweighted"
    WEIGHTED = "weighted"
    WEIGHTED_BY_COUNT = "weighted_by_count"


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the tree; *path* is its JSON pointer (RFC 6901) of names, *weight* matters below a weighted node."""

    name: str
    path: str
    aggregation: NodeAggregation
    weight: float
    children: tuple[Node, ...]

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> tuple[str, ...]:
        """Return the categories at or below this node."""
        return tuple(node.name for node in self.walk() if node.aggregation is NodeAggregation.LEAF)


def check_hierarchy(
    tree: Any, path: str = "category_hierarchy", categories: Collection[str | None] | None = None
) -> Node:
    """Return the root of *tree*, known to be right.

    The form is ``{overall: {aggregation, children: {name: {weight, aggregation, children}}}}``. A node without children
    is a leaf, the category of its name; other nodes name their aggregation. Below a weighted node every child has a
    weight above 0, elsewhere none has. All names differ.

    Raises:
        UsageError: the tree is wrong, at the JSON pointer that follows *path*; or one of *categories*, if given, has no
            leaf (tasks without one have the category ``__uncategorized__``).
    """
    if not isinstance(tree, Mapping) or list(tree) != [ROOT]:
        raise UsageError(path, "does not have one root", f"give a mapping whose only key is {ROOT}")
    seen: set[str] = set()
    root = _node(ROOT, tree[ROOT], _Place(path, ROOT), None, seen)
    leaves = set(root.leaves())
    for category in categories or ():
        name = category or UNCATEGORIZED
        if name not in leaves:
            raise UsageError(path, f"has no leaf for the category {name!r}", nearest(name, leaves))
    return root


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node is: *field* for error messages, which follows the file, *names* for people."""

    field: str
    name: str
    names: str = ""
    depth: int = 1

    @property
    def here(self) -> str:
        return f"{self.field}/{_escaped(self.name)}"

    @property
    def pointer(self) -> str:
        return f"{self.names}/{_escaped(self.name)}"

    def child(self, name: str) -> _Place:
        return _Place(f"{self.here}/children", name, self.pointer, self.depth + 1)


def _node(name: str, given: Any, place: _Place, parent: NodeAggregation | None, seen: set[str]) -> Node:
    body = {} if given is None else given
    if not isinstance(body, Mapping):
        raise UsageError(place.here, f"{given!r} is not a node", f"give a mapping of {', '.join(_KEYS)}")
    for key in body:
        if key not in _KEYS:
            raise unknown_key(place.here, str(key), _KEYS)
    if name in seen:
        raise UsageError(place.here, f"the name {name!r} occurs twice", "names differ across the whole tree")
    if place.depth > _DEEPEST:
        raise UsageError(place.here, f"is more than {_DEEPEST} levels deep", "flatten the tree")
    seen.add(name)
    children = _children(body.get("children"), place)
    aggregation = _aggregation(body.get("aggregation"), place, leaf=not children)
    nodes = tuple(_node(key, child, place.child(key), aggregation, seen) for key, child in children.items())
    return Node(name, place.pointer, aggregation, _weight(body.get("weight"), place, parent), nodes)


def _children(given: Any, place: _Place) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise UsageError(f"{place.here}/children", f"{given!r} is not a mapping", "give nodes by name")
    for key in given:
        if not isinstance(key, str) or not key:
            raise UsageError(f"{place.here}/children", f"{key!r} is not a name", "quote it")
    return given


def _aggregation(given: Any, place: _Place, *, leaf: bool) -> NodeAggregation:
    field = f"{place.here}/aggregation"
    inner = [each.value for each in NodeAggregation if each is not NodeAggregation.LEAF]
    if given is None and leaf:
        return NodeAggregation.LEAF
    if given not in list(NodeAggregation):
        raise UsageError(field, "is missing" if given is None else f"{given!r} is no choice", f"one of {inner}")
    aggregation = NodeAggregation(given)
    if leaf is not (aggregation is NodeAggregation.LEAF):
        problem = "needs children" if leaf else "has children, which a leaf has not"
        raise UsageError(field, f"{given!r} {problem}", "leaf" if leaf else f"one of {inner}")
    return aggregation


def _weight(given: Any, place: _Place, parent: NodeAggregation | None) -> float:
    field = f"{place.here}/weight"
    if parent is not NodeAggregation.WEIGHTED:
        if given is not None:
            raise UsageError(field, "has no effect", "only children of a weighted node have weights")
        return 1.0
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if not number or not finite(given) or given <= 0:
        problem = "is missing" if given is None else f"{given!r} is not a weight"
        raise UsageError(field, problem, "give a finite number above 0")
    return float(given)


def leaf_weights(node: Node, counts: Mapping[str, int]) -> dict[str, float]:
    """Return the weight of each category in the value of *node*; those without tasks in *counts* are left out.

    The weights add up to 1. A node none of whose categories has tasks takes no part in its parent's value.
    """
    if node.aggregation is NodeAggregation.LEAF:
        return {node.name: 1.0} if counts.get(node.name) else {}
    shares = [(_share(node, child, counts), leaf_weights(child, counts)) for child in node.children]
    total = math.fsum(share for share, weights in shares if weights)
    return {name: share / total * weight for share, weights in shares for name, weight in weights.items()}


def _share(parent: Node, child: Node, counts: Mapping[str, int]) -> float:
    if parent.aggregation is NodeAggregation.WEIGHTED_BY_COUNT:
        return float(sum(counts.get(name, 0) for name in child.leaves()))
    return child.weight


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
