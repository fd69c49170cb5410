"""The components in the box, registered through the same hooks as any others."""
