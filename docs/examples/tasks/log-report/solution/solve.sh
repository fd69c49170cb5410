#!/bin/bash
set -euo pipefail
cd /app
for file in logs/*; do
    case "$file" in *.gz) gzip -dc "$file" ;; *) cat "$file" ;; esac
done | python3 -c '
import json, sys
requests = damaged = total = 0
clients, errors, hours = set(), {}, {}
for line in sys.stdin:
    fields = line.split()
    if not fields:
        continue
    try:
        time, client, _, path, status, size = fields
        status, size = int(status), int(size.replace("-", "0"))
    except ValueError:
        damaged += 1
        continue
    requests, total = requests + 1, total + size
    clients.add(client)
    hours[time[:13]] = hours.get(time[:13], 0) + 1
    if 500 <= status <= 599:
        errors[path] = errors.get(path, 0) + 1
busiest = max(sorted(hours), key=hours.get)
print(json.dumps({"requests": requests, "damaged": damaged, "bytes": total, "clients": len(clients),
                  "errors_by_path": errors, "busiest_hour": busiest}))
' > report.json
