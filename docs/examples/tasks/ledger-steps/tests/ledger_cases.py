"""Random ledgers, and what their balances are."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter

ACCOUNTS = ["bank", "cash", "shop", "Landlord", "a-b", "zoo"]


def run(*words):
    command = [sys.executable, "-I", "/app/ledger.py", *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd="/")
    return ran.returncode, ran.stdout, ran.stderr


def money(cents):
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100}.{abs(cents) % 100:02}"


def ledger(count, rates=None):
    """Return the text of a ledger, and its entries as (day, from, to, cents)."""
    lines, entries = ["# a ledger", ""], []
    for _ in range(count):
        day = f"2026-{random.randrange(1, 13):02}-{random.randrange(1, 29):02}"
        source, target = random.sample(ACCOUNTS, 2)
        cents = random.randrange(1, 10 ** random.randrange(2, 14))
        currency = random.choice(["", *(rates or ())])
        lines.append(f"{day} what {money(cents)}{currency and ' ' + currency} from:{source} to:{target}")
        entries.append((day, source, target, cents, currency))
    return "\n".join(lines) + "\n", entries


def balances(entries, until="9999-99-99"):
    found = Counter()
    for day, source, target, cents, *_ in entries:
        if day <= until:
            found[source] -= cents
            found[target] += cents
    return "".join(f"{name} {money(found[name])}\n" for name in sorted(found))


def check_balances(folder):
    """Check all that the first step asks for."""
    path = f"{folder}/ledger.txt"
    for count in (0, 1, 5, 300, 3000):
        text, entries = ledger(count)
        for until in (None, "2026-06-15"):
            with open(path, "w") as file:
                file.write(text)
            wanted = 0, balances(entries, until or "9999-99-99")
            found = run("balance", path, *(("--until", until) if until else ()))
            assert found[:2] == wanted, f"{count} entries until {until}: expected {wanted}, found {found}"
    for bad in ("2026-01-01 rent 12 from:a to:b", "2026-01-01 rent 12.00 from:a", "rent"):
        with open(path, "w") as file:
            file.write(f"# first\n2026-01-01 ok 1.00 from:a to:b\n{bad}\n")
        status, out, err = run("balance", path)
        assert (status, out, "3" in err) == (1, "", True), f"{bad!r}: {(status, out, err)}"
