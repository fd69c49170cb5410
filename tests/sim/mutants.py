"""Planted bugs: each changes a line or two of the core or the engine, and the simulator has to notice.

A bug is planted in a copy: the modules under test and the simulator are imported afresh, one of them from a changed
source, and afterwards everything is as it was.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

RUNTIME, SCHEDULING = "agentcompass.core.runtime", "agentcompass.core.scheduling"
ENGINE = "agentcompass.adapters.engine"
#: What is imported afresh: everything that holds the changed code, or values of its types.
AFRESH = (
    RUNTIME,
    SCHEDULING,
    "agentcompass.core.budgets",
    "agentcompass.core.planning",
    "agentcompass.core.records",
    "agentcompass.core.retry",
    "agentcompass.core.reuse",
    ENGINE,
    *(
        f"sim.{name}"
        for name in (
            "fate",
            "office",
            "rules",
            "gate",
            "watch",
            "world",
            "accounts",
            "play",
            "vloop",
            "agreement",
            "chain",
        )
    ),
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted bug: in *module*, each first text becomes the second; *shown* says by whom it is shown.

    The world alone, the agreement of the engine with it, or a chain of worlds.
    """

    name: str
    module: str
    changes: tuple[tuple[str, str], ...]
    shown: str = "world"

    def changed(self, source: str) -> str:
        """Return *source* with the bug in it."""
        for before, after in self.changes:
            assert source.count(before) == 1, f"{self.name}: {source.count(before)} places: {before}"
            source = source.replace(before, after)
        return source


def _in(module: str, name: str, *changes: tuple[str, str]) -> Mutant:
    return Mutant(name, module, changes, "engine" if module.startswith(ENGINE) else "world")


def _continuing(module: str, name: str, *changes: tuple[str, str]) -> Mutant:
    return Mutant(name, module, changes, "chain")


_ADMISSION, _SCHEDULE = f"{SCHEDULING}.admission", f"{SCHEDULING}.schedule"
_ATTEMPT, _EFFECTS, _LEDGER = f"{RUNTIME}.attempt", f"{RUNTIME}.effects", f"{RUNTIME}.ledger"
_INFERENCE, _GRADING, _SCRIPT = f"{RUNTIME}.inference", f"{RUNTIME}.grading", f"{RUNTIME}.script"
_ARTIFACTS = f"{RUNTIME}.artifacts"
_NOTES, _PHASES, _EVALUATION = f"{RUNTIME}.notes", f"{RUNTIME}.phases", f"{RUNTIME}.evaluation"
_RETRY, _BUDGETS = "agentcompass.core.retry", "agentcompass.core.budgets"
_PLAYER, _POOL = f"{ENGINE}.player", f"{ENGINE}.pool"
_HALL = f"{ENGINE}.hall"
_CONTINUATION, _REUSE = f"{ENGINE}.reuse", "agentcompass.core.reuse"

_WITHDRAWING = """\
        for ledger in self._ledgers.values():  # before a slot is given to what a success has just spared
            for unneeded in ledger.unneeded():
                self._admission.withdraw(unneeded)
"""

MUTANTS: tuple[Mutant, ...] = (
    _in(
        _ADMISSION,
        "one slot too many",
        ("while len(self._running) < self._slots", "while len(self._running) <= self._slots"),
    ),
    _in(
        _ADMISSION, "one execution too many for a provider", ("self.running >= self.limit", "self.running > self.limit")
    ),
    _in(_ADMISSION, "a provider's executions never end", (".running -= 1", ".running -= 0")),
    _in(
        _ADMISSION,
        "openings are not paced",
        ("lane.next_opening = now + lane.spacing", "lane.next_opening += lane.spacing"),
    ),
    _in(_ADMISSION, "nobody asks again after pacing", ("wake = min(wake, lane.blocked_until(now))", "pass")),
    _in(_ADMISSION, "a verifier's place is forgotten", ("lane.next_opening = at + lane.spacing", "pass")),
    _in(
        _ADMISSION,
        "the last comes first",
        ("lane.ready[0][:2] < best.ready[0][:2]", "lane.ready[0][:2] > best.ready[0][:2]"),
    ),
    _in(_ADMISSION, "what is withdrawn starts", ("self._tickets.pop(key, None)", "pass")),
    _in(_ADMISSION, "a retry comes too early", ("self._delayed[0][0] <= now or", "self._delayed[0][0] <= now + 1 or")),
    _in(
        _SCHEDULE,
        "what a success spares is withdrawn too late",
        (_WITHDRAWING, ""),
        (
            "        elif isinstance(step, Kept):\n",
            "        elif isinstance(step, Kept):\n    " + _WITHDRAWING.replace("\n", "\n    ").rstrip(" "),
        ),
    ),
    _in(
        _SCHEDULE,
        "retries are not paced",
        ("opens = step.job.notes is None or step.job.notes.prepared is None", "opens = False"),
    ),
    _in(_SCHEDULE, "a stop does not stop", ("self._given_up = True", "self._given_up = False")),
    _in(
        _SCHEDULE,
        "a retry forgets what it follows",
        ("self._again.pop(key) if key in self._again", "self._again.pop(key) if False"),
    ),
    _in(_RETRY, "one retry too many", ("used >= policy.max_retries", "used > policy.max_retries")),
    _in(_RETRY, "warnings are retried", ("issue.severity is Severity.ERROR", "issue.severity is not Severity.FATAL")),
    _in(_RETRY, "codes are not matched", (" or re.search(pattern, issue.code)", "")),
    _in(_RETRY, "a used sandbox is graded again", ("if inferred and mode is not EvaluationMode.REUSE", "if inferred")),
    _in(_RETRY, "everything is repeated for a failed grading", ("scope = Scope.EVALUATE", "pass")),
    _in(_RETRY, "a retry waits too long", ("drawn = bound / 2 * (1 +", "drawn = bound * (1 +")),
    _in(_RETRY, "nobody is left alone", ("max(drawn, min(retry_after or 0.0, LONGEST_RETRY_AFTER))", "drawn")),
    _in(_NOTES, "resolved issues stay", ('if issue.phase != "evaluate"', "if issue")),
    _in(_NOTES, "a discarded score stays", ("issues=kept, metrics={}, evidence={}", "issues=kept")),
    _in(_NOTES, "what failed fatally is graded", ("return self.inferred and not any(", "return self.inferred or any(")),
    _in(
        _NOTES, "the wish to be left alone is forgotten", ("max(self.retry_after or 0.0, failure.retry_after)", "None")
    ),
    _in(
        _INFERENCE,
        "the agent lives while its result is collected",
        ("\n    notes.count_killed(await KillProcesses(env))\n\n\nasync def _run_task", "\n\n\nasync def _run_task"),
    ),
    _in(
        _INFERENCE,
        "processes live while the answer is graded",
        (
            "\n    notes.count_killed(await KillProcesses(env))\n\n\nasync def _open_network",
            "\n\n\nasync def _open_network",
        ),
    ),
    _in(
        _ATTEMPT,
        "a failing kill hides that the run was stopped",
        ("if notes.cancelled:  # whatever", "if False:  # whatever"),
    ),
    _in(
        _GRADING,
        "a verifier stays open",
        (
            "        await _grade(plan, notes, env)\n    finally:\n        await close(plan, notes, env)",
            "        await _grade(plan, notes, env)\n    finally:\n        pass",
        ),
    ),
    _in(
        _ATTEMPT,
        "a sandbox stays open after a failure",
        (
            "    finally:\n        await close(plan, notes, env)",
            "    except PhaseFailed:\n        raise\n    else:\n        await close(plan, notes, env)",
        ),
    ),
    _in(_INFERENCE, "a session stays open", ("await quietly(notes, CloseHarness(session))", "pass")),
    _in(_SCRIPT, "kept environments are closed", ("if not plan.keep_environment:", "if plan:")),
    _in(_GRADING, "verifiers are not paced", ("    await PaceOpening(plan.provider)\n", "")),
    _in(_ATTEMPT, "retries are not counted", ("retries=again.number", "retries=job.retries")),
    _in(_ATTEMPT, "discarded money is forgotten", ("job.discarded.plus(notes.collected.usage)", "job.discarded")),
    _in(_ATTEMPT, "a finished task is not saved", ("await SaveTask(finished)", "pass")),
    _in(_INFERENCE, "a phase is not told", ("    await enter(Phase.PREPARE_TASK)\n", "")),
    _in(
        _GRADING,
        "wrong values are scored",
        ("except MetricInvalidError as invalid:", "except ZeroDivisionError as invalid:"),
    ),
    _in(
        _INFERENCE,
        "the agent has the network of the preparation",
        ("await SwitchNetwork(env, plan.run_network)", "pass"),
    ),
    _in(
        _GRADING, "the grader has the agent's network", ("if plan.evaluation_network != plan.run_network:", "if False:")
    ),
    _in(_ARTIFACTS, "a verifier gets what an earlier step left", ("notes.artifacts_before :]", "0:]")),
    _in(_ATTEMPT, "a sandbox that went on is graded again", ("if plan and plan.steps > 1:", "if False:")),
    _in(
        _EFFECTS,
        "a stop cuts a closing short",
        ('"""Release a sandbox."""\n\n    shielded = True', '"""Release a sandbox."""\n'),
    ),
    _in(_EFFECTS, "a stop lets the agent live", ('and count it."""\n\n    shielded = True', 'and count it."""\n')),
    _in(
        _LEDGER,
        "any value ends the attempts",
        ("result.metrics.get(self._primary) is True and not fatal", "self._primary in result.metrics"),
    ),
    _in(_LEDGER, "a success is waited out", ("state.started if self._stops_early and state.succeeded else ", "")),
    _in(
        _LEDGER,
        "one attempt too many",
        ("state.offered < self._execution.attempts.k", "state.offered <= self._execution.attempts.k"),
    ),
    _in(_LEDGER, "attempts overlap that must not", ("overlap and execution.speculative", "execution.speculative")),
    _in(
        _LEDGER,
        "each attempt opens its task",
        ("opens = len(self.tasks), state.started == 1", "opens = len(self.tasks), True"),
    ),
    _in(_LEDGER, "an attempt is not observed", ("self.observations.append(", "repr(")),
    _in(
        _PHASES, "grading leads nowhere", ("Phase.EVALUATE: _ANYWHERE", "Phase.EVALUATE: frozenset({Phase.RETRY_WAIT})")
    ),
    _in(
        _EVALUATION,
        "a run with FATAL issues is complete",
        ("and report.headline.score.value is None:", "and not report:"),
    ),
    _in(
        _EVALUATION,
        "a stopped run is complete",
        ("wrong, executed.stop, executed.error)", "wrong, None, None)"),
    ),
    _in(
        _EVALUATION,
        "a defect in loading leaves no record",
        ("except Exception as exc:  # a defect", "except ZeroDivisionError as exc:  # a defect"),
    ),
    _in(
        _EVALUATION,
        "a full disk leaves no summary",
        ("    except OSError as exc:\n        executed", "    except ZeroDivisionError as exc:\n        executed"),
    ),
    _in(
        _EVALUATION,
        "a run that cannot begin has no end",
        (
            "    except OSError as exc:\n        return await _end(move(RunState.CREATED",
            "    except ZeroDivisionError as exc:\n        return await _end(move(RunState.CREATED",
        ),
    ),
    _in(
        _EVALUATION,
        "rejected items are forgotten",
        ("event is RunEvent.SUCCEEDED and rejected", "event is RunEvent.BROKEN and rejected"),
    ),
    _in(
        _BUDGETS,
        "multipliers multiply",
        (
            "common_multiplier if own_multiplier is None else own_multiplier",
            "common_multiplier * (own_multiplier or 1.0)",
        ),
    ),
    _in(
        _PLAYER,
        "a sandbox is lost that opens with the stop",
        ("task.exception() is None and effect.acquires", "task.exception() is None and False"),
    ),
    _in(
        _PLAYER,
        "work that cancels itself takes its attempt along",
        ('return None, classified(effect, RuntimeError("the work cancelled itself"))', "raise"),
    ),
    _in(_PLAYER, "a stop interrupts tidying", ("= False, not effect.shielded", "= False, True")),
    _in(_PLAYER, "limits do not limit", ("timeout=effect.within", "timeout=None")),
    _in(
        _PLAYER,
        "nothing is abandoned",
        (
            "waiting = asyncio.ensure_future(asyncio.wait({task}, timeout=OBEDIENCE_SECONDS))",
            "waiting = asyncio.ensure_future(asyncio.wait({task}, timeout=1e6))",
        ),
    ),
    _in(_POOL, "the grace never ends", ("call_later(self._grace, self._force)", "call_later(1e6, self._force)")),
    _in(
        _POOL,
        "attempts that do not obey hold the run up",
        ("call_later(2 * OBEDIENCE_SECONDS, self._abandon)", "call_later(1e6, self._abandon)"),
    ),
    _in(_POOL, "the pool goes on after a stop", ("        self._schedule.give_up()\n", "")),
    _in(_POOL, "a full disk does not stop the run", ('self._stop.set(Stop.BROKEN, f"results', 'str(f"results')),
    _in(_POOL, "the pool sleeps too long", ("loop.call_at(wake, ", "loop.call_at(wake + 1, ")),
    _in(
        _HALL,
        "a request ends while its last task is being saved",
        (" and not any(key.request == ledger.request for key in schedule.running)", ""),
    ),
    _in(_HALL, "requests wait for each other", ("self._tell(self._entered[key.request][0], schedule)", "pass")),
    _in(
        _HALL,
        "nobody waits for requests that load slowly",
        ("if not self._missing and self._working", "if self._working"),
    ),
    _continuing(
        _CONTINUATION,
        "what a failed attempt has cost is forgotten",
        ("self._resume(key, task, None, 1, record.discarded.plus(record.result.usage))", "pass"),
    ),
    _continuing(
        _CONTINUATION,
        "what a cancelled attempt has cost is forgotten",
        ("None, 0, record.discarded.plus(record.result.usage))", "None, 0, record.discarded)"),
    ),
    _continuing(
        _CONTINUATION,
        "what ungraded work has cost is forgotten",
        ("spent.plus(self._source.worked(task.id, key.attempt))", "spent"),
    ),
    _continuing(
        _CONTINUATION,
        "what was spent is told once only",
        ("self._store.save_spent(task.id, key.attempt, spent_document(discarded))", "pass"),
    ),
    _continuing(
        _CONTINUATION,
        "a task's document tells what does not stand",
        ("self._source.finished(task.id) if whole else None", "self._source.finished(task.id)"),
    ),
    _continuing(_CONTINUATION, "what was cancelled stands", ("if record.result.cancelled:", "if False:")),
    _continuing(_CONTINUATION, "failures stay", ("if not self._policy.max_retries:", "if True:")),
    _continuing(_CONTINUATION, "no failure stays", ("if not self._policy.max_retries:", "if False:")),
    _continuing(
        _CONTINUATION,
        "work that has changed is graded",
        ('require_whole(notes_of(document, f"{folder}/artifacts", where), where)', "pass"),
    ),
    _continuing(
        _CONTINUATION,
        "a failed grading is not repeated alone",
        ("if issue.phase is not IssuePhase.EVALUATE]", "if issue]"),
    ),
    _continuing(
        _REUSE, "what is graded again was in vain", ('if each.get("scope") != retry.Scope.EVALUATE.value:', "if True:")
    ),
    _continuing(_LEDGER, "resumed gradings wait for an opening", ("notes is None or notes.prepared is None", "True")),
    _continuing(_LEDGER, "what stands is executed", ("if state.offered not in state.attempts:", "if True:")),
    _continuing(_LEDGER, "a success of an earlier run is not counted", ("state.reused += 1", "state.reused += 0")),
)


class _Loader(SourceFileLoader):
    def __init__(self, mutant: Mutant, path: str) -> None:
        super().__init__(mutant.module, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._mutant.changed(self.get_source(fullname) or ""), self.path, "exec", dont_inherit=True)


class _Finder:
    def __init__(self, mutant: Mutant, path: str) -> None:
        self._mutant, self._path = mutant, path

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if name != self._mutant.module:
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=_Loader(self._mutant, self._path))


@contextmanager
def afresh(mutant: Mutant | None) -> Iterator[tuple[ModuleType, ModuleType, ModuleType]]:
    """Import anew what is under test, with *mutant*'s bug in it; give `sim.play`, `sim.agreement` and `sim.chain`."""
    parts = ("sim.play", "sim.agreement", "sim.chain")
    for name in parts:
        importlib.import_module(name)
    finders: list[Any] = []
    if mutant is not None:
        origin = importlib.import_module(mutant.module).__file__ or ""
        finders = [_Finder(mutant, origin)]
    old = {name: module for name, module in sys.modules.items() if _is_renewed(name)}
    for name in old:
        _forget(name)
    sys.meta_path[:0] = finders
    try:
        play, agreement, chain = map(importlib.import_module, parts)
        yield play, agreement, chain
    finally:
        for finder in finders:
            sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if _is_renewed(name)]:
            _forget(name)
        for name, module in old.items():
            sys.modules[name] = module
            _bind(name, module)


def _is_renewed(name: str) -> bool:
    return any(name == root or name.startswith(f"{root}.") for root in AFRESH)


def _forget(name: str) -> None:
    del sys.modules[name]
    parent, _, child = name.rpartition(".")
    if child in vars(sys.modules.get(parent, object)):
        delattr(sys.modules[parent], child)


def _bind(name: str, module: ModuleType) -> None:
    parent, _, child = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], child, module)


def caught(mutant: Mutant | None, seeds: int) -> tuple[int, str] | None:
    """Return the first of *seeds* that shows *mutant*, and how; None when none does."""
    from .settings import draw

    with afresh(mutant) as (play, agreement, chain):
        for seed in range(seeds):
            settings = draw(seed)
            try:
                if mutant is not None and mutant.shown == "engine":
                    agreement.agree(replace(settings, crash_at=None))
                elif mutant is not None and mutant.shown == "chain":
                    chain.play_chain(seed)
                else:
                    play.play(settings)
            except Exception as exc:
                return seed, str(exc)
    return None
