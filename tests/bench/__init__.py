"""How much cheaper this server is than the reference, measured on the same work. ``python -m tests.bench`` runs it."""
