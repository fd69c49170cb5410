"""Sets of whole numbers as intervals, both ends included."""

from __future__ import annotations


def normal(x):
    x.sort()
    found = []
    for a, b in x:
        if found and a <= found[-1][1]:
            found[-1][1] = b
        else:
            found.append([a, b])
    return found


def union(x, y):
    return normal(x) + normal(y)


def intersection(x, y):
    found = []
    for a, b in normal(x):
        for c, d in normal(y):
            if a < d and c < b:
                found.append([max(a, c), min(b, d)])
    return found


def difference(x, y):
    found = normal(x)
    for c, d in normal(y):
        found = [[a, c] for a, b in found] + [[d, b] for a, b in found]
    return found


def size(x):
    return sum(b - a for a, b in x)
