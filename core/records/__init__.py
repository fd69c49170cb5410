"""Records as documents: what is written, and how it is read back."""
