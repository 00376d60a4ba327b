"""Look for what may no longer be wanted or is wrong: unknown consumers, overcommitted providers, odd rows."""

from collections.abc import Callable, Collection, Sequence
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
    tx: Transaction,
    known: Collection[str] | None,
    *,
    consumer_type: str | None,
    older_than: timedelta,
    tell: Callable[[str, float], None] = lambda _step, _done: None,
) -> AuditFindings:
    """Look for everything that an audit finds.

    Args:
        tx: the transaction.
        known: the uuids of all consumers that exist; None to leave out the check for others.
        consumer_type: consider only consumers of this type.
        older_than: ignore consumers younger than this, which the list may not have yet.
        tell: called with each step and the part of all that is done.
    """
    connection = tx.connection
    ownerless: Sequence[Ownerless] = ()
    if known is not None:
        tell("consumers", 0)
        ownerless = store.ownerless(connection, known, consumer_type=consumer_type, older_than=older_than)
    tell("capacity", 0.4)
    over_full = store.over_full(connection)
    tell("odd rows", 0.6)
    odd = tuple(odd_rows(connection))
    tell("what nothing needs", 0.9)
    return AuditFindings(
        ownerless, over_full, odd, EMPTY_CONSUMERS.values(connection), EMPTY_AGGREGATES.values(connection)
    )
