"""Which failures are tried again, how much of the attempt, and what stays of those that were replaced."""

from __future__ import annotations

import pytest

STEPS = ["plan", "open", "prepare", "start", "run", "kill", "collect"]


@pytest.mark.seed("ER-04", "ER-09")
def test_null_on_the_command_line_takes_patterns_away(toys, tmp_path):
    """A file's patterns hold, the plan shows them, and null over them leaves FATAL only."""
    (tmp_path / "c.yaml").write_text("execution: {max_retries: 1, retry_pattern_list: [stuck]}")
    tasks, config = {"a": {"run": ["error:harness_stuck", "ok"]}}, ("--config", str(tmp_path / "c.yaml"))

    with_file, without = toys.run(tasks, *config), toys.run(tasks, *config, "--retry-pattern-list", "null")

    plans = [ran.events()[5]["payload"]["retry_pattern_list"] for ran in (with_file, without)]
    assert ([1, 0], [["stuck"], []]) == ([len(_retries(ran)) for ran in (with_file, without)], plans)


def _attempt(ran, task="a", number="1"):
    return ran.details()[task]["attempts"][number]


def _retries(ran):
    return [event for event in ran.events() if event["event"] == "attempt_retry"]


@pytest.mark.seed("ER-04", "ER-06")
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("patterns", ["null", "[]"])
def test_fatal_is_always_retried(toys, step, patterns):
    """Without any pattern a FATAL of any phase is executed again, and a success leaves no trace in the result."""
    ran = toys.run({"a": {step: ["fatal", "ok"]}}, "--max-retries", "1", "--retry-pattern-list", patterns)

    task = ran.details()["a"]
    assert (0, {"correct": True}, []) == (ran.status, _attempt(ran)["metrics"], _attempt(ran)["issues"])
    assert (1, {"1": 1}, 1) == (task["retry_count"], task["retry_counts"], _attempt(ran)["retry_count"])
    assert ["<fatal>"] == [event["payload"]["matched_pattern"] for event in _retries(ran)]


@pytest.mark.seed("ER-04")
@pytest.mark.parametrize(
    ("word", "patterns", "again"),
    [
        ("error:harness_stuck:it sleeps", "null", None),
        ("error:harness_stuck:it sleeps", "[]", None),
        ("error:harness_stuck:it sleeps", '["harness_failed"]', None),
        ("error:harness_stuck:it sleeps", '["it sleeps"]', "it sleeps"),
        ("error:harness_stuck:it sleeps", '["x", "stuck"]', "stuck"),
        ("error:harness_stuck:it sleeps", '["(?i)IT SLEEPS$"]', "(?i)IT SLEEPS$"),
        ("error:harness_stuck:it sleeps", '["stuck.*sleeps"]', None),
        ("error:harness_stuck:it sleeps", '["error"]', None),
        ("warning:harness_stuck:it sleeps", '["it sleeps", "."]', None),
        ("ok", '["."]', None),
    ],
)
def test_an_error_is_retried_when_a_pattern_matches(toys, word, patterns, again):
    """Message and code are searched separately; WARNING is never retried, success neither."""
    ran = toys.run({"a": {"run": [word, "ok"]}}, "--max-retries", "2", "--retry-pattern-list", patterns)

    assert [again] * bool(again) == [event["payload"]["matched_pattern"] for event in _retries(ran)]
    assert 1 + bool(again) == toys.board.times("run", "a")


@pytest.mark.seed("ER-04")
def test_issues_are_matched_one_by_one(toys):
    """A pattern that would only match two issues joined together matches none."""
    script = {"run": "error:first:alpha", "collect": "returns:error:second:beta"}

    assert [] == _retries(
        toys.run({"a": script}, "--max-retries", "1", "--retry-pattern-list", '["alpha(.|\\n)*beta"]')
    )


@pytest.mark.seed("ER-04", "ER-07")
def test_no_budget_is_no_retry(toys):
    """By default one unresolved FATAL fails the run."""
    ran = toys.run({"a": {"run": ["fatal", "ok"]}})

    assert (1, 1, []) == (ran.status, toys.board.times("run", "a"), _retries(ran))


@pytest.mark.seed("ER-04")
def test_the_budget_is_shared_by_all_reasons(toys):
    """Failures of different phases use up the same budget; the last one stays in the result."""
    script = {"open": ["fatal", "ok"], "run": ["fatal", "error:x:again", "fatal:last:word"]}
    ran = toys.run({"a": script}, "--max-retries", "3", "--retry-pattern-list", '["again"]')

    assert [
        (1, "<fatal>", "open_environment"),
        (2, "<fatal>", "run_harness"),
        (3, "again", "run_harness"),
    ] == [tuple(event["payload"][name] for name in ("retry", "matched_pattern", "stage")) for event in _retries(ran)]
    assert [("fatal", "last", "word")] == [(i["severity"], i["code"], i["message"]) for i in _attempt(ran)["issues"]]
    assert (3, 1) == (_attempt(ran)["retry_count"], ran.status)


@pytest.mark.seed("ER-04", "ER-05")
def test_each_attempt_has_a_budget_of_its_own_and_siblings_are_kept(toys):
    """Attempt 3 is executed three times, attempts 1 and 2 once; their results are not touched."""
    ran = toys.run({"a": {"run": {"3": ["fatal", "fatal", "ok"]}}}, "--k", "3", "--max-retries", "2")

    assert {"3": 2} == ran.details()["a"]["retry_counts"]
    assert [3, 3] == [event["attempt"] for event in _retries(ran)]
    assert 5 == toys.board.times("run", "a")
    assert (3, 3) == tuple(ran.document("progress.json")[n] for n in ("attempts_started", "attempts_finished"))


@pytest.mark.seed("ER-05")
@pytest.mark.parametrize(
    ("mode", "word", "runs", "gradings", "opened", "scope"),
    [
        ("none", "fatal:judge_failed", 1, 2, 1, "evaluate"),
        ("fresh", "fatal:judge_failed", 1, 2, 3, "evaluate"),
        ("reuse", "fatal:judge_failed", 2, 2, 2, "attempt"),
        ("none", "raise:flaky judge", 1, 2, 1, "evaluate"),
        ("fresh", "raise:flaky judge", 1, 2, 3, "evaluate"),
        ("reuse", "raise:flaky judge", 2, 2, 2, "attempt"),
        ("fresh", "returns:fatal:judge_failed", 1, 2, 3, "evaluate"),
    ],
)
def test_a_failed_grading_is_repeated_alone_where_it_can_be(toys, mode, word, runs, gradings, opened, scope):
    """In none and fresh the agent does not run again, in fresh the verifier is a new one; reuse reruns the attempt."""
    ran = toys.run(
        {"a": {"evaluate": [word, "ok"], "answer": "kept"}},
        *("--max-retries", "1", "--retry-pattern-list", '["flaky"]'),
        mode=mode,
    )

    board = toys.board
    assert (runs, gradings, opened) == (board.times("run", "a"), board.times("evaluate", "a"), len(board.opened_at))
    assert [(scope, "evaluate")] == [(e["payload"]["scope"], e["payload"]["stage"]) for e in _retries(ran)]
    assert ({"correct": True}, [], "kept", 1) == tuple(
        _attempt(ran)[name] for name in ("metrics", "issues", "final_answer", "retry_count")
    )
    assert ([], opened) == (board.open, board.times("close", "a"))


@pytest.mark.seed("ER-05")
def test_a_verifier_that_does_not_open_is_tried_again_alone(toys):
    """The agent's work is done and stays; only the sandbox for grading is opened anew."""
    ran = toys.run({"a": {"open": ["ok", "fatal", "ok"]}}, "--max-retries", "1", mode="fresh")

    assert (0, 1, 3) == (ran.status, toys.board.times("run", "a"), toys.board.times("open", "a"))
    assert ["evaluate"] == [event["payload"]["scope"] for event in _retries(ran)]


@pytest.mark.seed("ER-05")
def test_an_error_of_the_run_stays_when_the_grading_is_repeated(toys):
    """What was known before the grading is kept, issues included, once."""
    script = {"run": "error:slow:took long", "evaluate": ["fatal", "ok"]}
    ran = toys.run({"a": script}, "--max-retries", "2", mode="none")

    assert ["slow"] == [issue["code"] for issue in _attempt(ran)["issues"]]
    assert (1, {"correct": True}) == (toys.board.times("run", "a"), _attempt(ran)["metrics"])


@pytest.mark.seed("ER-06")
@pytest.mark.parametrize("mode", ["none", "reuse"])
def test_discarded_executions_stay_with_all_that_was_known(toys, mode):
    """Each is a file under retries/, named by number and stage, with issues, reason and the discarded result."""
    script = {"run": ["fatal:model_failed:HTTP 503", "ok"], "evaluate": ["fatal:judge_failed:odd", "ok"], "answer": "A"}
    ran = toys.run({"a": script}, "--max-retries", "2", mode=mode)

    folder = ran.run_dir / "attempts" / "a" / "1" / "retries"
    assert ["1.run_harness.json", "2.evaluate.json"] == sorted(path.name for path in folder.iterdir())
    first, second = (ran.document(event["payload"]["retry_detail"]) for event in _retries(ran))
    assert ("agentcompass.retry.v1", "a", 1, 1) == tuple(
        first[name] for name in ("schema_version", "task_id", "attempt", "retry")
    )
    assert [("model_failed", "HTTP 503")] == [(issue["code"], issue["message"]) for issue in first["issues"]]
    assert ["judge_failed"] == [issue["code"] for issue in second["issues"]]
    assert ("A", {}) == (second["discarded_result"]["final_answer"], second["discarded_result"]["metrics"])
    assert "execution_diagnostics" in first["discarded_result"]["artifacts"]


@pytest.mark.seed("RR-03", "ER-04")
def test_the_event_of_a_retry_says_all(toys):
    """Number, budget, stage, scope, pattern, path and delay are in the payload, then the wait is a phase."""
    script = {"start": ["error:x:reset by peer", "ok"]}
    ran = toys.run({"a": script}, "--max-retries", "4", "--retry-pattern-list", '["peer"]')

    events = ran.events()
    index = next(number for number, event in enumerate(events) if event["event"] == "attempt_retry")
    delay = events[index]["payload"]["retry_delay_seconds"]
    assert {
        "retry": 1,
        "max_retries": 4,
        "retry_delay_seconds": delay,
        "stage": "start_harness",
        "scope": "attempt",
        "matched_pattern": "peer",
        "retry_detail": "attempts/a/1/retries/1.start_harness.json",
    } == events[index]["payload"]
    assert 0 < delay <= 0.002
    assert ("phase_changed", "retry_wait") == (events[index + 1]["event"], events[index + 1]["phase"])


@pytest.mark.seed("ER-04")
def test_a_wish_to_be_left_alone_is_honoured(toys, monkeypatch):
    """The Retry-After of a failure is a lower bound of the wait."""
    from agentcompass.core.errors import PhaseFailed

    original = PhaseFailed.__init__

    def asking(self, issue, diagnostics="", retry_after=None):
        original(self, issue, diagnostics, 0.05)

    monkeypatch.setattr(PhaseFailed, "__init__", asking)
    ran = toys.run({"a": {"run": ["fatal", "ok"]}}, "--max-retries", "1")

    assert [0.05] == [event["payload"]["retry_delay_seconds"] for event in _retries(ran)]


def test_a_waiting_attempt_holds_no_slot(toys):
    """While one attempt waits for its retry, another has the only slot."""
    ran = toys.run(
        {"a": {"run": ["fatal", "ok"]}, "b": {}, "c": {}},
        *("--max-retries", "1", "--task-concurrency", "1"),
        execution={"retry_min_delay_seconds": 0.2, "retry_max_delay_seconds": 0.2},
    )

    runs = [task for step, task in toys.board.did if step == "run"]
    assert (0, ["a", "b", "c", "a"]) == (ran.status, runs)
