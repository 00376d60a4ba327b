"""Compares the cost of this server and the reference on the same work. ``python -m tests.bench`` runs it."""
