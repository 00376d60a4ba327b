"""Look for what may no longer be wanted or is wrong: unknown consumers, overcommitted providers, odd rows."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from placement.store.checks import audit as store
from placement.store.checks.audit import EMPTY_AGGREGATES, EMPTY_CONSUMERS, Hits, OverFull, Ownerless, odd_rows
from placement.store.connection.unit_of_work import Transaction, reads_anywhere


@dataclass(frozen=True, slots=True)
class AuditFindings:
    """What an audit finds.

    Args:
        unknown_consumers: the consumers with allocations that are not on the list; none without a list.
        overcommitted: the providers that have less of a class than is used.
        odd_rows: lines about rows that no server writes.
        empty_consumers: the consumers without allocations.
        empty_aggregates: the aggregates without members.
    """

    unknown_consumers: Sequence[Ownerless]
    overcommitted: Sequence[OverFull]
    odd_rows: Sequence[str]
    empty_consumers: Hits
    empty_aggregates: Hits


@reads_anywhere
def audit(
    tx: Transaction, known: Collection[str] | None, *, consumer_type: str | None, older_than: timedelta
) -> AuditFindings:
    """Look for everything that an audit finds.

    Args:
        tx: the transaction.
        known: the uuids of all consumers that exist; None to leave out the check for others.
        consumer_type: consider only consumers of this type.
        older_than: ignore consumers younger than this, which the list may not have yet.
    """
    connection = tx.connection
    return AuditFindings(
        () if known is None else store.ownerless(connection, known, consumer_type=consumer_type, older_than=older_than),
        store.over_full(connection),
        tuple(odd_rows(connection)),
        EMPTY_CONSUMERS.values(connection),
        EMPTY_AGGREGATES.values(connection),
    )
