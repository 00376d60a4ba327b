"""All there is to know about many providers, in one statement for each kind of thing."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.cursor import Cursor
from placement.store.journal.order import JournalOfAnother, cursor_of
from placement.store.providers import RP
from placement.store.stock import StockSource
from placement.store.tables import (
    inventories,
    placement_aggregates,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
)

MOST_AHEAD = 200
"""Rows without a number that a cursor may name: it has to fit into a header."""

_INV = inventories.c
_PARENT = resource_providers.alias("parent")
_ROOT = resource_providers.alias("root")

_PROVIDERS = (
    select(RP.id, RP.uuid, RP.name, RP.generation, _PARENT.c.uuid, _ROOT.c.uuid)
    .select_from(
        resource_providers.outerjoin(_ROOT, RP.root_provider_id == _ROOT.c.id).outerjoin(
            _PARENT, RP.parent_provider_id == _PARENT.c.id
        )
    )
    .order_by(RP.id)
)
_TRAITS = select(resource_provider_traits.c.resource_provider_id, resource_provider_traits.c.trait_id)
_AGGREGATES = select(resource_provider_aggregates.c.resource_provider_id, placement_aggregates.c.uuid).join(
    placement_aggregates, placement_aggregates.c.id == resource_provider_aggregates.c.aggregate_id
)


@dataclass(frozen=True, slots=True)
class BulkRead:
    """Providers, and what belongs to them by their id.

    Args:
        providers: (id, uuid, name, generation, uuid of the parent, uuid of the root).
        stocks: (class id, total, reserved, min_unit, max_unit, step_size, allocation_ratio, used).
        traits: trait ids.
        aggregates: uuids.
        class_names, trait_names: by id.
        journal: the cursor in the journal of whoever has read this, if there is one.
    """

    providers: Sequence[tuple[int, str, str, int, str | None, str]]
    stocks: Mapping[int, list[tuple[int, int, int, int, int, int, float, int]]]
    traits: Mapping[int, list[int]]
    aggregates: Mapping[int, list[str]]
    class_names: Mapping[int, str]
    trait_names: Mapping[int, str]
    journal: Cursor | None = None


def bulk_read(tx: Transaction, conditions: Sequence[ColumnElement[bool]]) -> BulkRead:
    """Return the providers that meet the conditions, with everything about them; within one snapshot."""
    stocks: dict[int, list[Any]] = defaultdict(list)
    for row in tx.tuples(_narrowed(_stocks(tx), _INV.resource_provider_id, conditions)):
        stocks[row[0]].append(row[1:])
    traits: dict[int, list[int]] = defaultdict(list)
    for provider, trait in tx.tuples(_narrowed(_TRAITS, resource_provider_traits.c.resource_provider_id, conditions)):
        traits[provider].append(trait)
    aggregates: dict[int, list[str]] = defaultdict(list)
    of_provider = resource_provider_aggregates.c.resource_provider_id
    for provider, uuid in tx.tuples(_narrowed(_AGGREGATES, of_provider, conditions)):
        aggregates[provider].append(uuid)
    return BulkRead(
        tx.tuples(_PROVIDERS.where(*conditions)),
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
        found = cursor_of(tx)
    except JournalOfAnother:
        return None
    return found if len(found.ahead) <= MOST_AHEAD else None


def _stocks(tx: Transaction) -> Select[Any]:
    stock = StockSource(keeps_usage=tx.database.keeps_usage)
    amounts = (_INV.total, _INV.reserved, _INV.min_unit, _INV.max_unit, _INV.step_size, _INV.allocation_ratio)
    return (
        select(_INV.resource_provider_id, _INV.resource_class_id, *amounts, stock.used)
        .select_from(stock.rows)
        .order_by(_INV.resource_class_id)
    )


def _narrowed(
    query: Select[Any], provider: ColumnElement[int], conditions: Sequence[ColumnElement[bool]]
) -> Select[Any]:
    """Narrow a query to the providers that meet the conditions; without any, to nothing."""
    if not conditions:
        return query
    return query.where(provider.in_(select(RP.id).where(*conditions)))
