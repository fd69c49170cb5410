"""Compares the module with sets of numbers, on random intervals; it runs in a process of its own."""

from __future__ import annotations

import json
import random
import subprocess
import sys

CALLER = """
import json, sys
sys.path.insert(0, "/app")
import intervals
for line in sys.stdin:
    name, arguments = json.loads(line)
    before = json.dumps(arguments)
    answer = getattr(intervals, name)(*arguments)
    print(json.dumps([answer, json.dumps(arguments) == before]))
"""
HUGE = 10**15


def numbers(x):
    return {n for a, b in x for n in range(a, b + 1)}


def normal(found):
    pairs = []
    for n in sorted(found):
        if pairs and pairs[-1][1] == n - 1:
            pairs[-1][1] = n
        else:
            pairs.append([n, n])
    return pairs


RULES = {
    "normal": lambda x: normal(numbers(x)),
    "union": lambda x, y: normal(numbers(x) | numbers(y)),
    "intersection": lambda x, y: normal(numbers(x) & numbers(y)),
    "difference": lambda x, y: normal(numbers(x) - numbers(y)),
    "size": lambda x: len(numbers(x)),
}
LARGE = [
    ("normal", [[[5, HUGE], [-HUGE, 4], [HUGE + 2, HUGE + 2]]], [[-HUGE, HUGE], [HUGE + 2, HUGE + 2]]),
    ("union", [[[0, HUGE]], [[HUGE, 2 * HUGE]]], [[0, 2 * HUGE]]),
    ("intersection", [[[0, HUGE]], [[HUGE, 2 * HUGE]]], [[HUGE, HUGE]]),
    ("difference", [[[-HUGE, HUGE]], [[0, 0]]], [[-HUGE, -1], [1, HUGE]]),
    ("size", [[[1, HUGE], [1, HUGE]]], HUGE),
]


def pairs():
    return [[random.randint(-8, 12), random.randint(-8, 12)] for _ in range(random.randrange(6))]


def cases():
    yield from LARGE
    for name, rule in RULES.items():
        for _ in range(400):
            arguments = [pairs() for _ in range(1 if name in ("normal", "size") else 2)]
            yield name, arguments, rule(*arguments)


def main():
    given = list(cases())
    lines = "".join(json.dumps([name, arguments]) + "\n" for name, arguments, _ in given)
    ran = subprocess.run([sys.executable, "-I", "-c", CALLER], input=lines, capture_output=True, text=True, timeout=60)
    answers = ran.stdout.splitlines()
    assert (ran.returncode, len(answers)) == (0, len(given)), ran.stderr[-1000:]
    for (name, arguments, wanted), line in zip(given, answers, strict=True):
        answer, is_unchanged = json.loads(line)
        assert answer == wanted, f"{name}{tuple(arguments)}: expected {wanted}, found {answer}"
        assert is_unchanged, f"{name} changes its arguments"


main()
