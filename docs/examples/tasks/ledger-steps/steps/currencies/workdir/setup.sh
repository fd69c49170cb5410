#!/bin/bash
# The second step begins with a ledger that has grown.
set -euo pipefail
echo "2026-03-01 books 20.00 USD from:bank to:shop" >> ledger.txt
rm -- "$0"
