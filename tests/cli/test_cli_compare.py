"""``agentcompass compare`` and ``power``: stored runs, task by task."""

from __future__ import annotations

import json

import pytest

from agentcompass.adapters.cli.main import main


@pytest.fixture
def shown(capsys):
    """Return a function that runs a command; gives status, stdout and stderr."""

    def run(*words):
        status = main(list(words))
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def runs(toys):
    """Two runs of ten tasks with the worked outcomes."""

    def make(outcomes, run_id, **more):
        tasks = {f"t{n}": {"verdict": digit == "1"} for n, digit in enumerate(outcomes)}
        return str(toys.run(tasks, "--run-id", run_id, **more).run_dir)

    return make("1011001001", "before"), make("1111101101", "after"), make


def test_two_stored_runs_give_the_worked_values(runs, shown):
    """Difference, paired error, flips by id, the exact test."""
    first, second, _ = runs
    status, out, _ = shown("compare", first, second)

    assert 0 == status
    assert "after against before, on the 10 tasks that both have" in out
    assert "0.500 -> 0.800, difference +0.300 ± 0.153 (95% CI -0.05 to +0.65, paired)" in out
    assert "p = 0.25" in out
    assert "only after: 3: t1, t4, t7" in out
    assert "both right   5, neither 2" in out


def test_the_document_has_all_numbers(runs, shown):
    """As JSON, with the seed of the bootstrap."""
    first, second, _ = runs
    (found,) = json.loads(shown("compare", first, second, "--output", "json")[1])["comparisons"]

    assert pytest.approx(0.152753, abs=1e-6) == found["standard_error"]
    assert pytest.approx(0.213437, abs=1e-6) == found["unpaired"]
    assert ["t1", "t4", "t7"] == found["flips"]["second"]
    assert 10 == found["costs"]["wall time"]["tasks"]


def test_several_runs_pay_for_being_several(runs, shown):
    """Each against the first, adjusted by Holm; as a page of Markdown."""
    first, second, make = runs
    third = make("0000000000", "worst")
    found = json.loads(shown("compare", first, second, third, "--output", "json")[1])["comparisons"]
    page = shown("compare", first, second, third, "--output", "markdown")[1]

    assert [(0.25, 0.25), (0.0625, 0.125)] == [(entry["exact"], entry["adjusted"]) for entry in found]
    assert page.startswith("# Against before")
    assert "| worst | 10 |" in page


def test_what_only_one_side_has_is_named(runs, shown):
    """Tasks without a partner, and tasks without a value."""
    first, _, make = runs
    smaller = make("101", "smaller")
    out = shown("compare", first, smaller)[1]

    assert "on the 3 tasks that both have" in out
    assert "only before has 7 tasks: t3, t4, t5, t6, t7, t8, t9" in out


def test_runs_of_different_benchmarks_are_refused(runs, shown, command):
    """In one line."""
    other = command("humaneval", "nop", "--limit", "1").run_dir
    status, _, err = shown("compare", runs[0], str(other))

    assert 2 == status
    assert "is a run of 'humaneval', the baseline one of 'toy'" in err


def test_different_measures_are_told(runs, shown):
    """The mean of several attempts beside a single one is compared with a warning."""
    first, _, make = runs
    several = make("1111101101", "several", execution={"attempts": {"k": 2}})
    status, _, err = shown("compare", first, several)

    assert 0 == status
    assert "several is measured by correct.avg@2, the baseline by correct.native@1" in err


def test_tasks_of_another_content_are_told(runs, shown, toys):
    """Two tasks of one id need not be the same task."""
    first, _, _ = runs
    tasks = {f"t{n}": {"ground_truth": "another"} if n < 7 else {} for n in range(10)}
    changed = str(toys.run(tasks, "--run-id", "changed").run_dir)
    status, _, err = shown("compare", first, changed)

    assert 0 == status
    assert "in changed, 7 tasks ask or expect something else: t0, t1, t2, t3, t4, ..." in err
    assert "ask or expect" not in shown("compare", first, runs[1])[2]


def test_no_run_is_refused(shown, tmp_path):
    """Naming the folder."""
    assert "has no run_info.json" in shown("compare", str(tmp_path), str(tmp_path))[2]


def test_power_from_assumed_numbers(shown):
    """The worked values."""
    found = json.loads(
        shown("power", "--difference", "0.05", "--spread", "0.5", "--tasks", "164", "--output", "json")[1]
    )

    assert 785 == found["tasks_needed"]
    assert pytest.approx(0.109, abs=1e-3) == found["detectable"]


def test_power_from_two_runs(runs, shown):
    """Their paired spread is assumed."""
    status, out, _ = shown("power", runs[0], runs[1], "--difference", "0.3")

    assert 0 == status
    assert "21 tasks show a difference of 0.3, with chance 80% at 5%" in out
    assert "10 tasks show a difference of 0.428" in out


def test_power_from_one_run(runs, shown):
    """Against one that scatters alike and goes its own way: with half of ten tasks solved, sd = sqrt(2 * 10/36)."""
    make = runs[2]
    status, out, _ = shown("power", make("1111100000", "half"), "--difference", "0.3")

    assert 0 == status
    assert "the standard deviation 0.745" in out
    assert "49 tasks show a difference of 0.3" in out
    assert "the run shows no spread between tasks" in shown("power", make("1111111111", "same"))[2]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--difference", "0"], "--difference: 0.0 is not a finite positive number"),
        (["--spread", "nan"], "--spread: nan is not a finite positive number"),
        (["--tasks", "1"], "--tasks: 1 tasks show nothing"),
        (["a", "b", "c"], "power: takes one run, or two, or --spread"),
        (["a", "--spread", "0.5"], "power: takes one run, or two, or --spread"),
        (["somewhere"], "has no run_info.json"),
    ],
)
def test_power_refuses_nonsense(shown, words, part):
    """In one line."""
    status, _, err = shown("power", *words)

    assert 2 == status
    assert part in err
