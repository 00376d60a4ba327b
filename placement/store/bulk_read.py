"""Everything about many providers, or about all, in one statement for each kind of thing."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select

from placement.store.connection.database import Transaction
from placement.store.connection.statements import RowsByIds
from placement.store.journal.order import Cursor, JournalOfAnother, cursor_of
from placement.store.providers import NAME, PARENT, ROOT, RP
from placement.store.stock import StockSource
from placement.store.tables import (
    allocations,
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
)

MAX_AHEAD = 200
"""The most unnumbered rows that a cursor may list: it has to fit into a header."""

_INV = inventories.c
# Outer joins: a provider without a root is shown as well.
_OWNERS = resource_providers.outerjoin(ROOT, RP.root_provider_id == ROOT.c.id).outerjoin(
    PARENT, RP.parent_provider_id == PARENT.c.id
)
_PROVIDERS = (
    select(RP.id, RP.uuid, RP.name, RP.generation, PARENT.c.uuid, ROOT.c.uuid).select_from(_OWNERS).order_by(RP.id)
)


CapacityRow = tuple[str, str, int, float, int, int, int]
"""Provider name, resource class name, total, allocation ratio, reserved, used, the provider's generation."""

AllocationRow = tuple[str, str, str, int]
"""Provider name, consumer uuid, resource class name, amount."""

_ALLOCATIONS = (
    select(NAME, allocations.c.consumer_id, resource_classes.c.name, allocations.c.used)
    .select_from(
        allocations.join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id).join(
            resource_classes, resource_classes.c.id == allocations.c.resource_class_id
        )
    )
    .order_by(allocations.c.id)
)


# By id, not by the filter that found them: PostgreSQL underestimates how many rows that matches, and would evaluate it
# again for every row.
_TRAITS = RowsByIds(
    select(resource_provider_traits.c.resource_provider_id, resource_provider_traits.c.trait_id),
    resource_provider_traits.c.resource_provider_id,
)
_AGGREGATES = RowsByIds(
    select(resource_provider_aggregates.c.resource_provider_id, placement_aggregates.c.uuid).join(
        placement_aggregates, placement_aggregates.c.id == resource_provider_aggregates.c.aggregate_id
    ),
    resource_provider_aggregates.c.resource_provider_id,
)


@cache
def _stocks(*, keeps_usage: bool) -> RowsByIds:
    stock = StockSource(keeps_usage=keeps_usage)
    amounts = (_INV.total, _INV.reserved, _INV.min_unit, _INV.max_unit, _INV.step_size, _INV.allocation_ratio)
    columns = _INV.resource_provider_id, _INV.resource_class_id, *amounts, stock.used
    query = select(*columns).select_from(stock.rows).order_by(_INV.resource_class_id)
    return RowsByIds(query, _INV.resource_provider_id)


@dataclass(frozen=True, slots=True)
class BulkRead:
    """Providers, and what they have by provider id: stocks as (class id, the inventory's amounts, used), trait ids.

    ``journal`` is the cursor that matches this snapshot, if there is one.
    """

    providers: Sequence[tuple[int, str, str, int, str | None, str]]
    stocks: Mapping[int, list[tuple[int, int, int, int, int, int, float, int]]]
    traits: Mapping[int, list[int]]
    aggregates: Mapping[int, list[str]]
    class_names: Mapping[int, str]
    trait_names: Mapping[int, str]
    journal: Cursor | None = None


def bulk_read(tx: Transaction, conditions: Sequence[ColumnElement[bool]]) -> BulkRead:
    """Return the providers that meet the conditions, with everything about them. Needs a snapshot."""
    if conditions:
        tx.keep_no_statement()  # It is as long as the filter.
    providers = tx.tuples(_PROVIDERS.where(*conditions))
    ids = [row[0] for row in providers] if conditions else None
    stocks: dict[int, list[Any]] = defaultdict(list)
    for row in _stocks(keeps_usage=tx.database.keeps_usage).read(tx, ids):
        stocks[row[0]].append(row[1:])
    traits: dict[int, list[int]] = defaultdict(list)
    for provider, trait in _TRAITS.read(tx, ids):
        traits[provider].append(trait)
    aggregates: dict[int, list[str]] = defaultdict(list)
    for provider, uuid in _AGGREGATES.read(tx, ids):
        aggregates[provider].append(uuid)
    return BulkRead(
        providers,
        stocks,
        traits,
        aggregates,
        tx.names.classes.names(tx.connection, {row[0] for rows in stocks.values() for row in rows}),
        tx.names.traits.names(tx.connection, {trait for ids in traits.values() for trait in ids}),
        _journal(tx),
    )


def _journal(tx: Transaction) -> Cursor | None:
    if not tx.database.keeps_journal:
        return None
    try:
        cursor = cursor_of(tx)
    except JournalOfAnother:
        return None
    return cursor if len(cursor.ahead) <= MAX_AHEAD else None


def _rows(*, keeps_usage: bool) -> Select[CapacityRow]:
    stock = StockSource(keeps_usage=keeps_usage)
    named = inventories.join(resource_providers, RP.id == _INV.resource_provider_id).join(
        resource_classes, resource_classes.c.id == _INV.resource_class_id
    )
    amounts = _INV.total, _INV.allocation_ratio, _INV.reserved, stock.used
    query = select(NAME, resource_classes.c.name, *amounts, func.coalesce(RP.generation, 0))
    return query.select_from(stock.with_usage(named)).order_by(RP.id, resource_classes.c.id)


_ROWS = {keeps_usage: _rows(keeps_usage=keeps_usage) for keeps_usage in (True, False)}


def capacity_rows(tx: Transaction) -> list[CapacityRow]:
    """Return every provider's stock of every class, in the order of their ids."""
    return tx.tuples(_ROWS[tx.database.keeps_usage])


def allocation_rows(tx: Transaction) -> list[AllocationRow]:
    """Return every allocation, oldest first."""
    return tx.tuples(_ALLOCATIONS)
