"""What the core needs from the world, and what plugin authors offer it: protocols and hooks, in the core's words."""
