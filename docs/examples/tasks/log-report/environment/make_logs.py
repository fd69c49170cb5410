"""Writes access logs into a folder, always the same ones."""

from __future__ import annotations

import gzip
import random
import sys
from pathlib import Path

PATHS = ["/", "/cart", "/cart/checkout", "/login", "/search?q=a b".replace(" ", "+"), "/static/logo.png"]
STATUSES = [200] * 12 + [304, 404, 500, 502, 599, 600]


def line(random, day):
    time = f"2026-03-{day:02}T{random.choice([8, 9, 9, 10, 11, 11, 17]):02}:{random.randrange(60):02}:00Z"
    size = "-" if random.random() < 0.1 else str(random.randrange(20000))
    fields = [time, f"203.0.113.{random.randrange(60)}", random.choice(["GET", "POST"]), random.choice(PATHS)]
    fields += [str(random.choice(STATUSES)), size]
    damage = random.random()
    if damage < 0.02:
        fields.pop(random.randrange(6))
    elif damage < 0.04:
        fields[4] = "2OO"
    elif damage < 0.05:
        fields.append("x")
    return " ".join(fields)


def main(folder):
    source = random.Random(20260302)
    folder.mkdir()
    for day in range(1, 11):
        text = "\n".join(line(source, day) for _ in range(source.randrange(150, 260))) + "\n\n"
        if day % 3 == 0:
            (folder / f"access-{day:02}.log.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        else:
            (folder / f"access-{day:02}.log").write_text(text)


main(Path(sys.argv[1]))
