"""Runs the build script in projects that it has not seen."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

SCRIPT = Path("/app/project/build.sh")
VERSIONS = ["1.0", "2/3", "a&b", "back\\slash", "$HOME", "it's", '"x" y', "|#,"]


def needs(graph, name, seen):
    for other in graph.get(name, ()):
        if other not in seen:
            seen.add(other)
            needs(graph, other, seen)
    return seen


def order(graph):
    left, done = needs(graph, "main", {"main"}), []
    while left:
        ready = sorted(name for name in left if set(graph[name]) <= set(done))
        done.append(ready[0])
        left.remove(ready[0])
    return done


def body(name, number):
    return f"# of {name}\n  f{number}() {{ printf '%s\\n' '@VERSION@ @VERSION@ \\t & {name}'; }} # needs nothing\n"


def make(folder, graph):
    (folder / "src").mkdir(parents=True)
    shutil.copy(SCRIPT, folder / "build.sh")
    for number, (name, others) in enumerate(graph.items()):
        lines = "".join(f"# needs: {' '.join(part)}\n" for part in (others[:2], others[2:]) if part)
        (folder / "src" / f"{name}.sh").write_text(lines + body(name, number))


def expected(graph, version):
    numbers = {name: number for number, name in enumerate(graph)}
    return "#!/bin/bash\n" + "".join(body(name, numbers[name]).replace("@VERSION@", version) for name in order(graph))


def build(folder, version="1.0"):
    env = {"PATH": os.environ["PATH"], "BUILD_VERSION": version, "LANG": "C.UTF-8"}
    command = ["bash", str(folder / "build.sh")]
    return subprocess.run(command, cwd="/", env=env, capture_output=True, text=True, timeout=30)


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def random_graph():
    names = random.sample(["a", "B", "c-1", "d_2", "e", "Zeta", "k9", "m", "n", "o"], 8)
    graph = {name: random.sample(names[:index], min(index, random.randrange(4))) for index, name in enumerate(names)}
    graph["main"] = random.sample(names, random.randrange(1, 4))
    return graph


def check_good(folder, graph, version):
    make(folder, graph)
    before = tree(folder)
    ran = build(folder, version)
    assert ran.returncode == 0, f"{graph}: {ran.stderr[-500:]}"
    app = folder / "dist" / "app"
    wanted = expected(graph, version)
    assert app.read_text() == wanted, f"{graph}: expected\n{wanted}\nfound\n{app.read_text()}"
    assert os.access(app, os.X_OK), "dist/app is not executable"
    assert tree(folder) == {**before, "dist/app": wanted.encode()}, "other files were written"
    os.utime(app, (1_000_000_000, 1_000_000_000))
    build(folder, version)
    assert app.stat().st_mtime == 1_000_000_000, "an unchanged dist/app was written again"
    build(folder, version + "x")
    assert app.read_text() == expected(graph, version + "x"), "a changed version was not built"


def check_bad(folder, graph, names):
    make(folder, graph)
    (folder / "dist").mkdir()
    (folder / "dist" / "app").write_text("old")
    before = tree(folder)
    ran = build(folder)
    assert ran.returncode == 1, f"{graph}: exit code {ran.returncode}"
    assert all(name in ran.stderr for name in names), f"{graph}: {names} are not all in {ran.stderr!r}"
    assert tree(folder) == before, f"{graph}: something was written"


def main():
    with tempfile.TemporaryDirectory() as home:
        for number in range(12):
            check_good(Path(home, f"a project {number}"), random_graph(), VERSIONS[number % len(VERSIONS)])
        check_good(Path(home, "one"), {"main": []}, "1")
        check_bad(Path(home, "missing"), {"main": ["alpha"], "alpha": ["nowhere"]}, ["nowhere"])
        check_bad(Path(home, "circle"), {"main": ["alpha"], "alpha": ["beta"], "beta": ["alpha"]}, ["alpha", "beta"])
        check_bad(Path(home, "itself"), {"main": ["alpha"], "alpha": ["alpha"]}, ["alpha"])
        check_good(Path(home, "unused circle"), {"main": [], "x": ["y"], "y": ["x"]}, "1")


main()
