#!/bin/bash
cp /solution/service.py /app/service.py
printf '#!/bin/bash\nexec python3 /app/service.py "$1" "$2"\n' > /app/start.sh
