"""Compares the report with one made from fresh logs, and the logs with fresh ones."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

LOGS, REPORT = Path("/app/logs"), Path("/app/report.json")


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def expected(folder):
    report = {"requests": 0, "damaged": 0, "bytes": 0}
    clients, errors, hours = set(), Counter(), Counter()
    for name, data in files(folder).items():
        text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
        for line in filter(str.strip, text.splitlines()):
            fields = line.split(" ")
            size = fields[-1].replace("-", "0")
            if len(fields) != 6 or not fields[4].isdigit() or not size.isdigit():
                report["damaged"] += 1
                continue
            report["requests"] += 1
            report["bytes"] += int(size)
            clients.add(fields[1])
            hours[fields[0][:13]] += 1
            if 500 <= int(fields[4]) <= 599:
                errors[fields[3]] += 1
    busiest = min(hour for hour, count in hours.items() if count == max(hours.values()))
    return {**report, "clients": len(clients), "errors_by_path": dict(errors), "busiest_hour": busiest}


def main():
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder, "logs")
        subprocess.run([sys.executable, "-I", "/tests/make_logs.py", str(fresh)], check=True)
        assert files(LOGS) == files(fresh), "the logs were changed"
        wanted = expected(fresh)
    found = json.loads(REPORT.read_text())
    for key, value in wanted.items():
        assert found.get(key) == value, f"{key}: expected {value!r}, found {found.get(key)!r}"
    assert set(found) == set(wanted), f"other keys: {set(found) - set(wanted)}"


main()
