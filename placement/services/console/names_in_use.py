"""The names that requests can use, as far as this cloud has them, and whatever has exactly a given identifier."""

from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.console import names_in_use as store
from placement.store.console.names_in_use import Bearers, NamesInUse

__all__ = ["Bearers", "NamesInUse", "known_as", "names_in_use"]


@reads_anywhere
def names_in_use(tx: Transaction) -> NamesInUse:
    """Return the resource classes and traits that any provider has."""
    return store.names_in_use(tx)


@reads_anywhere
def known_as(tx: Transaction, identifier: str) -> Bearers:
    """Return the provider, the consumer and the project that have an identifier, if any."""
    return store.known_as(tx, identifier)
