"""The names that requests can use, as far as this cloud has them."""

from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.console import names_in_use as store
from placement.store.console.names_in_use import NamesInUse

__all__ = ["NamesInUse", "names_in_use"]


@reads_anywhere
def names_in_use(tx: Transaction) -> NamesInUse:
    """Return the resource classes and traits that any provider has."""
    return store.names_in_use(tx)
