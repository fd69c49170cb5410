"""The record of a run: its request, the plans of its attempts, how it ended (`agentcompass.run_info.v3`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..metrics.contract import MetricContract
from ..model.environment import EnvironmentSpec
from ..model.network import NetworkPolicy
from ..model.plan import EvaluationMode, Plan
from ..model.request import RunRequest
from ..model.reuse import ReuseReport
from ..model.task import RejectedItem
from .jsonable import jsonable, without_empty
from .results import budget_document

SCHEMA = "agentcompass.run_info.v3"


def request_document(request: RunRequest) -> dict[str, Any]:
    """Return the request as it was merged, without nulls, empty containers and private keys; not yet redacted."""
    model = request.model
    selection = {key: value for key, value in asdict(request.selection).items() if value is not None}
    document: dict[str, Any] = jsonable(
        without_empty(
            {
                "benchmark": {"id": request.benchmark.id, "params": {**request.benchmark.params, **selection}},
                "harness": asdict(request.harness),
                "environment": {"id": request.environment.id, "params": request.environment.params},
                "model": {
                    "id": model.id,
                    "base_url": model.base_url,
                    "api_key": model.api_key,
                    "api_protocol": list(model.api_protocols) if model.api_protocols else "",
                    "params": model.params,
                }
                if model
                else None,
                "execution": asdict(request.execution),
                "runtime": {"reuse": request.reuse.wanted, "reuse_run_id": request.reuse.run_id},
                "output": asdict(request.output),
                "metadata": request.metadata,
            }
        )
    )
    return document


def params_document(request: RunRequest) -> dict[str, Any]:
    """Return the part of the request that a summary needs, without its unset fields."""
    whole = request_document(request)
    parts = {
        "model": whole.get("model", {}),
        "benchmark": whole["benchmark"],
        "execution": {"attempts": whole["execution"]["attempts"]},
        "output": whole.get("output", {}),
    }
    return {name: {key: value for key, value in part.items() if value != ""} for name, part in parts.items()}


def contract_document(contract: MetricContract) -> dict[str, Any]:
    """Return what the benchmark measures, so that a summary needs the benchmark no more."""
    return {"primary": asdict(contract.primary), "auxiliary": [asdict(spec) for spec in contract.auxiliary]}


def _environment(provider: str, spec: EnvironmentSpec) -> dict[str, Any]:
    limits = {name: getattr(spec.resources, name) for name in spec.resources.given}
    return {
        "id": provider,
        "network_policy": policy_document(spec.network),
        "image": spec.image,
        "build": spec.build,
        "workdir": spec.workdir,
        "env_variables": sorted(spec.env),
        "resources": limits,
    }


def policy_document(policy: NetworkPolicy) -> dict[str, Any]:
    """Return a network policy."""
    return {
        "network_mode": policy.network_mode.value,
        "allowed_hosts": list(policy.allowed_hosts),
        "denied_hosts": list(policy.denied_hosts),
    }


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return the plan of one attempt: what it meant to use, with every budget and its source."""
    environment = _environment(plan.provider, plan.environment)
    verifier = _environment(plan.provider, plan.verifier) if plan.verifier else environment
    kept = plan.artifacts
    return {
        "environment": environment,
        "evaluation_environment": verifier if plan.evaluation_mode is EvaluationMode.FRESH else None,
        "evaluation_environment_mode": plan.evaluation_mode.value,
        "run_network_policy": policy_document(plan.run_network),
        "verifier_network_policy": policy_document(plan.evaluation_network),
        "applied_recipes": list(plan.recipes),
        "unenforced_limits": list(plan.unenforced),
        "artifact_collection_supported": kept is not None,
        "save_artifacts": kept is not None and kept.save,
        "artifacts": [asdict(source) for source in kept.sources] if kept else [],
        "artifact_collect": [asdict(command) for command in kept.commands] if kept else [],
        "run_timeout_seconds": plan.run.seconds if plan.run else None,
        "evaluation_timeout_seconds": plan.evaluation.seconds if plan.evaluation else None,
        "run_timer_compensation_seconds": plan.run_compensation_seconds,
        "runresult_collect_timeout_seconds": plan.collect_seconds,
        "budgets": {"run": budget_document(plan.run), "evaluation": budget_document(plan.evaluation)},
        "max_retries": plan.retry.max_retries,
        "retry_pattern_list": list(plan.retry.patterns),
    }


class RunInfo:
    """The record while the run goes on. Plans are folded into it; equal ones are held once."""

    def __init__(
        self,
        run_id: str,
        started_at: str,
        request: Mapping[str, Any],
        versions: Mapping[str, str],
        contract: MetricContract,
    ) -> None:
        self.run_id, self.request, self._started_at, self._versions = run_id, request, started_at, versions
        self._contract = contract_document(contract)
        self._plans: dict[str, dict[str, Any]] = {}
        self._held: dict[str, Mapping[str, Any]] = {}
        self._latest: Mapping[str, Any] | None = None
        self._count, self._due = 0, 1
        self._rejected: Sequence[RejectedItem] = ()
        self._reused: dict[str, Any] = {}
        self._end: dict[str, Any] = {}

    def add_plan(self, task_id: str, attempt: int, document: Mapping[str, Any]) -> bool:
        """Fold in a plan; tell whether the record has grown enough (fourfold) to be written again."""
        if document is not self._latest:
            self._latest = self._held.setdefault(repr(document), document)
        same = self._latest
        self._plans.setdefault(task_id, {"attempts": {}})["attempts"][str(attempt)] = same
        self._count += 1
        if self._count < self._due:
            return False
        self._due *= 4
        return True

    def reject(self, items: Sequence[RejectedItem]) -> None:
        """Name the items of the benchmark's data that are no tasks."""
        self._rejected = items

    def reuse(self, run_id: str, path: str, report: ReuseReport | None = None) -> None:
        """Name the run that is continued, and, once that is done, what of it stands and what does not."""
        self._reused = {"run_id": run_id, "path": path, "complete": report is not None}
        if report is not None:
            refused = [asdict(refusal) for refusal in report.refused]
            self._reused |= {"tasks": report.tasks, "attempts": report.attempts, "refused": refused}
            if report.differences:
                self._reused["differences"] = [asdict(difference) for difference in report.differences]
            if report.changed_tasks:
                self._reused["changed_tasks"] = report.changed_tasks

    def finish(self, status: str, finished_at: str, error: str | None, report: Mapping[str, Any] | None) -> None:
        """Enter how the run ended, and what its numbers were made by."""
        self._end = {"status": status, "finished_at": finished_at}
        if error:
            self._end["error"] = error
        if report is not None:
            self._end["metric_artifacts"] = {"generated_at": finished_at, "source": "evaluation", "report": report}

    def document(self, redact: Callable[[Any], Any]) -> dict[str, Any]:
        """Return the record as it stands; the request and the plans were redacted when they came in."""
        document: dict[str, Any] = {
            "schema_version": SCHEMA,
            "run_id": self.run_id,
            "started_at": self._started_at,
            "request": self.request,
            "versions": self._versions,
            "metric_contract": self._contract,
        }
        if self._plans:
            document["resolved_execution_plans"] = self._plans
        if self._reused:
            document["reused_from"] = redact(self._reused)
        if self._rejected:
            document["rejected_items"] = redact([asdict(item) for item in self._rejected])
        document |= redact(self._end)
        return document
