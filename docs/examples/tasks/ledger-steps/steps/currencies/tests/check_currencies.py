"""Checks the second step, and the first once more; prints the rewards."""

from __future__ import annotations

import json
import random
import sys
import tempfile

sys.path.insert(0, "/tests")
import ledger_cases

RATES = {"USD": 9137, "SEK": 895, "XHF": 5000}  # in ten-thousandths


def worth(cents, currency):
    return cents if not currency else (cents * RATES[currency] + 5000) // 10000


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def check_currencies(folder):
    path, rates = f"{folder}/ledger.txt", f"{folder}/rates.txt"
    write(rates, "".join(f"{name} {value // 10000}.{value % 10000:04}\n" for name, value in RATES.items()))
    for _ in range(5):
        text, entries = ledger_cases.ledger(random.randrange(1, 400), RATES)
        write(path, text)
        converted = [(day, source, target, worth(cents, currency)) for day, source, target, cents, currency in entries]
        found = ledger_cases.run("balance", path, "--rates", rates)
        assert found[:2] == (0, ledger_cases.balances(converted)), found
    for currency, options in (("DKK", ("--rates", rates)), ("USD", ())):
        write(path, f"\n2026-01-01 what 1.00 {currency} from:a to:b\n")
        status, out, err = ledger_cases.run("balance", path, *options)
        assert (status, out, "2" in err) == (1, "", True), (currency, status, out, err)


def passes(check):
    with tempfile.TemporaryDirectory() as folder:
        try:
            check(folder)
        except Exception as problem:
            print(f"{check.__name__}: {problem!r}"[:2000], file=sys.stderr)
            return 0
    return 1


old, new = passes(ledger_cases.check_balances), passes(check_currencies)
print(json.dumps({"reward": old * new, "balance": old, "currencies": new}))
