#!/bin/bash
set -euo pipefail
cd /app
sed -i \
    -e 's|(\\d+\\.\\d\\d) from|(\\d+\\.\\d\\d)(?: ([A-Z]+))? from|' \
    -e 's|found\[5\]|found[6]|g; s|found\[4\]|found[5]|g' \
    -e 's|from decimal import Decimal|from decimal import ROUND_HALF_UP, Decimal|' \
    -e 's|    balances = {}|    rates = {"": Decimal(1)}\n    if args.rates:\n        rates.update((line.split()[0], Decimal(line.split()[1])) for line in open(args.rates) if line.strip())\n    balances = {}|' \
    -e 's|    args = parser|    parser.add_argument("--rates")\n    args = parser|' \
    -e 's|if not found:|if not found or (found[4] or "") not in rates:|' \
    -e 's|        if found\[1\]|        amount = (Decimal(found[3]) * rates[found[4] or ""]).quantize(Decimal("0.01"), ROUND_HALF_UP)\n        if found[1]|' \
    -e 's|\([-+]\) Decimal(found\[3\])$|\1 amount|' \
    ledger.py
