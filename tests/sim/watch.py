"""The watch: looks at every step of a run from outside, keeps its own books, and objects to what must not be.

Nothing here asks the core what it thinks: who may start, what is to be retried and which sandbox is open follow from
the settings and from what was seen.
"""

from __future__ import annotations

from math import inf
from typing import Any

from agentcompass.core.errors import PhaseFailed
from agentcompass.core.model.event import Event
from agentcompass.core.model.issue import IssuePhase, Severity
from agentcompass.core.model.result import RunResult
from agentcompass.core.runtime import effects as fx
from agentcompass.core.runtime.attempt import Again, GivenUp, Job, Kept, Step
from agentcompass.core.runtime.ledger import Key
from agentcompass.core.runtime.phases import Phase, may_follow

from .gate import EPSILON, Account, Gate, Violation
from .office import KINDS
from .rules import bad, calls, has, has_code, sandbox_of, wins
from .settings import Order

__all__ = ["Violation", "Watch"]

#: The phases in which each kind of work may begin.
PLACES = {
    "open": {Phase.OPEN_ENVIRONMENT, Phase.EVALUATE_ENVIRONMENT},
    "prepare": {Phase.PREPARE_TASK},
    "next": {Phase.PREPARE_TASK},
    "start": {Phase.START_HARNESS},
    "run": {Phase.RUN_HARNESS},
    "run_task": {Phase.RUN_TASK},
    "kill": {Phase.RUN_HARNESS, Phase.RUN_TASK},
    "collect": {Phase.COLLECT_HARNESS_RESULT},
    "ready": {Phase.COLLECT_ARTIFACTS},
    "reserve": {Phase.DOWNLOAD_ARTIFACTS},
    "download": {Phase.DOWNLOAD_ARTIFACTS},
    "restore": {Phase.EVALUATE_ENVIRONMENT},
    "evaluate": {Phase.EVALUATE},
    "save_task": {Phase.SAVE_PARTIAL},
}
TIDYING = frozenset({"kill", "collect", "close_session", "close", "save_attempt", "save_task", "save_retry"})


class Watch(Gate):
    """The gate, and what executions do behind it."""

    def begins(self, key: Key, job: Job, effect: Any, now: float) -> None:
        """Check that *effect* may begin."""
        kind = KINDS.get(type(effect))
        if kind is None:
            return
        account = self.accounts[key]
        self.require(self.stopped_at is None or kind in TIDYING, "after a stop there is only tidying", (key, kind))
        account.tidied.add(kind)
        place = PLACES.get(kind)
        self.require(place is None or account.phase in place, "work is done in its phase", (key, kind, account.phase))
        sandbox = sandbox_of(effect)
        if sandbox is not None:
            self.require(sandbox.key == key and sandbox.closes == 0, "nothing happens in a closed sandbox", (key, kind))
        check = _CHECKS.get(kind)
        if check is not None:
            check(self, key, account, effect, now)

    def _opens(self, key: Key, account: Account, effect: Any, now: float) -> None:
        order = self.orders[key.request]
        self.require(effect.within == order.build_seconds, "opening has its budget", effect.within)
        if effect.role == "run":
            self.require(not account.graded_only, "a repeated grading never opens a run environment", key)
        else:
            self.require(order.mode == "fresh", "only fresh grading opens a verifier", key)
            self.require(now >= self.paced.pop(key, inf) - EPSILON, "verifiers are paced", (key, now))

    def _runs(self, key: Key, account: Account, effect: Any, now: float) -> None:
        order = self.orders[key.request]
        factor = order.multiplier if order.run_multiplier is None else order.run_multiplier
        budget = None if order.run_seconds is None else order.run_seconds * factor
        grace = order.compensation if order.harness else 0.0
        outer = None if budget is None else budget + grace
        self.require(getattr(effect, "timeout", budget) == budget, "the agent knows its budget", effect)
        self.require(effect.within == outer, "the outer limit is the budget and the compensation", effect.within)
        account.agent_lives = True
        self._reaches(key, effect, "no-network" if order.networks else "public")

    def _reaches(self, key: Key, effect: Any, mode: str) -> None:
        sandbox = sandbox_of(effect)
        if sandbox is not None:
            self.require(sandbox.network.network_mode == mode, "each phase has its network", (key, sandbox.network))

    def _keeps(self, key: Key, account: Account, effect: Any, now: float) -> None:
        self.require(not account.agent_lives, "the agent is dead before anything is kept", key)
        self.require(effect.env.role == "run", "artifacts are of the agent's sandbox", key)
        self.require(0 < effect.within <= 600, "keeping has its budget", effect.within)

    def _restores(self, key: Key, account: Account, effect: Any, now: float) -> None:
        self.require(effect.env.role == "verifier", "only a fresh verifier gets artifacts", key)
        self.require(effect.entry.fingerprint in account.kept_artifacts, "what is restored was kept", effect.entry)

    def _collects(self, key: Key, account: Account, effect: Any, now: float) -> None:
        self.require(not account.agent_lives, "the agent is dead before anything is collected", key)
        self.require(effect.within == self.orders[key.request].collect_seconds, "collecting has its budget", key)

    def _closes_session(self, key: Key, account: Account, effect: Any, now: float) -> None:
        effect.session.closes += 1
        self.require(effect.session.closes == 1, "a session is closed once", key)

    def _closes(self, key: Key, account: Account, effect: Any, now: float) -> None:
        self.require(not self.orders[key.request].keep, "kept environments stay open", key)
        open_sessions = [s for s in account.sessions if s.sandbox is effect.env and not s.closes]
        self.require(not open_sessions, "a session is closed before its sandbox", key)
        effect.env.closes += 1

    def _evaluates(self, key: Key, account: Account, effect: Any, now: float) -> None:
        order, result = self.orders[key.request], effect.result
        factor = order.multiplier if order.evaluation_multiplier is None else order.evaluation_multiplier
        within = None if order.evaluation_seconds is None else order.evaluation_seconds * factor
        role = None if effect.env is None else effect.env.role
        self.require(not account.agent_lives, "the agent is dead before anything is graded", key)
        self.require(account.inferred, "only what was inferred is graded", key)
        self.require(effect.within == within, "grading has its budget", effect.within)
        self.require({"none": None, "reuse": "run", "fresh": "verifier"}[order.mode] == role, "graded in place", role)
        self.require(not has(result.issues, Severity.FATAL), "nothing is graded that a FATAL stands against", key)
        self.require(result.final_answer == account.answer, "this execution's answer is graded", key)
        if effect.env is not None:
            self._reaches(key, effect, "allowlist" if order.networks else "public")
        if order.mode == "fresh":
            restored = set(effect.env.restored)
            self.require(restored == set(account.kept_artifacts), "a verifier has all artifacts", (key, restored))
        if order.mode != "reuse" and not order.keep and order.steps == 1:
            still = [s for s in account.sandboxes if s.role == "run" and not s.closes]
            self.require(not still, "the run environment is closed before other grading", key)

    def _saves(self, key: Key, account: Account, effect: Any, now: float) -> None:
        order, result = self.orders[key.request], effect.result
        self.require(not account.saved, "an attempt is saved once", key)
        account.saved = True
        self.require(effect.retries == account.retries <= order.max_retries, "retries are within budget", key)
        self.require((effect.discarded.model_calls or 0) == account.spent, "money spent stays spent", (key, effect))
        if result.cancelled:
            self.require(self.stopped_at is not None, "only a stop cancels", key)
            return
        last = account.retries == order.max_retries
        self.require(last or not calls(result.issues, order), "what calls for a retry is retried", (key, result))
        self._check_content(key, account, result)

    def _check_content(self, key: Key, account: Account, result: RunResult) -> None:
        verdict = account.verdict
        fresh = {} if verdict is None or has_code(result.issues, "metric_invalid") else verdict.metrics
        self.require(dict(result.metrics) == dict(fresh), "a score is of the last grading", (key, result.metrics))
        if account.inferred:
            self.require(result.final_answer == account.answer, "an answer is of the last inference", key)
            self.require(result.killed_processes == account.killed, "what was killed is told", key)
        stale = [i for i in result.issues if i.phase is IssuePhase.EVALUATE] if not account.grading_failed else []
        self.require(not stale, "a resolved failure leaves no issue", (key, stale))

    def _saves_retry(self, key: Key, account: Account, effect: Any, now: float) -> None:
        order = self.orders[key.request]
        self.require(calls(effect.result.issues, order), "only what calls for a retry is retried", (key, effect.result))
        self.require(not effect.result.cancelled, "what was cancelled is not retried", key)
        self.require(effect.retry == account.retries + 1 <= order.max_retries, "retries are within budget", key)
        account.discarded = effect.result.issues

    def _saves_task(self, key: Key, account: Account, effect: Any, now: float) -> None:
        order, numbers = self.orders[key.request], list(effect.task.attempts)
        won = any(wins(record.result, order) for record in effect.task.attempts.values())
        early = order.strategy == "pass" and won
        whole = numbers == list(range(1, len(numbers) + 1)) or (early and numbers == sorted(numbers))
        self.require(whole, "attempts are kept in order", (key, numbers))
        self.require(len(numbers) == order.k or early, "a finished task has all its attempts", (key, numbers))
        self.counts["tasks"] += 1

    def ends(self, key: Key, effect: Any, value: Any, error: BaseException | None, now: float) -> None:
        """Take note of what *effect* gave."""
        account, kind = self.accounts[key], KINDS.get(type(effect))
        mandatory = kind != "ready" or not effect.command.optional
        if isinstance(error, PhaseFailed) and error.retry_after is not None and mandatory:
            account.retry_after = max(account.retry_after or 0.0, error.retry_after)
        if error is not None:
            graded = kind == "evaluate" or (kind == "open" and effect.role == "verifier")
            account.grading_failed |= graded or kind == "restore" or isinstance(effect, fx.SwitchGradingNetwork)
            if kind in ("reserve", "download") or (kind == "ready" and mandatory):
                account.inferred = False
            return
        noted = _NOTES.get(kind or "")
        if noted is not None:
            noted(self, key, account, effect, value)

    def _opened(self, key: Key, account: Account, effect: Any, value: Any) -> None:
        account.sandboxes.append(value)

    def _started(self, key: Key, account: Account, effect: Any, value: Any) -> None:
        account.sessions.append(value)

    def _killed(self, key: Key, account: Account, effect: Any, value: Any) -> None:
        account.agent_lives, account.killed = False, (account.killed or 0) + value
        account.inferred = not self.orders[key.request].harness

    def _downloaded(self, key: Key, account: Account, effect: Any, value: Any) -> None:
        if value.fingerprint is not None:
            account.kept_artifacts.append(value.fingerprint)

    def _collected(self, key: Key, account: Account, effect: Any, value: Any) -> None:
        account.answer = value.final_answer
        account.collected += 1
        account.inferred = self.orders[key.request].harness

    def _graded(self, key: Key, account: Account, effect: Any, value: Any) -> None:
        order = self.orders[key.request]
        if order.steps == 1:
            account.verdict = value
            account.grading_failed = bool(value.issues) or bool(bad(value.metrics, order))
        else:
            account.grading_failed |= bool(value.issues)

    def _combined(self, key: Key, account: Account, effect: Any, value: Any) -> None:
        account.verdict = value
        account.grading_failed |= bool(value.issues) or bool(bad(value.metrics, self.orders[key.request]))

    def _goes_on(self, key: Key, account: Account, effect: Any, value: Any) -> None:
        self.require(not account.agent_lives, "the agent is dead before a further step", key)
        if value is not None:
            account.inferred, account.kept_artifacts = False, []

    def _saved(self, key: Key, account: Account, effect: Any, value: Any) -> None:
        if effect.result.cancelled:
            return
        order = self.orders[key.request]
        account.kept, account.won = True, wins(effect.result, order)
        if order.strategy == "pass" and account.won:
            lane = self.waiting.get(order.provider, {})
            for other in [o for o in lane if (o.request, o.task) == (key.request, key.task)]:
                if other not in self.accounts or not self.accounts[other].executions:
                    del lane[other]

    def announced(self, key: Key | None, event: Event) -> None:
        """Check that the phase of an attempt follows the one before."""
        self.counts[event.event] += 1
        if key is not None and event.event == "phase_changed":
            account, phase = self.accounts[key], Phase(event.phase or "")
            resumed = account.graded_only and account.phase is Phase.PLAN and may_follow(Phase.RETRY_WAIT, phase)
            follows = resumed or may_follow(account.phase, phase)  # an earlier run's work is graded at once
            self.require(follows, "phases follow", (key, account.phase, phase))
            account.phase = phase

    # how an execution ends

    def ended(self, key: Key, step: Step, now: float) -> None:
        """Check the end of an execution, and note what may start because of it."""
        account, order = self.accounts[key], self.orders[key.request]
        del self.running[key]
        if not (self.forced and isinstance(step, GivenUp)):
            self._check_closed(key, account, order)
            self._check_tidied(key, account)
        if isinstance(step, Again):
            self._check_again(key, account, order, step)
            account.graded_only = step.job.notes is not None
            self._offer(key, order.provider, now + step.delay)
        elif isinstance(step, Kept):
            self.require(account.kept, "what is kept is saved", key)
            self._follow(key, order)
        else:
            self.require(self.stopped_at is not None, "nothing is given up without a stop", key)

    def _check_closed(self, key: Key, account: Account, order: Order) -> None:
        wanted = 0 if order.keep else 1
        counts = [sandbox.closes for sandbox in account.sandboxes]
        self.require(counts == [wanted] * len(counts), "every sandbox is closed exactly once", (key, counts))
        sessions = [session.closes for session in account.sessions]
        self.require(sessions == [1] * len(sessions), "every session is closed exactly once", (key, sessions))

    def _check_tidied(self, key: Key, account: Account) -> None:
        done = account.tidied
        self.require("kill" in done or not done & {"run", "run_task"}, "no agent outlives its work", key)
        collected = "collect" in done or "run" not in done or account.agent_lives
        self.require(collected, "what an agent has done is collected, also after a stop", key)

    def _check_again(self, key: Key, account: Account, order: Order, step: Again) -> None:
        account.retries += 1
        account.spent += account.collected if step.job.notes is None else 0
        bound = min(order.min_delay * 2 ** (account.retries - 1), order.max_delay)
        asked = account.retry_after or 0.0
        self.require(step.delay >= max(bound / 2, asked), "a retry waits as long as it is asked to", (key, step.delay))
        self.require(step.delay <= max(bound, asked), "a retry waits no longer", (key, step.delay))
        earlier = [issue for issue in account.discarded if issue.phase is not IssuePhase.EVALUATE]
        alone = order.mode != "reuse" and order.steps == 1
        regrade = account.inferred and alone and not calls(earlier, order)
        self.require(regrade == (step.job.notes is not None), "only failed grading is repeated alone", key)

    def _follow(self, key: Key, order: Order) -> None:
        ahead = order.isolated and (order.strategy == "avg" or order.speculative)
        tried = [self.accounts[k] for k in self.accounts if (k.request, k.task) == (key.request, key.task)]
        won = order.strategy == "pass" and any(account.won for account in tried)
        later = (Key(key.request, key.task, number) for number in range(key.attempt + 1, order.k + 1))
        following = next(
            (other for other in later if other not in self.accounts or not self.accounts[other].stands), None
        )
        if following and not ahead and not won:
            self._offer(following, order.provider)


_CHECKS: dict[str, Any] = {
    "open": Watch._opens,
    "run": Watch._runs,
    "run_task": Watch._runs,
    "collect": Watch._collects,
    "close_session": Watch._closes_session,
    "close": Watch._closes,
    "ready": Watch._keeps,
    "download": Watch._keeps,
    "restore": Watch._restores,
    "evaluate": Watch._evaluates,
    "save_attempt": Watch._saves,
    "save_retry": Watch._saves_retry,
    "save_task": Watch._saves_task,
}
_NOTES: dict[str, Any] = {
    "open": Watch._opened,
    "start": Watch._started,
    "kill": Watch._killed,
    "run_task": Watch._collected,
    "collect": Watch._collected,
    "download": Watch._downloaded,
    "evaluate": Watch._graded,
    "combine": Watch._combined,
    "next": Watch._goes_on,
    "save_attempt": Watch._saved,
}
