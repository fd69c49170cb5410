"""Checks the first step."""

from __future__ import annotations

import sys
import tempfile

sys.path.insert(0, "/tests")
import ledger_cases

with tempfile.TemporaryDirectory() as folder:
    ledger_cases.check_balances(folder)
