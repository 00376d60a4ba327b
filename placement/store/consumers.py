"""Rows of consumers, which exist as long as they have allocations, and of the names that they refer to.

Projects, users and consumer types are created on first use.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from sqlalchemy import Column, Table, bindparam, delete, literal_column, select, union_all, update

from placement.errors import ConcurrentUpdate
from placement.store.connection.database import Transaction
from placement.store.connection.statements import (
    KeyedStatement,
    PreparedStatement,
    chunks,
    insert_unless_exists,
    row_insert,
)
from placement.store.tables import consumer_types, consumers, projects, users

_C = consumers.c

_LOCK = KeyedStatement(
    select(_C.id, _C.uuid, _C.generation, _C.project_id, _C.user_id, _C.consumer_type_id)
    .order_by(_C.uuid)
    .with_for_update(),
    _C.uuid,
)
_GENERATIONS = KeyedStatement(select(_C.uuid, _C.generation), _C.uuid)
_ADVANCE = KeyedStatement(
    update(consumers)
    .where(_C.generation == bindparam("seen"))
    .values(
        generation=_C.generation + 1,
        project_id=bindparam("project"),
        user_id=bindparam("user"),
        consumer_type_id=bindparam("type"),
    ),
    _C.id,
)
_DELETE = KeyedStatement(delete(consumers), _C.id)
_INSERT = row_insert(consumers, _C.uuid, _C.generation, _C.project_id, _C.user_id, _C.consumer_type_id)


@dataclass(frozen=True, slots=True)
class ConsumerOwner:
    """The owner of a consumer and its type, as ids."""

    project_id: int
    user_id: int
    type_id: int | None


@dataclass(frozen=True, slots=True)
class Consumer:
    """A row of consumers."""

    id: int
    uuid: str
    generation: int
    owner: ConsumerOwner


def lock_consumers(tx: Transaction, uuids: Collection[str]) -> dict[str, Consumer]:
    """Lock the existing consumers in the order of their uuids, and with them what they hold; return them by uuid."""
    rows = _LOCK.tuples(tx.connection, uuids)
    return {uuid: Consumer(id_, uuid, generation, ConsumerOwner(*owner)) for id_, uuid, generation, *owner in rows}


def consumer_generations(tx: Transaction, uuids: Collection[str]) -> dict[str, int]:
    """Return the generations of the existing consumers by uuid, without locking."""
    return dict(_GENERATIONS.tuples(tx.connection, uuids))


def insert_consumers(tx: Transaction, owners: dict[str, ConsumerOwner]) -> None:
    """Insert consumers with their first allocations. Of two that insert the same, one fails and runs again."""
    names = ("uuid", "generation", "project_id", "user_id", "consumer_type_id")
    rows = [(uuid, 1, owner.project_id, owner.user_id, owner.type_id) for uuid, owner in sorted(owners.items())]
    tx.write_rows(_INSERT, [dict(zip(names, row, strict=True)) for row in rows])


def advance_consumers(tx: Transaction, changes: Sequence[tuple[Consumer, ConsumerOwner]]) -> None:
    """Set the owners of consumers and increment their generations; ConcurrentUpdate if one is not as it was read."""
    alike: dict[tuple[int, ConsumerOwner], list[int]] = defaultdict(list)
    for consumer, owner in changes:
        alike[consumer.generation, owner].append(consumer.id)
    for (old_generation, owner), ids in alike.items():
        values = {"seen": old_generation, "project": owner.project_id, "user": owner.user_id, "type": owner.type_id}
        if _ADVANCE.change(tx.connection, ids, values) != len(ids):
            raise ConcurrentUpdate


def delete_consumers(tx: Transaction, ids: Collection[int]) -> None:
    """Delete consumers."""
    _DELETE.change(tx.connection, ids)


_COLUMNS: tuple[Column[str], ...] = (projects.c.external_id, users.c.external_id, consumer_types.c.name)
_BY_NAME = PreparedStatement(
    union_all(
        *(
            select(literal_column(str(kind)), column, column.table.c.id).where(
                column.in_(bindparam(f"names{kind}", expanding=True))
            )
            for kind, column in enumerate(_COLUMNS)
        )
    ),
    by_key=True,
)

Ids = dict[str, int]


@dataclass(frozen=True, slots=True)
class OwnerIds:
    """Ids by name."""

    projects: Ids
    users: Ids
    types: Ids


def owner_ids(tx: Transaction, projects: Iterable[str], users: Iterable[str], types: Iterable[str]) -> OwnerIds:
    """Return the ids of names, creating missing ones; existing rows are neither written nor locked.

    Call this before taking any lock: who creates a row blocks others that want the same one, and these must hold none.
    """
    names_of_kinds = [sorted(set(names)) for names in (projects, users, types)]
    ids_of_kinds = _ids_of_kinds(tx, names_of_kinds)
    if _insert_missing(tx, names_of_kinds, ids_of_kinds):
        ids_of_kinds = _ids_of_kinds(tx, names_of_kinds)
    return OwnerIds(
        *(
            _complete(tx, column, names, ids)
            for column, names, ids in zip(_COLUMNS, names_of_kinds, ids_of_kinds, strict=True)
        )
    )


def _ids_of_kinds(tx: Transaction, names_of_kinds: list[list[str]]) -> list[Ids]:
    ids_of_kinds: list[Ids] = [{} for _ in names_of_kinds]
    for chunk in zip_longest(*map(chunks, names_of_kinds), fillvalue=[]):
        for kind, name, id_ in tx.tuples(_BY_NAME, {f"names{kind}": names for kind, names in enumerate(chunk)}):
            ids_of_kinds[kind][name] = id_
    return ids_of_kinds


def _insert_missing(tx: Transaction, names_of_kinds: list[list[str]], ids_of_kinds: list[Ids]) -> bool:
    inserted = False
    for column, names, ids in zip(_COLUMNS, names_of_kinds, ids_of_kinds, strict=True):
        if missing := [{column.name: name} for name in names if name not in ids]:
            assert isinstance(column.table, Table)
            insert_unless_exists(tx, column.table, missing, key=column.name)
            inserted = True
    return inserted


def _complete(tx: Transaction, column: Column[str], names: list[str], ids: Ids) -> Ids:
    """Add names that the database considers equal to others: MariaDB's collations may ignore case."""
    for name in names:
        if name not in ids:
            ids[name] = tx.execute(select(column.table.c.id).where(column == name)).scalar_one()
    return ids
