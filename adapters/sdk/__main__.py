"""``python -m agentcompass``: the command line."""

from __future__ import annotations

import sys

from agentcompass.adapters.cli.main import main

sys.exit(main())
