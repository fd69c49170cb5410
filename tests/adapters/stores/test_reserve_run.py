"""The folder of a run is its own, whoever else looks for one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agentcompass.adapters.stores.json_files import reserve
from agentcompass.core.errors import UsageError


def test_the_folder_is_made_below_its_levels(tmp_path):
    """A run's folder is below the results folder, its namespace, and is named by its id."""
    folder = reserve(str(tmp_path / "results"), ("group", "m_b_h"), "r1", exact=True)

    assert tmp_path / "results" / "group" / "m_b_h" / "r1" == folder
    assert folder.is_dir()


def test_an_explicit_id_must_be_free(tmp_path):
    """An id that the user gave is never taken twice, nor changed."""
    reserve(str(tmp_path), ("n",), "r1", exact=True)

    with pytest.raises(UsageError, match=r"output\.run_id: 'r1' exists"):
        reserve(str(tmp_path), ("n",), "r1", exact=True)


def test_an_automatic_id_gets_a_number(tmp_path):
    """Two runs in one second get different folders."""
    names = [reserve(str(tmp_path), (), "20260102_030405", exact=False).name for _ in range(3)]

    assert ["20260102_030405", "20260102_030405_2", "20260102_030405_3"] == names


def test_a_file_of_that_name_is_taken_too(tmp_path):
    """A file where the folder would be is left alone."""
    (tmp_path / "r1").write_text("mine")

    assert "r1_2" == reserve(str(tmp_path), (), "r1", exact=False).name
    with pytest.raises(UsageError, match="exists"):
        reserve(str(tmp_path), (), "r1", exact=True)
    assert "mine" == (tmp_path / "r1").read_text()


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("levels", [(), ("n",), ("n", "m")])
def test_results_below_a_file_are_refused(tmp_path, levels, exact):
    """A results folder, or a level below it, that is a file is named as what is wrong."""
    (tmp_path / "file").write_text("")
    for results in (tmp_path / "file", tmp_path):
        with pytest.raises(UsageError, match=r"runtime\.results_dir: .* cannot be written"):
            reserve(str(results), ("file", *levels) if results == tmp_path else levels, "r1", exact)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800"])
def test_a_path_that_no_system_takes_is_refused(tmp_path, name):
    """A results folder that cannot be a path is a mistake of the request, not a crash."""
    with pytest.raises(UsageError, match=r"runtime\.results_dir"):
        reserve(str(tmp_path / name), (), "r1", exact=False)


def test_a_folder_that_may_not_be_written_is_refused(tmp_path, monkeypatch):
    """The reason that the system gives is told."""

    def refused(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.mkdir", refused)
    with pytest.raises(UsageError, match=r"cannot be written \(Permission denied\)"):
        reserve(str(tmp_path), (), "r1", exact=False)


RACE = """
import sys
from agentcompass.adapters.stores.json_files import reserve
sys.stdin.readline()
for _ in range(40):
    print(reserve(sys.argv[1], ("n",), "r", exact=False).name)
"""


def test_processes_never_get_the_same_folder(tmp_path):
    """Of two processes that reserve at the same time, each gets folders of its own."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    names = [name for racer in racers for name in racer.communicate(timeout=60)[0].split()]

    assert 80 == len(names) == len(set(names))
