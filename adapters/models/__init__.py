"""Model endpoints."""
