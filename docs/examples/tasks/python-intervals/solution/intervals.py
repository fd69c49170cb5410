"""Sets of whole numbers as intervals, both ends included."""

from __future__ import annotations


def normal(x):
    found = []
    for a, b in sorted((a, b) for a, b in x if a <= b):
        if found and a <= found[-1][1] + 1:
            found[-1][1] = max(found[-1][1], b)
        else:
            found.append([a, b])
    return found


def union(x, y):
    return normal([*x, *y])


def intersection(x, y):
    pairs = [[max(a, c), min(b, d)] for a, b in normal(x) for c, d in normal(y)]
    return normal(pairs)


def difference(x, y):
    found = normal(x)
    for c, d in normal(y):
        found = normal([pair for a, b in found for pair in ([a, min(b, c - 1)], [max(a, d + 1), b])])
    return found


def size(x):
    return sum(b - a + 1 for a, b in normal(x))
