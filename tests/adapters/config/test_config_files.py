"""Configuration files: found, read, or refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcompass.adapters.config.files import config_layers, load, project_file, user_file
from agentcompass.core.errors import UsageError

pytestmark = pytest.mark.seed("CL-06")


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("c.yaml", "a: {b: [1, x]}\nc: null\n", {"a": {"b": [1, "x"]}, "c": None}),
        ("c.yml", "", {}),
        ("c.yaml", "# nothing but a remark\n", {}),
        ("c.json", '{"a": {"b": 1}}', {"a": {"b": 1}}),
        ("c.JSON", '\ufeff{"a": "é"}', {"a": "é"}),
        ("c.yaml", "\ufeffa: é\n", {"a": "é"}),
        ("c", "a: 1\n", {"a": 1}),
        ("c.yaml", "x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\n", {"x": {"a": 1, "b": 2}, "y": {"a": 1, "b": 3}}),
        ("c.yaml", "b: {c: {<<: &m {k: 1}, k: 2}}\na: {<<: *m}\n", {"b": {"c": {"k": 2}}, "a": {"k": 1}}),
    ],
)
def test_files_are_read(tmp_path, name, text, value):
    """YAML and JSON, with or without a byte order mark; merge keys are no duplicates."""
    assert value == load(_write(tmp_path / name, text))


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("c.yaml", "a: [1\n", "is not YAML: while parsing a flow sequence"),
        ("c.yaml", "a: 1\nb: 2\na: 3\n", "the key 'a' is there twice"),
        ("c.yaml", "execution:\n  max_retries: 1\n  max_retries: 2\n", "line 3, column 3"),
        ("c.yaml", "a: {x: 1, 'x': 2}\n", "the key 'x' is there twice"),
        ("c.yaml", "x: &x {a: 1}\ny: {<<: *x, <<: *x}\n", "the key '<<' is there twice"),
        ("c.yaml", "a: 2024-13-45\n", "is not YAML: month must be in 1..12"),
        ("c.yaml", "? [a]\n: 1\n", "is not YAML"),
        ("c.yaml", "a: !!python/object:os.system x\n", "could not determine a constructor"),
        ("c.yaml", "a: 1\n---\nb: 2\n", "expected a single document"),
        ("c.yaml", "a: \x00\n", "is not YAML"),
        ("c.yaml", "[" * 1500, "is not YAML"),
        ("c.yaml", "- a\n", "['a'] is not a mapping"),
        ("c.yaml", "just text\n", "'just text' is not a mapping"),
        ("c.yaml", "1: a\n", "the key 1 is not text"),
        ("c.json", "{", "is not JSON: Expecting property name"),
        ("c.json", "", "is not JSON"),
        ("c.json", '{"a": {"b": 1, "b": 2}}', "has the key 'b' twice"),
        ("c.json", "[1]", "[1] is not a mapping"),
        ("c.json", "[" * 100_000, "is not JSON"),
        ("c.json", b'{"a": "\xe9"}', "is not UTF-8 (byte 7)"),
        ("c.yaml", "a: é\n".encode("utf-16"), "is not UTF-8 (byte 0)"),
    ],
)
def test_a_malformed_file_is_refused_by_name(tmp_path, name, text, problem):
    """The error has one line, and names the file, what is wrong, and where possible the place."""
    path = _write(tmp_path / name, text)
    with pytest.raises(UsageError) as refused:
        load(path)

    assert str(path) == refused.value.field
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path, monkeypatch):
    """A missing file, a folder, and one that may not be read are told apart."""
    denied = _write(tmp_path / "denied.yaml", "a: 1")
    real = Path.read_text

    def read(self, *args, **kwargs):
        if self == denied:
            raise PermissionError(13, "Permission denied")
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", read)
    for path, reason in (
        (tmp_path / "no.yaml", "No such file"),
        (tmp_path, "Is a directory"),
        (denied, "Permission denied"),
    ):
        with pytest.raises(UsageError, match=rf"cannot be read \({reason}"):
            load(path)


def test_the_user_file_is_where_the_system_says():
    """The desktop's folder for configuration goes before the home folder's own."""
    assert Path("/x/agentcompass/config.yaml") == user_file({"XDG_CONFIG_HOME": "/x", "HOME": "/h"})
    assert Path("/h/.config/agentcompass/config.yaml") == user_file({"HOME": "/h"})


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["agentcompass.yaml"], "agentcompass.yaml"),
        (["config.yaml"], None),
        (["config.yaml", "pyproject.toml"], "config.yaml"),
        (["config.yaml", ".git"], "config.yaml"),
        (["config.yaml", "agentcompass.yaml", "setup.cfg"], "agentcompass.yaml"),
        (["pyproject.toml", "../agentcompass.yaml"], None),
        (["../agentcompass.yaml"], "../agentcompass.yaml"),
        (["../config.yaml", "../setup.cfg"], "../config.yaml"),
        (["agentcompass.yaml", "../agentcompass.yaml"], "agentcompass.yaml"),
        ([], None),
    ],
)
def test_the_project_file_is_beside_the_nearest_root(tmp_path, files, found):
    """A file named for us marks a root itself; one with a common name counts only beside another mark."""
    home = tmp_path / "above" / "project"
    inner = home / "src" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / ".git").mkdir()  # so that nothing above the test is found
    for name in files:
        _write(home / name, "{}")
    expected = (home / found).resolve() if found else None

    assert expected == project_file(inner)


def test_layers_are_in_their_order(tmp_path):
    """The user's file is lowest, then the project's, then each that was named."""
    env = {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    user = _write(tmp_path / "xdg" / "agentcompass" / "config.yaml", "n: user")
    project = _write(tmp_path / "p" / "agentcompass.yaml", "n: project")
    one, two = _write(tmp_path / "1.yaml", "n: one"), _write(tmp_path / "2.yaml", "n: two")
    layers, files = config_layers([str(two), str(one)], env, tmp_path / "p")

    assert ["user", "project", "two", "one"] == [layer["n"] for layer in layers]
    assert [str(path) for path in (user, project, two, one)] == files


def test_a_file_that_comes_twice_counts_where_it_comes_last(tmp_path):
    """Naming the project's file explicitly puts it where it was named, and it is listed once."""
    project, other = _write(tmp_path / "agentcompass.yaml", "n: project"), _write(tmp_path / "o.yaml", "n: other")
    layers, files = config_layers([str(other), str(project)], {"HOME": "/none"}, tmp_path)

    assert (["other", "project"], [str(other), str(project)]) == ([layer["n"] for layer in layers], files)


def test_a_named_file_must_exist(tmp_path):
    """The user's and the project's files may be missing, a named one may not."""
    assert ([], []) == config_layers([], {"HOME": str(tmp_path)}, tmp_path)
    with pytest.raises(UsageError, match=r"no\.yaml: cannot be read"):
        config_layers(["no.yaml"], {"HOME": str(tmp_path)}, tmp_path)
