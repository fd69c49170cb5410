"""The user's tree of categories: what is refused, and with which weights leaves enter."""

from __future__ import annotations

import pytest

from agentcompass.core.errors import UsageError
from agentcompass.core.metrics.hierarchy import check_hierarchy, leaf_weights

TREE = {
    "overall": {
        "aggregation": "weighted",
        "children": {
            "code": {"weight": 3, "aggregation": "unweighted", "children": {"python": {}, "rust/c": None}},
            "math": {"weight": 1, "aggregation": "weighted_by_count", "children": {"algebra": {}, "sets": {}}},
        },
    }
}


def tree(**children):
    return {"overall": {"aggregation": "unweighted", "children": children}}


def test_paths_are_json_pointers():
    """Every node has its place, with the escapes of RFC 6901."""
    nodes = list(check_hierarchy(TREE).walk())

    assert [
        ("/overall", "weighted"),
        ("/overall/code", "unweighted"),
        ("/overall/code/python", "leaf"),
        ("/overall/code/rust~1c", "leaf"),
        ("/overall/math", "weighted_by_count"),
        ("/overall/math/algebra", "leaf"),
        ("/overall/math/sets", "leaf"),
    ] == [(node.path, node.aggregation) for node in nodes]


def test_each_aggregation_weighs_its_own_way():
    """weighted 3 : 1, unweighted halves, by count 1 : 3."""
    weights = leaf_weights(check_hierarchy(TREE), {"python": 5, "rust/c": 1, "algebra": 1, "sets": 3})

    assert pytest.approx({"python": 3 / 8, "rust/c": 3 / 8, "algebra": 1 / 16, "sets": 3 / 16}) == weights


def test_empty_categories_leave_their_weight_to_others():
    """A category without tasks, or a node of such ones, takes no part; the rest adds up to 1."""
    root = check_hierarchy(TREE)

    assert {"python": 1.0} == leaf_weights(root, {"python": 5, "sets": 0})
    assert pytest.approx({"rust/c": 0.75, "sets": 0.25}) == leaf_weights(root, {"rust/c": 1, "sets": 9})
    assert {} == leaf_weights(root, {"elsewhere": 4})


def test_a_leaf_may_be_the_root():
    """The smallest tree is one category."""
    assert {"overall": 1.0} == leaf_weights(check_hierarchy({"overall": {}}), {"overall": 2})


@pytest.mark.parametrize(
    ("wrong", "field", "problem"),
    [
        (None, "", "one root"),
        ({}, "", "one root"),
        ({"all": {}}, "", "one root"),
        ({"overall": {}, "more": {}}, "", "one root"),
        ({"overall": 3}, "/overall", "3 is not a node"),
        ({"overall": {"aggregation": "mean"}}, "/overall/aggregation", "'mean' is no choice"),
        ({"overall": {"aggregation": ["leaf"]}}, "/overall/aggregation", "is no choice"),
        ({"overall": {"aggregation": "weighted"}}, "/overall/aggregation", "needs children"),
        ({"overall": {"weight": 1}}, "/overall/weight", "has no effect"),
        ({"overall": {"children": {"a": {}}}}, "/overall/aggregation", "is missing"),
        ({"overall": {"aggregation": "leaf", "children": {"a": {}}}}, "/overall/aggregation", "has children"),
        ({"overall": {"aggregation": "unweighted", "children": ["a"]}}, "/overall/children", "not a mapping"),
        (tree(**{"": {}}), "/overall/children", "not a name"),
        ({"overall": {"aggregation": "unweighted", "children": {1: {}}}}, "/overall/children", "not a name"),
        (tree(a={"weight": 2}), "/overall/children/a/weight", "has no effect"),
        (tree(a={"childs": {}}), "/overall/children/a.childs", "did you mean 'children'"),
        (tree(overall={}), "/overall/children/overall", "occurs twice"),
        (
            tree(a={"aggregation": "unweighted", "children": {"b": {}}}, b={}),
            "/overall/children/b",
            "'b' occurs twice",
        ),
        (
            tree(**{"x/y": {"aggregation": "weighted", "children": {"~": {}}}}),
            "/overall/children/x~1y/children/~0/weight",
            "is missing",
        ),
    ],
)
def test_a_wrong_tree_is_refused_at_its_place(wrong, field, problem):
    """The error names the node by its JSON pointer within the setting."""
    with pytest.raises(UsageError, match=problem) as caught:
        check_hierarchy(wrong, "benchmark.params.category_hierarchy")

    assert f"benchmark.params.category_hierarchy{field}" == caught.value.field


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), True, "2", 10**400])
def test_weights_are_positive_numbers(weight):
    """A weight of 0, or no number, would drop a category unseen."""
    with pytest.raises(UsageError, match="not a weight"):
        check_hierarchy({"overall": {"aggregation": "weighted", "children": {"a": {"weight": weight}}}})


def test_a_tree_that_contains_itself_is_refused():
    """A YAML alias can close a circle; it ends at the name that comes again."""
    node: dict[str, object] = {"aggregation": "unweighted"}
    node["children"] = {"a": node}

    with pytest.raises(UsageError, match="'a' occurs twice"):
        check_hierarchy({"overall": node})


def test_a_bottomless_tree_is_refused():
    """Too deep is an error of its own, not an exhausted stack."""
    node: dict[str, object] = {}
    for level in range(2000):
        node = {"aggregation": "unweighted", "children": {f"n{level}": node}}

    with pytest.raises(UsageError, match="more than 32 levels"):
        check_hierarchy({"overall": node})


def test_categories_without_a_leaf_are_refused_beforehand():
    """A task whose category the tree forgets would not count; its absence is said before the run."""
    check_hierarchy(TREE, categories=["python", "sets"])
    with pytest.raises(UsageError, match="'pyton'; did you mean 'python'"):
        check_hierarchy(TREE, categories=["pyton"])
    with pytest.raises(UsageError, match="'code'"):
        check_hierarchy(TREE, categories=["code"])
    with pytest.raises(UsageError, match="'__uncategorized__'"):
        check_hierarchy(TREE, categories=[None])
    check_hierarchy(tree(__uncategorized__={}), categories=[None])
