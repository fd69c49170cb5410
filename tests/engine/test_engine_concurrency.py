"""How much runs at the same time, and how fast sandboxes are opened."""

from __future__ import annotations

import pytest

LATE = 0.1  #: seconds that a loaded machine may lose before it notes the first opening


@pytest.mark.seed("CO-01")
@pytest.mark.parametrize("limit", [1, 3])
def test_task_concurrency_bounds_attempts(toys, limit):
    """So many executions run at once, and never one more, whatever tasks and attempts they belong to."""
    ran = toys.run({name: {"run": f"crowd:{limit}"} for name in "abc"}, "--k", "2", "--task-concurrency", str(limit))

    assert (0, limit) == (ran.status, toys.board.peak["run"])


@pytest.mark.seed("CO-01")
def test_retries_run_within_the_same_bound(toys):
    """A retry takes a slot like everything else."""
    tasks = {name: {"run": ["fatal", "crowd:2"]} for name in "abcd"}
    toys.run(tasks, "--max-retries", "1", "--task-concurrency", "2")

    assert (2, 8) == (toys.board.peak["run"], sum(toys.board.times("run", name) for name in tasks))


@pytest.mark.seed("CO-02")
@pytest.mark.parametrize(("concurrency", "limit", "bound"), [(4, 2, 2), (2, 4, 2), (3, 0, 3)])
def test_the_lower_of_both_limits_holds(toys, concurrency, limit, bound):
    """The provider's limit and the slots bound together; a limit of 0 is none."""
    tasks = {name: {"run": f"crowd:{bound}"} for name in "abcdef"}
    ran = toys.run(tasks, "--task-concurrency", str(concurrency), "--provider-limit", f"toy={limit}")

    assert (0, bound) == (ran.status, toys.board.peak["run"])


@pytest.mark.seed("CO-02")
def test_another_providers_limit_does_not_matter(toys):
    """A limit is of the provider that it names."""
    toys.run({name: {"run": "crowd:3"} for name in "abc"}, "--provider-limit", "host_process=1")

    assert 3 == toys.board.peak["run"]


@pytest.mark.seed("CO-04")
@pytest.mark.parametrize(
    ("benchmark", "harness", "peak"), [(True, True, 3), (True, False, 1), (False, True, 1), (False, False, 1)]
)
def test_attempts_of_one_task_overlap_only_when_both_sides_are_isolated(toys, benchmark, harness, peak):
    """Otherwise they run one after the other, each from opening to closing."""
    ran = toys.run({"a": {"run": "crowd:3"}}, "--k", "3", isolated=benchmark, harness_params={"isolated": harness})

    assert (0, peak) == (ran.status, toys.board.peak["run"])
    assert {"1", "2", "3"} == set(ran.details()["a"]["attempts"])


@pytest.mark.seed("CO-04")
def test_tasks_overlap_whether_isolated_or_not(toys):
    """Only attempts of one task wait for each other."""
    toys.run({name: {"run": "crowd:3"} for name in "abc"}, "--k", "2", isolated=False)

    assert 3 == toys.board.peak["run"]


@pytest.mark.seed("CO-04")
def test_a_benchmark_that_runs_itself_decides_alone(toys):
    """Without a harness only the benchmark's promise counts."""
    toys.run({"a": {"run": "crowd:2"}}, "--k", "2", harness="none", runs_itself=True)

    assert 2 == toys.board.peak["run"]


def _spread(toys):
    return toys.board.opened_at[-1] - toys.board.opened_at[0]


@pytest.mark.seed("CO-03")
def test_openings_are_spaced(toys):
    """So many sandboxes a second are opened, verifiers and retries included."""
    tasks = {"a": {"open": ["fatal", "ok"]}, "b": {}}
    ran = toys.run(tasks, "--env-open-qps", "toy=10", "--max-retries", "1", mode="fresh")

    assert (0, 5) == (ran.status, len(toys.board.opened_at))
    assert 4 * 0.1 - LATE <= _spread(toys)


@pytest.mark.seed("CO-03")
def test_only_openings_are_spaced(toys):
    """What is open goes on meanwhile: all of it runs together although each opening waited."""
    toys.run({name: {"run": "crowd:3"} for name in "abc"}, "--env-open-qps", "toy=100")

    assert 3 == toys.board.peak["run"]


@pytest.mark.seed("CO-03")
@pytest.mark.parametrize(
    ("remote", "options", "tasks", "least", "most"),
    [
        (False, (), 30, 0.0, 2.0),
        (True, (), 4, 0.3 - LATE, 60.0),
        (True, ("--env-open-qps", "toy=0"), 30, 0.0, 2.0),
        (False, ("--env-open-qps", "host_process=1"), 30, 0.0, 2.0),
    ],
)
def test_only_remote_providers_are_paced_unless_asked(toys, remote, options, tasks, least, most):
    """Ten a second is the default of remote ones; 0 switches it off."""
    toys.run({f"t{number}": {} for number in range(tasks)}, *options, env_params={"remote": remote})

    assert least <= _spread(toys) <= most


def test_everything_is_executed_once(toys):
    """Two hundred attempts on few slots: none is lost, none is done twice."""
    tasks = {f"t{number}": {} for number in range(50)}
    ran = toys.run(tasks, "--k", "2", "--task-concurrency", "7", "--provider-limit", "toy=5")

    assert {2} == {toys.board.times("run", name) for name in tasks}
    assert (0, 100, 100, 50) == (
        ran.status,
        *(ran.document("progress.json")[name] for name in ("attempts_started", "attempts_finished", "finished_tasks")),
    )
