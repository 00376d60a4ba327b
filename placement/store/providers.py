"""Resource providers: find, lock and change single rows, and move trees. Lists have a module of their own.

Whoever changes what a provider has or supplies locks its row first and increments its generation in the same
transaction; several rows are locked in the order of their ids.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, bindparam, delete, exists, func, insert, or_, select, update

from placement.domain.inventory import Provider
from placement.errors import ConcurrentUpdate, ProviderNotFound
from placement.store.connection.database import Transaction
from placement.store.connection.statements import KeyedStatement, PreparedStatement
from placement.store.tables import (
    allocations,
    inventories,
    provider_usages,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
)

RP = resource_providers.c

ROOT = resource_providers.alias("root")
IN_TREES = resource_providers.join(ROOT, RP.root_provider_id == ROOT.c.id)
"""Providers with the roots of their trees. Whatever else a provider is joined with, these are its columns."""

PARENT = resource_providers.alias("parent")
WITH_PARENTS = IN_TREES.outerjoin(PARENT, RP.parent_provider_id == PARENT.c.id)

NAME, ROOT_NAME = func.coalesce(RP.name, RP.uuid), func.coalesce(ROOT.c.name, ROOT.c.uuid)
CHANGED_AT = func.coalesce(RP.updated_at, RP.created_at)
_PROVIDER = select(
    *(RP.id, RP.uuid, RP.name, RP.generation, RP.root_provider_id, ROOT.c.uuid),
    *(RP.parent_provider_id, PARENT.c.uuid, CHANGED_AT),
).select_from(WITH_PARENTS)
_BY_UUID = PreparedStatement(_PROVIDER.where(RP.uuid == bindparam("uuid")))
_IDS_BY_UUIDS = KeyedStatement(select(RP.uuid, RP.id).where(RP.root_provider_id.is_not(None)), RP.uuid)
_BY_UUIDS = KeyedStatement(_PROVIDER, RP.uuid)

_LOCK_BY_UUID = PreparedStatement(
    select(RP.id, RP.uuid, RP.generation).where(RP.uuid == bindparam("uuid")).with_for_update()
)
_LOCK_BY_UUIDS = KeyedStatement(select(RP.id, RP.uuid, RP.generation).order_by(RP.id).with_for_update(), RP.uuid)
_LOCK_BY_IDS = KeyedStatement(select(RP.id, RP.generation).order_by(RP.id).with_for_update(), RP.id)

_OF_PROVIDER = RP.id == bindparam("provider_id")
# A client may send any integer, so the parameter's type is wider than the column's.
_IS_EXPECTED = RP.generation == bindparam("expected", type_=BigInteger)
_ADVANCE = PreparedStatement(
    update(resource_providers).where(_OF_PROVIDER, _IS_EXPECTED).values(generation=RP.generation + 1)
)
_ADVANCE_BY_UUID = PreparedStatement(
    update(resource_providers)
    .where(RP.uuid == bindparam("uuid_"), _IS_EXPECTED)
    .values(generation=RP.generation + 1)
    .returning(RP.id, RP.uuid, RP.generation)
)

_NAME_OR_UUID = PreparedStatement(
    select(RP.uuid, RP.name).where(or_(RP.uuid == bindparam("uuid"), RP.name == bindparam("name")))
)
_NAME_IS_TAKEN = PreparedStatement(
    select(exists().where(RP.name == bindparam("name"), RP.id != bindparam("provider_id")))
)
_HAS_CHILDREN = PreparedStatement(select(exists().where(RP.parent_provider_id == bindparam("provider_id"))))
_HAS_ALLOCATIONS = PreparedStatement(
    select(exists().where(allocations.c.resource_provider_id == bindparam("provider_id")))
)

_INSERT = insert(resource_providers)
_COLUMNS = (RP.uuid, RP.name, RP.generation, RP.parent_provider_id, RP.root_provider_id)
_INSERT_RETURNING = PreparedStatement(
    _INSERT.values({column: bindparam(column.name) for column in _COLUMNS}).returning(RP.id)
)
# PostgreSQL draws the id first, so that a root, which refers to itself, is written only once.
_DRAWN = select(func.nextval(func.pg_get_serial_sequence(resource_providers.name, RP.id.name)).label("id")).cte("drawn")
_INSERT_ROOT = PreparedStatement(
    _INSERT.from_select(
        [RP.id, RP.root_provider_id, RP.uuid, RP.name, RP.generation],
        select(_DRAWN.c.id, _DRAWN.c.id, *(bindparam(column.name, type_=column.type) for column in _COLUMNS[:3])),
    ).returning(RP.id)
)
_RENAME = PreparedStatement(update(resource_providers).where(_OF_PROVIDER).values(name=bindparam("new_name")))
_MAKE_ROOT = PreparedStatement(update(resource_providers).where(_OF_PROVIDER).values(root_provider_id=RP.id))
_OF_PROVIDERS = RP.id.in_(bindparam("provider_ids", expanding=True))
_LEAVE_TREE = PreparedStatement(update(resource_providers).where(_OF_PROVIDERS).values(root_provider_id=None))
_DELETE = PreparedStatement(delete(resource_providers).where(_OF_PROVIDERS))
_DELETE_WHAT_THEY_HAVE = tuple(
    PreparedStatement(delete(table).where(table.c.resource_provider_id.in_(bindparam("provider_ids", expanding=True))))
    for table in (inventories, resource_provider_aggregates, resource_provider_traits, provider_usages)
)

_SET_ROOT = update(resource_providers).where(_OF_PROVIDERS).values(root_provider_id=bindparam("new_root"))
_SET_PARENT = update(resource_providers).where(_OF_PROVIDER).values(parent_provider_id=bindparam("new_parent"))


class LockedProvider(NamedTuple):
    """A provider whose row this transaction has locked."""

    id: int
    uuid: str
    generation: int


def provider(tx: Transaction, uuid: str) -> Provider | None:
    """Return the provider with this uuid, or None."""
    rows = tx.rows(_BY_UUID, {"uuid": uuid})
    return Provider(*rows[0]) if rows else None


def required_provider(tx: Transaction, uuid: str) -> Provider:
    """Return the provider with this uuid; ProviderNotFound if there is none."""
    if (provider_ := provider(tx, uuid)) is None:
        raise ProviderNotFound(uuid)
    return provider_


def providers_by_uuid(tx: Transaction, uuids: Collection[str]) -> dict[str, Provider]:
    """Return those of the providers that exist, by uuid."""
    return {row.uuid: row for row in (Provider(*columns) for columns in _BY_UUIDS.rows(tx.connection, uuids))}


def ids_by_uuid(tx: Transaction, uuids: Collection[str]) -> dict[str, int]:
    """Return the ids of those of the providers that exist, by uuid; one without a root is in no tree, and left out."""
    return dict(_IDS_BY_UUIDS.tuples(tx.connection, uuids))


def locked_provider(tx: Transaction, uuid: str, *, purpose: str = "") -> LockedProvider:
    """Lock the provider with this uuid against other writers until the end of the transaction.

    ProviderNotFound, whose message ends with ``purpose``, if there is none.
    """
    rows = tx.tuples(_LOCK_BY_UUID, {"uuid": uuid})
    if not rows:
        raise ProviderNotFound(uuid, purpose=purpose)
    return LockedProvider(*rows[0])


def locked_provider_at(tx: Transaction, uuid: str, *, expected: int) -> LockedProvider:
    """Lock a provider at a generation; ProviderNotFound if there is none, ConcurrentUpdate if it is at another one."""
    provider = locked_provider(tx, uuid)
    if provider.generation != expected:
        raise ConcurrentUpdate(
            "Resource provider's generation already changed. Please update the generation and try again."
        )
    return provider


def advance_provider(tx: Transaction, uuid: str, *, expected: int) -> LockedProvider:
    """Lock a provider at a generation, increment that, and return the provider with the new one. Raises as above."""
    if tx.dialect == "postgresql" and (rows := tx.tuples(_ADVANCE_BY_UUID, {"uuid_": uuid, "expected": expected})):
        return LockedProvider(*rows[0])
    provider = locked_provider(tx, uuid)
    advance_generation(tx, provider.id, expected=expected)
    return provider._replace(generation=expected + 1)


def lock_providers(tx: Transaction, ids: Collection[int]) -> dict[int, int]:
    """Lock providers in the order of their ids and return the generations of those that exist."""
    return dict(_LOCK_BY_IDS.tuples(tx.connection, ids))


def lock_providers_by_uuid(tx: Transaction, uuids: Collection[str]) -> dict[str, LockedProvider]:
    """Lock those of the providers that exist, in the order of their ids, and return them by uuid."""
    locked = [LockedProvider(*row) for row in _LOCK_BY_UUIDS.tuples(tx.connection, uuids)]
    return {provider.uuid: provider for provider in locked}


def advance_generation(tx: Transaction, provider_id: int, *, expected: int) -> None:
    """Increment a provider's generation; ConcurrentUpdate if it is not the ``expected`` one."""
    if tx.change(_ADVANCE, {"provider_id": provider_id, "expected": expected}) != 1:
        raise ConcurrentUpdate("resource provider generation conflict")


def same_name_or_uuid(tx: Transaction, *, name: str, uuid: str) -> list[tuple[str, str]]:
    """Return uuid and name of the providers with this name or this uuid."""
    return tx.tuples(_NAME_OR_UUID, {"name": name, "uuid": uuid})


def name_is_taken(tx: Transaction, name: str, *, except_for: int) -> bool:
    """Tell whether another provider has this name."""
    return bool(tx.tuples(_NAME_IS_TAKEN, {"name": name, "provider_id": except_for})[0][0])


def insert_provider(tx: Transaction, *, uuid: str, name: str, parent: Provider | None) -> Provider:
    """Insert a provider, below ``parent`` or as the root of a new tree, and return it."""
    row = {"uuid": uuid, "name": name, "generation": 0}
    if parent is None:
        id_ = _inserted_root(tx, row)
        return Provider(id_, uuid, name, 0, id_, uuid)
    id_ = _inserted_id(tx, {**row, "parent_provider_id": parent.id, "root_provider_id": parent.root_id})
    return Provider(id_, uuid, name, 0, parent.root_id, parent.root_uuid, parent.id, parent.uuid)


def _inserted_root(tx: Transaction, row: dict[str, Any]) -> int:
    if tx.dialect == "postgresql":
        return int(tx.tuples(_INSERT_ROOT, row)[0][0])
    id_ = _inserted_id(tx, row)
    tx.change(_MAKE_ROOT, {"provider_id": id_})
    return id_


def _inserted_id(tx: Transaction, row: dict[str, Any]) -> int:
    if tx.dialect == "postgresql":
        return int(tx.tuples(_INSERT_RETURNING, row)[0][0])
    key = tx.execute(_INSERT, row).inserted_primary_key
    assert key is not None
    return int(key[0])


def rename_provider(tx: Transaction, provider_id: int, name: str) -> None:
    """Rename a provider."""
    tx.change(_RENAME, {"provider_id": provider_id, "new_name": name})


def has_children(tx: Transaction, provider_id: int) -> bool:
    """Tell whether a provider has children."""
    return bool(tx.tuples(_HAS_CHILDREN, {"provider_id": provider_id})[0][0])


def has_allocations(tx: Transaction, provider_id: int) -> bool:
    """Tell whether anything is allocated from a provider."""
    return bool(tx.tuples(_HAS_ALLOCATIONS, {"provider_id": provider_id})[0][0])


def delete_providers(tx: Transaction, *levels: Collection[int]) -> None:
    """Delete providers by id, each level before that of their parents, with all that they have and kept usage."""
    everybody = {"provider_ids": [provider_id for level in levels for provider_id in level]}
    # MariaDB refuses to delete a row that references itself.
    for statement in (*_DELETE_WHAT_THEY_HAVE, _LEAVE_TREE):
        tx.change(statement, everybody)
    for level in levels:
        tx.change(_DELETE, {"provider_ids": [*level]})


def providers_in_locked_trees(tx: Transaction, uuids: Collection[str]) -> dict[str, Provider]:
    """Lock the roots of the trees of some providers, then return those of the providers that exist, by uuid.

    While it waits for a lock, another transaction may move a provider to a tree that then has to be locked as well.
    """
    providers = providers_by_uuid(tx, uuids)
    while True:
        roots = {provider.root_id for provider in providers.values()}
        lock_providers(tx, roots)
        providers = providers_by_uuid(tx, uuids)
        if roots >= {provider.root_id for provider in providers.values()}:
            return providers


def move_providers(tx: Transaction, ids: Collection[int], *, to_root: int) -> None:
    """Assign providers to the tree of another root."""
    tx.execute(_SET_ROOT, {"provider_ids": sorted(ids), "new_root": to_root})


def set_parent(tx: Transaction, provider_id: int, parent_id: int | None) -> None:
    """Put a provider directly below another, or below none."""
    tx.execute(_SET_PARENT, {"provider_id": provider_id, "new_parent": parent_id})
