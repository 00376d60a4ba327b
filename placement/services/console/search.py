"""Global search: everything with exactly this identifier."""

from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.console import known as store
from placement.store.console.known import Bearers

__all__ = ["Bearers", "known_as"]


@reads_anywhere
def known_as(tx: Transaction, identifier: str) -> Bearers:
    """Return the provider, the consumer and the project that have an identifier, if any."""
    return store.known_as(tx, identifier)
