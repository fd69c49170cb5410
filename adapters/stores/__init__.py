"""Places where the records of a run go."""
