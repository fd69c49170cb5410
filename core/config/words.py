"""The words that options choose from: apart, so that the command line's parser needs nothing else."""

from __future__ import annotations

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
PROGRESS_MODES = ("auto", "plain", "none")
AGGREGATION_MODES = ("micro_weighted", "category_mean", "category_hierarchy")
