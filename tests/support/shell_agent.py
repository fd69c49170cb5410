"""A harness that runs a shell script in the sandbox: an agent that does what a test wants, good or evil."""

from __future__ import annotations

from agentcompass.core.model.component import Component, parameters
from agentcompass.core.model.result import HarnessResult
from agentcompass.ports.harness import Harness
from agentcompass.ports.hookspecs import hookimpl

ENTRY_POINTS = "[agentcompass.plugins]\nshell_agent = support.shell_agent\n"


class ShellAgent(Harness):
    """Runs *script*; the last is for all further steps."""

    needs_model = False
    isolated = True

    def __init__(self, script):
        self._scripts = [script] if isinstance(script, str) else list(script)

    async def open_session(self, context, prepared):
        return {"environment": context.environment, "step": prepared.metadata.get("step_index", 0)}

    async def execute_task(self, session, prepared, *, timeout):
        script = self._scripts[min(session["step"], len(self._scripts) - 1)]
        ran = await session["environment"].exec(script, timeout=timeout)
        session["ran"] = ran
        if ran.timed_out:
            raise TimeoutError(f"the script took more than {timeout:g} s")

    async def collect_result(self, session, prepared):
        ran = session.get("ran")
        return HarnessResult(telemetry={"exit_code": ran.exit_code, "output": ran.text[-2000:]} if ran else {})

    async def close_session(self, session):
        pass


@hookimpl
def register_harnesses():
    script = {"type": ["string", "array"], "description": "What the agent does."}
    return [
        Component("shell_agent", "Runs a script.", f"{__name__}:ShellAgent", parameters(("script",), script=script))
    ]
