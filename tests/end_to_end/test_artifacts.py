"""Which files of a sandbox outlive it: saved, limited, restored; with real processes and real files."""

from __future__ import annotations

import json
import os

import pytest
from support.keeper import ENTRY_POINTS
from support.toys import install

ANSWER = [{"source": "out", "destination": "kept/out"}]
SCRIPT = (
    "mkdir -p out/sub; echo 42 >out/answer; echo x >out/sub/x.tmp; ln -s answer out/link; "
    "chmod 640 out/answer; chmod 777 out/sub"
)


@pytest.fixture
def run(tmp_path, monkeypatch, command):
    """Return a function that runs the benchmark with these parameters of it, of the execution, and options."""
    install(tmp_path / "site", monkeypatch, "keeper", ENTRY_POINTS)

    def run(execution=None, *options, **benchmark):
        params = {"script": SCRIPT, "artifacts": ANSWER, **benchmark}
        words = ["--benchmark-params", json.dumps(params), "--execution-params", json.dumps(execution or {})]
        return command("keeper", "nop", *words, *options)

    return run


def _attempt(ran):
    return ran.details()["one"]["attempts"]["1"]


def _kept(ran):
    return ran.run_dir / "attempts" / "one" / "1" / "artifacts"


@pytest.mark.seed("AR-01", "AR-03")
def test_a_fresh_verifier_grades_what_was_saved(run):
    """Saved under the attempt's artifacts at its destination, restored where it came from, and nothing else."""
    ran = run()
    attempt = _attempt(ran)

    assert (0, True) == (ran.status, attempt["metrics"]["correct"])
    assert "./out/sub/x.tmp" in attempt["meta"]["benchmark"]["files"]
    assert "42\n" == (_kept(ran) / "kept" / "out" / "answer").read_text()
    assert "answer" == os.readlink(_kept(ran) / "kept" / "out" / "link")
    (entry,) = attempt["artifact_manifest"]["entries"]
    assert ("out", "kept/out", "collected", 5) == tuple(entry[n] for n in ("source", "destination", "status", "files"))
    assert 64 == len(entry["fingerprint"])


@pytest.mark.seed("AR-01")
@pytest.mark.parametrize(("mode", "save"), [("reuse", None), ("none", None), ("reuse", True), ("none", True)])
def test_other_modes_save_when_they_are_told_to(run, mode, save):
    """Without a word nothing is saved; the grader uses the sandbox that is there."""
    ran = run({"save_artifacts": save}, mode=mode)

    assert _attempt(ran)["metrics"]["correct"]
    assert bool(save) is (_kept(ran) / "kept" / "out" / "answer").exists()
    assert bool(save) is ("artifact_manifest" in _attempt(ran))


@pytest.mark.seed("AR-01")
def test_fresh_cannot_do_without(run):
    """`save_artifacts: false` contradicts the mode."""
    ran = run({"save_artifacts": False})

    assert 1 == ran.status
    assert "execution.save_artifacts: is false, but fresh verifiers need them" in _attempt(ran)["issues"][0]["message"]


@pytest.mark.seed("AR-02", "AR-03", "AR-04")
def test_a_list_replaces_what_is_declared(run, tmp_path):
    """Absolute sources, relative destinations, globs of what to leave out; what is missing is told and no failure."""
    (tmp_path / "own" / "tmp").mkdir(parents=True)
    for name in ("a.txt", "b.tmp", "tmp/c.txt"):
        (tmp_path / "own" / name).write_text("x")
    artifacts = [
        {"source": f"{tmp_path}/own", "destination": "mine", "exclude": ["*.tmp", "tmp"]},
        {"source": "/no/such/place"},
    ]
    ran = run({"save_artifacts": True, "artifacts": artifacts}, mode="reuse")

    assert ["a.txt"] == [path.name for path in (_kept(ran) / "mine").iterdir()]
    entries = _attempt(ran)["artifact_manifest"]["entries"]
    assert [("mine", "collected"), ("no/such/place", "missing")] == [(e["destination"], e["status"]) for e in entries]
    assert [] == _attempt(ran)["issues"]
    assert not (_kept(ran) / "kept").exists()


@pytest.mark.seed("AR-02")
def test_an_empty_list_clears_and_null_inherits(run):
    """Commands and paths alike."""
    collect = [{"command": "echo 42 >out/made"}]

    inherited = run({"artifacts": None, "artifact_collect": None}, collect=collect)
    cleared = run({"artifact_collect": []}, collect=collect)
    nothing = run({"artifacts": [], "save_artifacts": True}, mode="reuse", collect=collect)

    assert (_kept(inherited) / "kept" / "out" / "made").exists()
    assert not (_kept(cleared) / "kept" / "out" / "made").exists()
    assert [] == _attempt(nothing)["artifact_manifest"]["entries"]


@pytest.mark.seed("AR-06")
@pytest.mark.parametrize("save", [True, False])
def test_commands_run_in_order_also_when_nothing_is_saved(run, save):
    """In the workdir, one after the other."""
    collect = [{"command": "echo one >out/log"}, {"command": "echo two >>out/log; pwd >>out/log"}]
    ran = run({"save_artifacts": save}, mode="reuse", collect=collect, grader="cat out/log")
    one, two, where = _attempt(ran)["meta"]["benchmark"]["output"].split()

    assert ("one", "two") == (one, two)
    assert where.endswith("/work")


@pytest.mark.seed("AR-06", "TO-07")
@pytest.mark.parametrize(
    ("execution", "limit"),
    [
        (
            {"artifact_collect": [{"command": "sleep 60", "timeout_seconds": 0.2}]},
            "artifact_collect[0].timeout_seconds",
        ),
        (
            {"artifact_collect": ["true", "sleep 60"], "artifact_collect_timeout_seconds": 0.3},
            "artifact_collect_timeout_seconds",
        ),
    ],
)
def test_commands_are_under_two_limits(run, execution, limit):
    """Each has its own and all together have one: the first that is reached ends the preparation."""
    ran = run(execution)
    (issue,) = _attempt(ran)["issues"]

    assert ("error", "collect", "artifact_prepare_failed") == (issue["severity"], issue["phase"], issue["code"])
    assert limit in issue["message"] or "was stopped after" in issue["message"]
    assert {} == _attempt(ran)["metrics"]


@pytest.mark.seed("AR-07")
def test_a_failed_command_skips_the_grading(run):
    """With its exit code in the issue, and its output in the diagnostics only."""
    ran = run({"artifact_collect": ["true", "echo gone wrong; exit 3"]})
    attempt = _attempt(ran)

    assert {} == attempt["metrics"]
    (issue,) = attempt["issues"]
    assert ("error", "artifact_prepare_failed") == (issue["severity"], issue["code"])
    assert "command 2 of artifact_collect ended with exit code 3" == issue["message"]
    assert "gone wrong" in attempt["artifacts"]["execution_diagnostics"]


@pytest.mark.seed("AR-05", "AR-07")
@pytest.mark.parametrize(
    ("limits", "part"), [({"max_files": 3}, "more than 3 files"), ({"max_mb": 1}, "more than 1 MiB")]
)
def test_limits_end_the_transfer_and_keep_what_was_whole(run, limits, part):
    """What came before stays; what is too much leaves nothing behind, and nothing is graded."""
    script = f"{SCRIPT}; mkdir big; for n in 1 2 3 4; do head -c 400000 /dev/zero >big/$n; done; echo 1 >small"
    artifacts = [{"source": "small", "destination": "small"}, {"source": "big", "destination": "big"}]
    ran = run({"artifact_limits": limits}, script=script, artifacts=artifacts)
    attempt = _attempt(ran)

    assert {} == attempt["metrics"]
    (issue,) = attempt["issues"]
    assert ("error", "collect", "artifact_transfer_failed") == (issue["severity"], issue["phase"], issue["code"])
    assert part in issue["message"]
    assert ["small"] == os.listdir(_kept(ran))
    assert ["small"] == [entry["source"] for entry in attempt["artifact_manifest"]["entries"]]


def test_what_is_not_safe_to_have_is_left_out_and_told(run):
    """Links out of the tree and what is no file; the rest is saved."""
    script = f"{SCRIPT}; ln -s /etc/passwd out/secret; ln -s ../../.. out/up; mkfifo out/pipe"
    ran = run({}, script=script)
    messages = [issue["message"] for issue in _attempt(ran)["issues"]]

    assert _attempt(ran)["metrics"]["correct"]
    assert ["answer", "link", "sub"] == sorted(os.listdir(_kept(ran) / "kept" / "out"))
    assert {"secret", "up", "pipe"} == {message.split()[3].rstrip(":") for message in messages}
    assert {"warning"} == {issue["severity"] for issue in _attempt(ran)["issues"]}


@pytest.mark.seed("RE-06")
@pytest.mark.parametrize("changed", [False, True])
def test_saved_files_are_graded_by_the_next_run_unless_they_changed(run, changed):
    """A byte makes the difference: then the attempt runs again, and the record says why."""
    first = run()
    (first.run_dir / "attempts" / "one" / "1" / "result.json").unlink()
    (first.run_dir / "details" / "one.json").unlink()
    if changed:
        (_kept(first) / "kept" / "out" / "answer").write_text("43\n")
    second = run({}, "--reuse", script="echo no >out; exit 1") if not changed else run({}, "--reuse")
    reused = second.document("run_info.json")["reused_from"]

    assert _attempt(second)["metrics"]["correct"]
    assert changed == bool(reused["refused"])
    if changed:
        assert "the artifact kept/out has changed since it was saved" in reused["refused"][0]["reason"]


@pytest.mark.seed("AR-08")
def test_progress_tells_the_operation_its_bytes_and_what_is_left(run):
    """Each preparation, download and restore is an event."""
    events = [
        e["payload"] for e in run({}, collect=[{"command": "true"}]).events() if e["event"] == "artifact_progress"
    ]

    assert ["prepare", "download", "restore"] == [payload["operation"] for payload in events]
    assert [0, 0, 0] == [payload["completed_bytes"] for payload in events]
    assert 60 >= events[0]["remaining_seconds"]
    assert 590 < events[1]["remaining_seconds"] <= 600


@pytest.mark.seed("AR-09")
def test_the_former_key_is_refused(run):
    """Naming the present one."""
    ran = run({"download_artifacts": True})

    assert (2, None) == (ran.status, ran.run_dir)
    assert "execution.download_artifacts: is not a key any more; use save_artifacts" in ran.err


@pytest.mark.seed("AR-03")
@pytest.mark.parametrize(
    ("entry", "part"),
    [
        ({"source": "relative"}, "artifacts[0].source: 'relative' is not an absolute path"),
        ({"source": "/"}, "artifacts[0].source: '/' is not"),
        ({"source": "/a/../b"}, "artifacts[0].source"),
        ({"source": "/a", "destination": "/b"}, "artifacts[0].destination: '/b' is not a relative path"),
        ({"source": "/a", "destination": "../b"}, "artifacts[0].destination"),
        ({"destination": "b"}, "artifacts[0].source: is missing"),
        ({"source": "/a", "exclude": "*.tmp"}, "artifacts[0].exclude: '*.tmp' is not a list of globs"),
        ({"source": "/a", "sorce": "/b"}, "artifacts[0].sorce: unknown key; did you mean 'source'?"),
    ],
)
def test_wrong_artifacts_are_refused_in_one_line(run, entry, part):
    """With the place of the mistake, before anything is made."""
    ran = run({"artifacts": [entry]})

    assert (2, None) == (ran.status, ran.run_dir)
    assert f"execution.{part}" in ran.err


def test_artifacts_may_not_lie_in_one_another(run):
    """Neither in the same place nor below another."""
    ran = run({"artifacts": [{"source": "/a", "destination": "x"}, {"source": "/b", "destination": "x/y"}]})

    assert (2, None) == (ran.status, ran.run_dir)
    assert "execution.artifacts[1].destination: 'x/y' lies with that of /a" in ran.err
