#!/bin/bash
cat > /app/ledger.py <<'PYTHON'
import argparse
import re
import sys
from decimal import Decimal

ENTRY = re.compile(r"(\d{4}-\d\d-\d\d) (\S+) (\d+\.\d\d) from:(\S+) to:(\S+)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["balance"])
    parser.add_argument("file")
    parser.add_argument("--until", default="9999-99-99")
    args = parser.parse_args()
    balances = {}
    for number, line in enumerate(open(args.file), 1):
        line = line.rstrip("\n")
        if not line.strip() or line.startswith("#"):
            continue
        found = ENTRY.fullmatch(line)
        if not found:
            print(number, file=sys.stderr)
            return 1
        if found[1] <= args.until:
            balances[found[4]] = balances.get(found[4], Decimal("0.00")) - Decimal(found[3])
            balances[found[5]] = balances.get(found[5], Decimal("0.00")) + Decimal(found[3])
    for name, balance in sorted(balances.items()):
        print(name, balance)
    return 0


sys.exit(main())
PYTHON
