"""Translate names of resource classes and traits into ids and back.

Standard names never change their ids, so these are cached. Any server on this database may delete and recreate a custom
name, so those are looked up in each transaction: once in a snapshot, each time in one that writes. Of lock classes it
matters whether any provider has inventory of them, which a statement that runs anyway tells along.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import os_resource_classes
import os_traits
from sqlalchemy import ColumnElement, Connection, Table, bindparam, exists, select

from placement.domain.tree import PlaceLock
from placement.store.connection.statements import KeyedStatement
from placement.store.tables import inventories, resource_classes
from placement.store.tables import traits as traits_table

LOG = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")


class NameTable:
    """A table of names, with a cache of the standard ones."""

    def __init__(self, table: Table, standard: Collection[str]) -> None:
        self._table = table
        self._standard = frozenset(standard)
        self._id_by_name: dict[str, int] = {}
        self._name_by_id: dict[int, str] = {}
        self._has_warned = False
        pairs = select(table.c.name, table.c.id)
        self._by_name = KeyedStatement(pairs, table.c.name)
        self._by_id = KeyedStatement(pairs, table.c.id)

    def ids(self, connection: Connection, names: Iterable[str]) -> dict[str, int]:
        """Return the ids of those names that exist."""
        sought = set(names)
        id_of = {name: self._id_by_name[name] for name in sought & self._id_by_name.keys()}
        return id_of | dict(self._keep(self._by_name.tuples(connection, sought - id_of.keys())))

    def names(self, connection: Connection, ids: Iterable[int]) -> dict[int, str]:
        """Return the name of each id, also of those that rows refer to although they do not exist."""
        sought = set(ids)
        name_of = {id_: self._name_by_id[id_] for id_ in sought & self._name_by_id.keys()}
        rows = self._keep(self._by_id.tuples(connection, sought - name_of.keys()))
        name_of.update((id_, name) for name, id_ in rows)
        if gone := sought - name_of.keys():
            name_of.update(self._stand_ins(gone))
        return name_of

    def _stand_ins(self, gone: Collection[int]) -> dict[int, str]:
        """Return names for ids that no row has; no client can create such names."""
        if not self._has_warned:
            self._has_warned = True
            LOG.warning("There are rows with %s that do not exist, such as id %s.", self._table.name, min(gone))
        return {id_: f"GONE_{id_}".replace("-", "_") for id_ in gone}

    def _keep(self, rows: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
        pairs = list(rows)
        for name, id_ in pairs:
            if name in self._standard:
                self._id_by_name[name] = id_
                self._name_by_id[id_] = name
        return pairs


class _TableInSnapshot(NameTable):
    """A table as one snapshot shows it, each name and id looked up once, even if it does not exist."""

    def __init__(self, table: NameTable) -> None:
        self._looked_up_in = table
        self._ids: dict[str, int | None] = {}
        self._names: dict[int, str | None] = {}

    def ids(self, connection: Connection, names: Iterable[str]) -> dict[str, int]:
        """Return the ids of those names that exist."""
        return _from_memo(self._ids, {*names}, partial(self._looked_up_in.ids, connection))

    def names(self, connection: Connection, ids: Iterable[int]) -> dict[int, str]:
        """Return the name of each id."""
        return _from_memo(self._names, {*ids}, partial(self._looked_up_in.names, connection))


def _from_memo(memo: dict[K, V | None], sought: set[K], look_up: Callable[[set[K]], dict[K, V]]) -> dict[K, V]:
    """Return the values of those keys that have one; look up those not in the memo, and add them."""
    if unknown := sought - memo.keys():
        memo.update(dict.fromkeys(unknown) | look_up(unknown))
    return {key: value for key in sought if (value := memo[key]) is not None}


class Names:
    """A database's tables of names: the resource classes and the traits."""

    def __init__(self, classes: NameTable | None = None, traits: NameTable | None = None) -> None:
        self.classes = classes or NameTable(resource_classes, os_resource_classes.STANDARDS)
        self.traits = traits or NameTable(traits_table, os_traits.get_traits())

    def in_snapshot(self) -> "Names":
        """Return the same tables for one snapshot, where nothing is looked up twice."""
        return Names(_TableInSnapshot(self.classes), _TableInSnapshot(self.traits))


UsedLocks = Mapping[int, str | None]
"""Maps the ids of lock classes that have inventory to the trait of their level, as in PlaceLock."""


def lock_columns(number: int) -> list[ColumnElement[Any]]:
    """Return a column for each of ``number`` classes: its id, or NULL if no provider has inventory of it.

    They are added to a statement that runs anyway. ``lock_values`` binds the names of the classes.
    """
    return [
        select(resource_classes.c.id)
        .where(
            resource_classes.c.name == bindparam(f"lock_{index}"),
            exists().where(inventories.c.resource_class_id == resource_classes.c.id),
        )
        .scalar_subquery()
        for index in range(number)
    ]


def lock_values(locks: Sequence[PlaceLock]) -> dict[str, str]:
    """Return the parameters of ``lock_columns``."""
    return {f"lock_{index}": lock.resource_class for index, lock in enumerate(locks)}


def used_locks(locks: Sequence[PlaceLock], columns: Sequence[int | None]) -> UsedLocks:
    """Return the locks in use, given the values of ``lock_columns``."""
    return {id_: lock.trait for lock, id_ in zip(locks, columns, strict=True) if id_ is not None}


def locks_known(names: Names, connection: Connection, locks: Sequence[PlaceLock]) -> UsedLocks:
    """Return the locks whose classes exist, whether or not there is inventory of them."""
    ids = names.classes.ids(connection, {lock.resource_class for lock in locks}) if locks else {}
    return {ids[lock.resource_class]: lock.trait for lock in locks if lock.resource_class in ids}
