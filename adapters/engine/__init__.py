"""The composition root, the plugin host and the driver that performs effects."""
