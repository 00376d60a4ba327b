"""The sums of trees, read anew in a snapshot."""

from collections.abc import Sequence

from placement.cloud.columns import CloudColumns
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.cloud_rows import cloud_rows


def sums_by_name(tx: Transaction, classes: Sequence[str], others: Sequence[str]) -> list[tuple[int, ...]]:
    """Return a row for each tree that has any of the classes: its root, its capacity, then its usage of each."""
    ids = tx.names.classes.ids(tx.connection, {*classes, *others})
    columns = CloudColumns.from_rows(cloud_rows(tx))
    return columns.sum_rows([ids.get(name) for name in classes], [ids[name] for name in others])
