"""Everything about many providers at once: for dashboards, exporters, this server's metrics, and audits."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from placement.domain.inventory import ProviderFilter
from placement.errors import PlacementError
from placement.services.journal import put_in_order
from placement.services.providers import ids_in_filter
from placement.store import bulk_read as store
from placement.store.bulk_read import BulkRead, allocation_rows, capacity_rows
from placement.store.checks import audit as checks
from placement.store.checks.audit import (
    ABANDONED_AFTER,
    EMPTY_AGGREGATES,
    EMPTY_CONSUMERS,
    Hits,
    OverFull,
    Ownerless,
    odd_rows,
)
from placement.store.connection.batching import BackgroundWork
from placement.store.connection.database import Database, Transaction, reads_anywhere, reads_once
from placement.store.marks import hosts_in
from placement.store.provider_list import conditions_of

LOG = logging.getLogger(__name__)


def read_inventory(database: Database, provider_filter: ProviderFilter) -> BulkRead:
    """Return the providers that pass a filter with all they have, in one snapshot; Invalid for unknown names."""
    if database.keeps_journal:
        put_in_order(database)
    return _read(database, provider_filter)


@reads_anywhere
def _read(tx: Transaction, provider_filter: ProviderFilter) -> BulkRead:
    classes, traits = ids_in_filter(tx, provider_filter)
    return store.bulk_read(tx, conditions_of(tx, provider_filter, class_ids=classes, trait_ids=traits))


capacity = reads_once(capacity_rows)
allocations = reads_once(allocation_rows)
trees_in = reads_once(hosts_in)


@dataclass(frozen=True, slots=True)
class AuditFindings:
    """What an audit finds: consumers not on the list, providers over capacity, odd rows, and what nothing needs."""

    unknown_consumers: Sequence[Ownerless]
    overcommitted: Sequence[OverFull]
    odd_rows: Sequence[str]
    empty_consumers: Hits
    empty_aggregates: Hits


@reads_anywhere
def audit(
    tx: Transaction,
    existing: Collection[str] | None,
    *,
    consumer_type: str | None,
    older_than: timedelta,
    tell: Callable[[str, float], None] = lambda _step, _done: None,
) -> AuditFindings:
    """Look for everything that an audit finds; without a list of ``existing`` consumers, not for others.

    Consumers younger than ``older_than`` do not count: the list may not have them yet.
    """
    connection = tx.connection
    ownerless: Sequence[Ownerless] = ()
    if existing is not None:
        tell("consumers", 0)
        ownerless = checks.ownerless(connection, existing, consumer_type=consumer_type, older_than=older_than)
    tell("capacity", 0.4)
    over_full = checks.over_full(connection)
    tell("odd rows", 0.6)
    odd = tuple(odd_rows(connection))
    tell("what nothing needs", 0.9)
    return AuditFindings(
        ownerless, over_full, odd, EMPTY_CONSUMERS.values(connection), EMPTY_AGGREGATES.values(connection)
    )


class StandingAudit:
    """Audits a database every hour, without a list of consumers, for a page to show what it found."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.problems: Mapping[str, int] = {}
        """How often each was found, in words."""
        self.work = BackgroundWork(self.look, name="audit", first_s=60, every_s=3600)

    def look(self) -> None:
        """Audit now."""
        try:
            findings = audit(self._database, None, consumer_type=None, older_than=ABANDONED_AFTER)
        except PlacementError as error:
            LOG.info("The database could not be audited: %s", error.message)
            return
        problems = {"Odd rows": len(findings.odd_rows), "Consumers without allocations": findings.empty_consumers.total}
        self.problems = {name: number for name, number in problems.items() if number}
