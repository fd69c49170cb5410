"""Runs the script on random trees, and compares with what is in them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

SCRIPT = "/app/duplicates.sh"
NAMES = ["a", "b c", "-n", ".hidden", "it's", 'qu"ote', "*", "$HOME", "back\\slash", "ä", "-rf", "%s", "x.txt", "Z"]
OTHER_LANGUAGES = ("python", "perl", "ruby", "node", "php")
CONTENTS = [b"", b"x", b"y", b"x\n", b"\0\0", b"same size 1", b"same size 2", b"z" * 5000, b"line\nline\n"]


def plant(folder, depth=0):
    for name in random.sample(NAMES, random.randrange(2, 7)):
        path = folder / name
        kind = random.random()
        if kind < 0.25 and depth < 3:
            path.mkdir()
            plant(path, depth + 1)
        elif kind < 0.35:
            path.symlink_to(random.choice(["/etc/passwd", ".", "nowhere", "x.txt"]))
        else:
            path.write_bytes(random.choice(CONTENTS))


def expected(folder):
    groups = defaultdict(list)
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if not path.is_symlink() and path.stat().st_size:
                groups[path.read_bytes()].append(os.fsencode(path.relative_to(folder)))
    found = [(len(content), sorted(paths)) for content, paths in groups.items() if len(paths) > 1]
    found.sort(key=lambda group: (-group[0] * (len(group[1]) - 1), group[1][0]))
    return b"".join(b"\t".join([b"%d" % len(paths), b"%d" % size, *paths]) + b"\n" for size, paths in found)


def run(*words, path=None):
    env = {**os.environ, **({"PATH": path} if path else {})}
    return subprocess.run(["/bin/bash", SCRIPT, *words], capture_output=True, timeout=30, cwd="/", env=env)


def tools(folder):
    """Make a folder of programs without interpreters of other languages."""
    for source in os.environ["PATH"].split(":"):
        for name in os.listdir(source) if os.path.isdir(source) else ():
            if not name.startswith(OTHER_LANGUAGES) and not os.path.lexists(f"{folder}/{name}"):
                os.symlink(f"{source}/{name}", f"{folder}/{name}")


def main():
    with tempfile.TemporaryDirectory() as home:
        os.mkdir(f"{home}/tools")
        tools(f"{home}/tools")
        assert run(f"{home}/no-such-folder").returncode == 2, "a folder that is none"
        for number in range(25):
            tree = Path(home, f"a tree {number}")
            tree.mkdir()
            if number:
                plant(tree)
            wanted = expected(tree)
            ran = run(str(tree), path=f"{home}/tools")
            assert ran.returncode == 0, ran.stderr[-500:]
            assert ran.stdout == wanted, f"expected {wanted!r}, found {ran.stdout!r}"
            assert expected(tree) == wanted, "the tree was changed"
            shutil.rmtree(tree)


main()
