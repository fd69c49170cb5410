"""Who may start, and when."""
