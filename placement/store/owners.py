"""Rows of projects, users and consumer_types: the names that consumers refer to, created on first use."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

from sqlalchemy import Column, Table, bindparam, literal_column, select, union_all

from placement.store.connection.dialects import insert_unless_exists
from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.statements import chunks
from placement.store.connection.unit_of_work import Transaction
from placement.store.tables import consumer_types, projects, users

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
    """Return the ids of names, creating missing ones.

    Existing rows are neither written nor locked, so claims of one project do not wait for each other. A transaction
    that creates a row blocks others that want the same one. Call this before taking any lock: then the blocked ones
    hold no locks that this transaction could want, and no deadlock arises.
    """
    wanted = [sorted(set(names)) for names in (projects, users, types)]
    ids_of_kinds = _found(tx, wanted)
    if _insert_missing(tx, wanted, ids_of_kinds):
        ids_of_kinds = _found(tx, wanted)
    return OwnerIds(
        *(_complete(tx, column, names, ids) for column, names, ids in zip(_COLUMNS, wanted, ids_of_kinds, strict=True))
    )


def _found(tx: Transaction, wanted: list[list[str]]) -> list[Ids]:
    ids_of_kinds: list[Ids] = [{} for _ in wanted]
    for chunk in zip_longest(*map(chunks, wanted), fillvalue=[]):
        for kind, name, id_ in tx.tuples(_BY_NAME, {f"names{kind}": names for kind, names in enumerate(chunk)}):
            ids_of_kinds[kind][name] = id_
    return ids_of_kinds


def _insert_missing(tx: Transaction, wanted: list[list[str]], ids_of_kinds: list[Ids]) -> bool:
    inserted = False
    for column, names, ids in zip(_COLUMNS, wanted, ids_of_kinds, strict=True):
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
