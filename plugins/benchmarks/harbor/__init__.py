"""Tasks in the Harbor format (and those of Terminal-Bench 1): loading, linting, grading."""
