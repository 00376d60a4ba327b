"""Inventories of providers by resource class. Callers lock the provider's row before they write."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, func, select, update

from placement.domain.inventory import Inventory
from placement.store.connection.prepared import PreparedInsert, PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.providers import LockedProvider
from placement.store.tables import (
    allocations,
    drained_inventories,
    inventories,
    resource_classes,
    resource_providers,
)

INV = inventories.c

_AMOUNTS = (INV.total, INV.reserved, INV.min_unit, INV.max_unit, INV.step_size, INV.allocation_ratio)
_NAMES = resource_classes.c.name
_OF_PROVIDER = INV.resource_provider_id == bindparam("provider_id")
_OF_CLASS = INV.resource_class_id == bindparam("class_id")

# One statement tells an unknown provider (no row) from one without inventory (one row of nulls).
_STOCK = PreparedStatement(
    select(resource_providers.c.generation, _NAMES, func.coalesce(INV.updated_at, INV.created_at), *_AMOUNTS)
    .select_from(
        resource_providers.outerjoin(inventories, INV.resource_provider_id == resource_providers.c.id).outerjoin(
            resource_classes, resource_classes.c.id == INV.resource_class_id
        )
    )
    .where(resource_providers.c.uuid == bindparam("uuid"))
    .order_by(INV.resource_class_id)
)
_BY_NAME = PreparedStatement(
    select(_NAMES, *_AMOUNTS)
    .select_from(inventories.join(resource_classes, resource_classes.c.id == INV.resource_class_id))
    .where(_OF_PROVIDER)
    .order_by(INV.resource_class_id)
)
_BY_ID = PreparedStatement(select(INV.resource_class_id, *_AMOUNTS).where(_OF_PROVIDER))
_CLASS_IDS = PreparedStatement(select(INV.resource_class_id).where(_OF_PROVIDER))
_IN_USE = PreparedStatement(
    select(_NAMES)
    .where(
        resource_classes.c.id.in_(
            select(allocations.c.resource_class_id).where(
                allocations.c.resource_provider_id == bindparam("provider_id"),
                allocations.c.resource_class_id.in_(bindparam("class_ids", expanding=True)),
            )
        )
    )
    .order_by(resource_classes.c.id)
)

_INSERT = PreparedInsert(inventories, INV.resource_provider_id, INV.resource_class_id, *_AMOUNTS)
_UPDATE = (
    update(inventories)
    .where(_OF_PROVIDER, _OF_CLASS)
    .values({column: bindparam(f"new_{column.name}") for column in _AMOUNTS})
)
_SET_ASIDE = PreparedInsert(
    drained_inventories,
    drained_inventories.c.provider_uuid,
    drained_inventories.c.resource_class_id,
    drained_inventories.c.reserved,
)
_OF_DRAINED = drained_inventories.c.provider_uuid == bindparam("uuid")
_RESERVED_BEFORE = PreparedStatement(
    select(drained_inventories.c.resource_class_id, drained_inventories.c.reserved).where(_OF_DRAINED)
)
_FORGET = PreparedStatement(delete(drained_inventories).where(_OF_DRAINED))
_DELETE = PreparedStatement(
    delete(inventories).where(_OF_PROVIDER, INV.resource_class_id.in_(bindparam("class_ids", expanding=True)))
)


@dataclass(frozen=True, slots=True)
class ProviderInventories:
    """All inventories of a provider by class name, and when each was last changed (naive UTC)."""

    generation: int
    inventories: Mapping[str, Inventory]
    modified: Mapping[str, datetime | None]


def stock(tx: Transaction, uuid: str) -> ProviderInventories | None:
    """Return the inventories of the provider with this uuid, or None if there is no such provider."""
    rows = tx.rows(_STOCK, {"uuid": uuid})
    if not rows:
        return None
    return ProviderInventories(
        generation=rows[0][0],
        inventories={row[1]: Inventory(*row[3:]) for row in rows if row[1] is not None},
        modified={row[1]: row[2] for row in rows if row[1] is not None},
    )


def inventories_of(tx: Transaction, provider_id: int) -> dict[str, Inventory]:
    """Return a provider's inventories by class name, in the order of the class ids."""
    rows = tx.tuples(_BY_NAME, {"provider_id": provider_id})
    return {name: Inventory(*amounts) for name, *amounts in rows}


def class_ids_of(tx: Transaction, provider_id: int) -> set[int]:
    """Return the ids of the classes that a provider has inventory of."""
    return {class_id for (class_id,) in tx.tuples(_CLASS_IDS, {"provider_id": provider_id})}


def classes_in_use(tx: Transaction, provider_id: int, class_ids: Collection[int]) -> list[str]:
    """Return the names of those classes that are allocated from a provider, in the order of the class ids."""
    if not class_ids:
        return []
    return [name for (name,) in tx.tuples(_IN_USE, {"provider_id": provider_id, "class_ids": sorted(class_ids)})]


def insert_inventories(tx: Transaction, provider_id: int, added: Mapping[int, Inventory]) -> None:
    """Insert inventories, by class id; the provider must not have any of these classes."""
    if added:
        rows = [
            {"resource_provider_id": provider_id, "resource_class_id": class_id, **_fields(inventory)}
            for class_id, inventory in added.items()
        ]
        tx.insert(_INSERT, rows)


def _fields(inventory: Inventory) -> dict[str, Any]:
    # Not asdict(), which makes needless copies: they would take a fortieth of the time to register a provider.
    return {column.name: getattr(inventory, column.name) for column in _AMOUNTS}


def update_inventories(tx: Transaction, provider_id: int, changed: Mapping[int, Inventory]) -> None:
    """Update inventories, by class id; the provider must have all of these classes."""
    if changed:
        rows = [
            {
                "provider_id": provider_id,
                "class_id": class_id,
                **{f"new_{field}": value for field, value in _fields(inventory).items()},
            }
            for class_id, inventory in changed.items()
        ]
        tx.execute(_UPDATE, rows)


def delete_inventories(tx: Transaction, provider_id: int, class_ids: Collection[int]) -> int:
    """Delete inventories and return how many there were. None of the classes may be allocated."""
    if not class_ids:
        return 0
    return tx.change(_DELETE, {"provider_id": provider_id, "class_ids": sorted(class_ids)})


def inventories_by_class(tx: Transaction, provider_id: int) -> dict[int, Inventory]:
    """Return a provider's inventories by class id."""
    return {class_id: Inventory(*amounts) for class_id, *amounts in tx.tuples(_BY_ID, {"provider_id": provider_id})}


def replace_inventories(
    tx: Transaction,
    provider_id: int,
    wanted: Mapping[int, Inventory],
    *,
    present: Mapping[int, Inventory] | None = None,
) -> None:
    """Make these exactly the inventories of a provider, by class id, without touching unchanged rows.

    ``present`` spares a query if the caller has read the current inventories. No class that is dropped may be allocated
    (``classes_in_use``).
    """
    if present is None:
        present = inventories_by_class(tx, provider_id)
    delete_inventories(tx, provider_id, present.keys() - wanted.keys())
    insert_inventories(tx, provider_id, {id_: wanted[id_] for id_ in wanted.keys() - present.keys()})
    kept = wanted.keys() & present.keys()
    update_inventories(tx, provider_id, {id_: wanted[id_] for id_ in kept if wanted[id_] != present[id_]})


def reserve_all(tx: Transaction, provider: LockedProvider) -> bool:
    """Reserve all that a provider has, and remember what was reserved before; tell whether anything changed."""
    present = inventories_by_class(tx, provider.id)
    open_stock = {id_: inventory for id_, inventory in present.items() if inventory.capacity > 0}
    if not open_stock:
        return False
    before = {**_reserved_before(tx, provider), **{id_: inventory.reserved for id_, inventory in open_stock.items()}}
    forget_reserved(tx, provider)
    rows = [
        {"provider_uuid": provider.uuid, "resource_class_id": id_, "reserved": reserved}
        for id_, reserved in before.items()
    ]
    tx.insert(_SET_ASIDE, rows)
    update_inventories(tx, provider.id, {id_: replace(has, reserved=has.total) for id_, has in open_stock.items()})
    return True


def unreserve(tx: Transaction, provider: LockedProvider) -> bool:
    """Reserve again what was reserved before ``reserve_all``, unless somebody changed it since; tell about a change."""
    before = _reserved_before(tx, provider)
    if not before:
        return False
    present = inventories_by_class(tx, provider.id)
    drained = {id_: has for id_, has in present.items() if id_ in before and has.reserved == has.total}
    update_inventories(tx, provider.id, {id_: replace(has, reserved=before[id_]) for id_, has in drained.items()})
    forget_reserved(tx, provider)
    return bool(drained)


def forget_reserved(tx: Transaction, provider: LockedProvider) -> None:
    """Forget what was reserved before ``reserve_all``."""
    tx.change(_FORGET, {"uuid": provider.uuid})


def _reserved_before(tx: Transaction, provider: LockedProvider) -> dict[int, int]:
    return dict(tx.tuples(_RESERVED_BEFORE, {"uuid": provider.uuid}))
