"""Killed at any instant, a run can be continued, and comes to what an undisturbed one comes to."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import Counter

import pytest
from support.crashing import ENTRY_POINTS, Zygote
from support.toys import install

KILLS = int(os.environ.get("AGENTCOMPASS_CRASH_KILLS", "120"))  #: of each kind; a long run takes more
MODES = ["fresh", "none", "reuse"]


@pytest.fixture(scope="module")
def zygote(tmp_path_factory):
    """The process that forks evaluations."""
    site = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        install(site, patch, "crashing", ENTRY_POINTS)
        process = Zygote(site)
        yield process
        process.close()


class Case:
    """One evaluation in a folder of its own, run until it is complete."""

    def __init__(self, zygote, folder, mode, pause=0.0):
        self._zygote, self.folder = zygote, folder
        folder.mkdir()
        params = {"count": 3, "mode": mode}
        self._words = ["run", "crashing", "crashing", "--k", "2", "--benchmark-params", json.dumps(params)]
        self._words += ["--harness-params", json.dumps({"log": str(folder / "log"), "pause": pause})]
        self._words += ["--progress", "none", "--log-level", "ERROR", "--task-concurrency", "2"]

    def run(self, *options, **kill):
        """Run, or continue; return the exit status and the number of calls."""
        return self._zygote.run(self.folder, *self._words, *options, **kill)

    @property
    def runs(self):
        """The folders of all runs, in the order of their making."""
        return sorted(self.folder.glob("results/*/*/run_info.json"), key=os.path.getmtime)

    def executions(self):
        """How often each attempt has been executed."""
        log = self.folder / "log"
        return Counter(log.read_text().splitlines()) if log.exists() else Counter()

    def finished(self):
        """The attempts that are final on disk."""
        found = self.folder.glob("results/*/*/attempts/*/*/result.json")
        return {f"{path.parents[1].name} {path.parent.name}" for path in found}

    def outcome(self):
        """What the last run came to: tasks, attempts, values, counts."""
        folder = self.runs[-1].parent
        details = [json.loads(path.read_text()) for path in folder.glob("details/*.json")]
        values = {
            (task["task_id"], number): (attempt["metrics"], attempt["status"])
            for task in details
            for number, attempt in task["attempts"].items()
        }
        metrics = json.loads((folder / "metrics.json").read_text())
        return values, metrics["series"], metrics["attempts"]

    def require_readable(self, folder=None):
        """Every document of every run, or of that in *folder*, is whole."""
        for path in (folder or self.folder / "results").rglob("*.json"):
            json.loads(path.read_text())


@pytest.fixture(scope="module", params=MODES)
def undisturbed(request, zygote, tmp_path_factory):
    """The mode, what a run in it comes to, and how many calls it makes."""
    case = Case(zygote, tmp_path_factory.mktemp("whole") / "case", request.param)
    status, calls = case.run()
    assert 0 == status
    return request.param, case.outcome(), calls


def _continued(case, outcome, torn=False):
    """Continue what was killed, and compare it with an undisturbed run; what is *torn* cannot be read."""
    if not torn:
        case.require_readable()
    finished, executed = case.finished(), case.executions()
    status, _ = case.run("--reuse")

    assert 0 == status
    assert outcome == case.outcome()
    case.require_readable(case.runs[-1].parent if torn else None)
    again = {attempt for attempt in finished if case.executions()[attempt] > executed[attempt]}
    assert set() == again, "what had finished was executed again"
    assert [] == list(case.folder.glob("agentcompass-*")), "a sandbox was left"
    assert [] == list(case.runs[-1].parent.glob("resources/*"))


def test_killed_before_any_call_that_changes_the_disk(zygote, undisturbed, tmp_path):
    """At every one of them, or as many as are wanted, spread evenly."""
    mode, outcome, calls = undisturbed
    assert 40 < calls
    step = max(1, calls * len(MODES) // KILLS)
    for number in range(0, calls, step):
        case = Case(zygote, tmp_path / str(number), mode)
        status, _ = case.run(kill_at=number)
        assert status in (-9, 0), number
        _continued(case, outcome)


@pytest.mark.seed("RE-05")
def test_torn_at_any_byte(zygote, undisturbed, tmp_path):
    """A file whose last line ends anywhere, as after a loss of power, costs at most the attempt that it is of."""
    mode, outcome, calls = undisturbed
    for name in ("progress.jsonl", "plans.jsonl", *(["checkpoint.json"] if mode == "fresh" else ())):
        killed, path = _killed_with(zygote, tmp_path / name, mode, calls, name)
        whole = path.read_bytes()
        last = whole.rstrip(b"\n").rfind(b"\n") + 1 if name.endswith("l") else 0
        for size in range(last, len(whole), max(1, (len(whole) - last) * 9 // KILLS)):
            case = Case(zygote, tmp_path / f"{name} {size}", mode)
            shutil.copytree(killed.folder, case.folder, symlinks=True, dirs_exist_ok=True)
            (case.folder / path.relative_to(killed.folder)).write_bytes(whole[:size])
            _continued(case, outcome, torn=name == "checkpoint.json")


def _killed_with(zygote, place, mode, calls, name):
    """Return a run that was killed when a file *name* of unfinished work was there, and the file."""
    place.mkdir()
    for number in range(calls // 2, calls):
        killed = Case(zygote, place / str(number), mode)
        killed.run(kill_at=number)
        for path in killed.folder.rglob(name):
            if path.read_bytes().strip() and not (path.parent / "result.json").exists():
                return killed, path
    raise AssertionError(f"no run has left a {name}")


def test_killed_at_random_moments(zygote, undisturbed, tmp_path):
    """Wherever the work is, in the agent, the grader or between; and killed again while it is continued."""
    mode, outcome, _ = undisturbed
    rng = random.Random(mode)
    for number in range(max(5, KILLS // 6)):
        case = Case(zygote, tmp_path / str(number), mode, pause=0.02)
        case.run(kill_after=rng.uniform(0.02, 0.4))
        if case.runs:
            case.run("--reuse", kill_after=rng.uniform(0.02, 0.3))
        _continued(case, outcome)
