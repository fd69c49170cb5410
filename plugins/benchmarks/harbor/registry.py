"""Reads ``registry.json``: which tasks a data set has, and where their folders are; clones what is elsewhere."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentcompass.core.errors import UsageError, nearest

_CLONE_SECONDS = 1800
_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")


@dataclass(frozen=True, slots=True)
class Row:
    """One task of a data set: its folder, or the folder in a repository."""

    name: str
    path: str
    git_url: str | None = None
    commit: str | None = None


def folders(file: str, dataset: str | None, data_dir: str) -> Sequence[str]:
    """Return the folders of the data set *dataset* (``name[@version]``) in *file*, cloned below *data_dir* if need be.

    Raises:
        UsageError: the file, or what it names, is not as it should be.
    """
    rows = _rows(file, _chosen(file, _read(file), dataset))
    homes = {key: _checkout(key, paths, data_dir) for key, paths in _by_repository(rows).items()}
    base = os.path.dirname(file)
    return [
        os.path.normpath(os.path.join(homes[row.git_url, row.commit] if row.git_url else base, row.path))
        for row in rows
    ]


def _bad(file: str, problem: str, mend: str = "") -> UsageError:
    return UsageError(f"benchmarks.harbor.tasks_dir: {file}", problem, mend)


def _read(file: str) -> Sequence[Mapping[str, Any]]:
    try:
        with open(file, "rb") as stream:
            document = json.loads(stream.read().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as exc:
        raise _bad(file, f"cannot be read: {exc}") from None
    rows = document if isinstance(document, list) else [document]
    for index, row in enumerate(rows):
        if not isinstance(row, dict) or not isinstance(row.get("name"), str) or not isinstance(row.get("tasks"), list):
            raise _bad(file, f"[{index}] is no data set with a name and tasks")
    return rows


def _chosen(file: str, rows: Sequence[Mapping[str, Any]], dataset: str | None) -> Mapping[str, Any]:
    """Return the data set that is meant."""
    name, _, version = (dataset or "").partition("@")
    names = sorted({row["name"] for row in rows})
    if not name:
        if len(names) != 1:
            raise UsageError("benchmarks.harbor.dataset", f"{file} has several", f"name one of: {', '.join(names)}")
        name = names[0]
    found = {str(row.get("version", "head")): row for row in rows if row["name"] == name}
    if not found:
        raise UsageError("benchmarks.harbor.dataset", f"{name!r} is not in {file}", nearest(name, names))
    if version and version not in found:
        problem = f"{name!r} has no version {version!r} in {file}"
        raise UsageError("benchmarks.harbor.dataset", problem, nearest(version, found))
    return found[version or latest(found)]


def latest(versions: Sequence[str] | Mapping[str, Any]) -> str:
    """Return the version to use where none is named: ``head``, else the highest number, else the last word."""
    if "head" in versions:
        return "head"
    numbered = [version for version in versions if _release(version)[0]]
    return max(numbered, key=_release) if numbered else max(versions)


def _release(version: str) -> tuple[tuple[int, ...], tuple[int, str, int]]:
    """Return a key by which versions sort: numbers first, and a pre-release before its release; () for none."""
    found = re.fullmatch(r"v?(\d+(?:\.\d+)*)(?:[.-]?(a|b|rc|dev|post)\.?(\d*))?", version.strip(), re.IGNORECASE)
    if not found:
        return (), (0, "", 0)
    numbers = [int(part) for part in found[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    suffix = (found[2] or "").lower()
    rank = {"dev": 0, "a": 1, "b": 2, "rc": 3, "": 4, "post": 5}[suffix]
    return (1, *numbers), (rank, suffix, int(found[3] or 0))


def _rows(file: str, dataset: Mapping[str, Any]) -> Sequence[Row]:
    return [_row(f"{file}: {dataset['name']}.tasks[{index}]", row) for index, row in enumerate(dataset["tasks"])]


def _row(where: str, row: Any) -> Row:
    if not isinstance(row, dict):
        raise _bad(where, "is no object")
    texts = [row.get(key) for key in ("name", "path", "git_url", "git_commit_id")]
    if not all(text is None or isinstance(text, str) for text in texts) or not texts[1]:
        raise _bad(where, "is no task: name, path, git_url and git_commit_id are texts, and the path is needed")
    name, path, url, commit = texts
    assert path is not None
    if url and (os.path.isabs(path) or ".." in path.split("/")):
        raise _bad(where, f"the path {path!r} leaves the repository")
    if url and url.startswith("-"):
        raise _bad(where, f"{url!r} is no address")
    if commit and (not _REF.fullmatch(commit) or ".." in commit):
        raise _bad(where, f"{commit!r} is no commit")
    return Row(
        name or os.path.basename(path), path, url or None, None if commit in (None, "", "HEAD", "head") else commit
    )


def _by_repository(rows: Sequence[Row]) -> Mapping[tuple[str | None, str | None], Sequence[str]]:
    found: dict[tuple[str | None, str | None], list[str]] = {}
    for row in rows:
        if row.git_url:
            found.setdefault((row.git_url, row.commit), []).append(row.path)
    return found


def _checkout(key: tuple[str | None, str | None], paths: Sequence[str], data_dir: str) -> str:
    """Return a folder with *paths* of one commit of a repository; it is there as a whole or not at all."""
    url, commit = key[0] or "", key[1]
    commit = commit or _head(url)
    about = json.dumps([url, commit, sorted(paths)])
    home = os.path.join(os.path.abspath(data_dir), "harbor", hashlib.sha256(about.encode()).hexdigest()[:24])
    if os.path.isdir(home):
        return home
    os.makedirs(os.path.dirname(home), exist_ok=True)
    staging = tempfile.mkdtemp(prefix=".clone-", dir=os.path.dirname(home))
    try:
        _clone(url, commit, paths, staging)
        try:
            os.rename(staging, home)
        except OSError:
            if not os.path.isdir(home):  # else another process was faster
                raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return home


def _head(url: str) -> str:
    """Return the commit that the repository stands at, so that what is kept is not taken for what is new."""
    first = _git(url, "ls-remote", "--", url, "HEAD").split()
    if not first:
        raise _bad(url, "the repository is empty")
    return first[0]


def _clone(url: str, commit: str, paths: Sequence[str], target: str) -> None:
    _git(url, "clone", "--quiet", "--filter=blob:none", "--no-checkout", "--depth=1", "--", url, target)
    inside = ("-C", target)
    try:
        _git(url, *inside, "fetch", "--quiet", "--filter=blob:none", "--depth=1", "origin", commit)
        found = "FETCH_HEAD"
    except UsageError:  # a server that gives no single commits, or an abbreviated one
        _git(url, *inside, "fetch", "--quiet", "--tags", "--unshallow", "origin")
        found = commit
    _git(url, *inside, "checkout", "--quiet", found, "--", *(f":(top,literal){path}" for path in paths))


def _git(url: str, *words: str) -> str:
    env = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "0"}
    command = ["git", *words]
    try:
        ran = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=_CLONE_SECONDS, check=False
        )
    except FileNotFoundError:
        raise _bad(url, "git is not installed", "install git") from None
    except subprocess.TimeoutExpired:
        raise _bad(url, f"git {words[0]} took more than {_CLONE_SECONDS} s") from None
    if ran.returncode:
        last = ran.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise _bad(url, f"git cannot get it: {' '.join(last) or f'exit code {ran.returncode}'}", "check the address")
    return ran.stdout.decode("utf-8", "replace")
