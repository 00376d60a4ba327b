"""Recent changes and who made them: the journal rows that people look for, with the names of providers."""

from typing import NamedTuple

from sqlalchemy import func, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.reading import Entry, Wanted, trail
from placement.store.journal.watched import AGGREGATE, ALLOCATION, INVENTORY, PROVIDER, TRAIT
from placement.store.providers import RP
from placement.store.tables import resource_providers

TOLD = (ALLOCATION, INVENTORY, TRAIT, AGGREGATE, PROVIDER)
"""The kinds of rows to show; generations and consumers only change along with these."""


class ToldChange(NamedTuple):
    """A row of the journal, with the names of its provider and of the root above; None if they no longer exist."""

    entry: Entry
    name: str | None
    root_name: str | None


def told_changes(
    tx: Transaction, *, limit: int, provider: str | None = None, consumer: str | None = None
) -> list[ToldChange]:
    """Return the latest changes, of one provider or consumer or of all, newest first."""
    entries = trail(tx, Wanted(consumer, provider, kinds=TOLD), limit=limit)
    uuids = sorted({entry.provider_uuid for entry in entries if entry.provider_uuid is not None})
    root = resource_providers.alias("root")
    query = (
        select(RP.uuid, func.coalesce(RP.name, RP.uuid), func.coalesce(root.c.name, root.c.uuid))
        .select_from(resource_providers.join(root, root.c.id == RP.root_provider_id))
        .where(RP.uuid.in_(uuids))
    )
    names = {uuid: (name, root_name) for uuid, name, root_name in tx.tuples(query)} if uuids else {}
    return [ToldChange(entry, *names.get(entry.provider_uuid or "", (None, None))) for entry in entries]
