"""The HTTP layer: one module per REST resource, and what they share. No SQL."""
