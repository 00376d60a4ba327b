"""Inventories of providers by resource class. Callers lock the provider's row before they write."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, exists, func, select, update

from placement.domain.inventory import Inventory
from placement.errors import ProviderNotFound
from placement.store.connection.database import Transaction
from placement.store.connection.statements import PreparedStatement, row_insert
from placement.store.tables import allocations, drained_inventories, inventories, resource_classes, resource_providers

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

_INSERT = row_insert(inventories, INV.resource_provider_id, INV.resource_class_id, *_AMOUNTS)
_UPDATE = (
    update(inventories)
    .where(_OF_PROVIDER, _OF_CLASS)
    .values({column: bindparam(f"new_{column.name}") for column in _AMOUNTS})
)
_DRAINED = drained_inventories.c
_IN_TREE = INV.resource_provider_id.in_(bindparam("provider_ids", expanding=True))
_IS_OPEN = INV.reserved < INV.total
_STOCK_OF_UUID = inventories.join(resource_providers, INV.resource_provider_id == resource_providers.c.id)
_OPEN_AT = PreparedStatement(select(INV.resource_provider_id).where(_IN_TREE, _IS_OPEN).distinct())
_FORGET_OPEN = PreparedStatement(
    delete(drained_inventories).where(
        exists()
        .select_from(_STOCK_OF_UUID)
        .where(_IN_TREE, _IS_OPEN, resource_providers.c.uuid == _DRAINED.provider_uuid)
        .where(INV.resource_class_id == _DRAINED.resource_class_id)
    )
)
_SET_ASIDE = PreparedStatement(
    drained_inventories.insert().from_select(
        [_DRAINED.provider_uuid, _DRAINED.resource_class_id, _DRAINED.reserved],
        select(resource_providers.c.uuid, INV.resource_class_id, INV.reserved)
        .select_from(_STOCK_OF_UUID)
        .where(_IN_TREE, _IS_OPEN),
    )
)
_RESERVE = PreparedStatement(update(inventories).where(_IN_TREE, _IS_OPEN).values(reserved=INV.total))
_RESERVED_BEFORE = PreparedStatement(
    select(INV.resource_provider_id, INV.resource_class_id, _DRAINED.reserved)
    .select_from(_STOCK_OF_UUID.join(drained_inventories, resource_providers.c.uuid == _DRAINED.provider_uuid))
    .where(_IN_TREE, INV.resource_class_id == _DRAINED.resource_class_id, INV.reserved == INV.total)
)
_UNRESERVE = update(inventories).where(_OF_PROVIDER, _OF_CLASS).values(reserved=bindparam("reserved_before"))
_FORGET = PreparedStatement(
    delete(drained_inventories).where(
        _DRAINED.provider_uuid.in_(
            select(resource_providers.c.uuid).where(
                resource_providers.c.id.in_(bindparam("provider_ids", expanding=True))
            )
        )
    )
)
_DELETE = PreparedStatement(
    delete(inventories).where(_OF_PROVIDER, INV.resource_class_id.in_(bindparam("class_ids", expanding=True)))
)


@dataclass(frozen=True, slots=True)
class ProviderInventories:
    """All inventories of a provider by class name, and when each was last changed (naive UTC)."""

    generation: int
    inventories: Mapping[str, Inventory]
    modified: Mapping[str, datetime | None]


def stock(tx: Transaction, uuid: str) -> ProviderInventories:
    """Return the inventories of the provider with this uuid; ProviderNotFound if there is none."""
    rows = tx.rows(_STOCK, {"uuid": uuid})
    if not rows:
        raise ProviderNotFound(uuid)
    return ProviderInventories(
        generation=rows[0][0],
        inventories={row[1]: Inventory(*row[3:]) for row in rows if row[1] is not None},
        modified={row[1]: row[2] for row in rows if row[1] is not None},
    )


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
        tx.write_rows(_INSERT, rows)


def _fields(inventory: Inventory) -> dict[str, Any]:
    # Not asdict(), which makes needless copies: they would take a fortieth of the time to register a provider.
    return {column.name: getattr(inventory, column.name) for column in _AMOUNTS}


def update_inventories(tx: Transaction, provider_id: int, changed: Mapping[int, Inventory]) -> None:
    """Update inventories, by class id; the provider must have all of these classes."""
    if changed:
        rows = [
            {"provider_id": provider_id, "class_id": class_id}
            | {f"new_{field}": value for field, value in _fields(inventory).items()}
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
    target: Mapping[int, Inventory],
    *,
    present: Mapping[int, Inventory] | None = None,
) -> None:
    """Make these exactly the inventories of a provider, by class id, without touching unchanged rows.

    ``present`` are the current ones, if the caller has read them. No class that is dropped may be allocated.
    """
    if present is None:
        present = inventories_by_class(tx, provider_id)
    delete_inventories(tx, provider_id, present.keys() - target.keys())
    insert_inventories(tx, provider_id, {id_: target[id_] for id_ in target.keys() - present.keys()})
    kept = target.keys() & present.keys()
    update_inventories(tx, provider_id, {id_: target[id_] for id_ in kept if target[id_] != present[id_]})


def reserve_all(tx: Transaction, provider_ids: Collection[int]) -> list[int]:
    """Reserve all that providers have, and remember what was reserved before; return the ids of those that changed."""
    of_tree = {"provider_ids": sorted(provider_ids)}
    changed = [provider_id for (provider_id,) in tx.tuples(_OPEN_AT, of_tree)]
    for statement in (_FORGET_OPEN, _SET_ASIDE, _RESERVE):
        tx.change(statement, of_tree)
    return changed


def unreserve(tx: Transaction, provider_ids: Collection[int]) -> list[int]:
    """Reserve again what was reserved before ``reserve_all``, unless somebody changed it since.

    Returns the ids of those that changed.
    """
    drained = tx.tuples(_RESERVED_BEFORE, {"provider_ids": sorted(provider_ids)})
    if drained:
        # MariaDB's triggers forbid an update that reads providers.
        columns = ("provider_id", "class_id", "reserved_before")
        tx.execute(_UNRESERVE, [dict(zip(columns, row, strict=True)) for row in drained])
    forget_reserved(tx, provider_ids)
    return sorted({provider_id for provider_id, _class_id, _reserved in drained})


def forget_reserved(tx: Transaction, provider_ids: Collection[int]) -> None:
    """Forget what was reserved before ``reserve_all``."""
    tx.change(_FORGET, {"provider_ids": sorted(provider_ids)})
