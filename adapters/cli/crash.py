"""The report of an unexpected error: a file with what is needed to mend it, and no secret."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback

from agentcompass.core.redaction import Redactor, secrets_among


def report(exc: BaseException) -> str:
    """Write the report of *exc* and return its path."""
    lines = [
        f"python {platform.python_version()} on {platform.platform()}",
        f"command: {' '.join(sys.argv[:2])} (options are left out)",
        "",
        *traceback.format_exception(exc),
    ]
    text = Redactor(secrets_among(os.environ)).text("\n".join(lines))
    with tempfile.NamedTemporaryFile(
        "w", prefix="agentcompass-crash-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
    ) as file:
        file.write(text)
    return file.name
