"""Recent changes, of the whole cloud, of one provider or of one consumer."""

from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.console import changes as store
from placement.store.console.changes import ToldChange

__all__ = ["ToldChange", "changes"]


@reads_anywhere
def changes(
    tx: Transaction, *, most: int, provider: str | None = None, consumer: str | None = None
) -> list[ToldChange]:
    """Return the latest changes, newest first."""
    return store.told_changes(tx, limit=most, provider=provider, consumer=consumer)
