"""The journal: what changed of providers and consumers, written by triggers in the changing transaction, and read."""
