"""Everything that touches the world: what drives the core, what it drives, and the engine between."""
