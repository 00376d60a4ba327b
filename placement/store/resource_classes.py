"""Rows of resource_classes."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import os_resource_classes
from sqlalchemy import Select, case, delete, exists, func, select, update

from placement.domain.names import is_custom
from placement.errors import NotFound
from placement.store.connection.database import Transaction
from placement.store.connection.statements import KeyedStatement, insert_unless_exists
from placement.store.tables import inventories, resource_classes

FIRST_CUSTOM_ID = 10000
"""Custom classes are numbered from here, as in the reference, which leaves the low ids to future standard classes."""

_RC = resource_classes.c
_STANDARD_FIRST = case((_RC.name.in_(os_resource_classes.STANDARDS), 0), else_=1)
_ALL = select(_RC.id, _RC.name, func.coalesce(_RC.updated_at, _RC.created_at))
_LOCK = KeyedStatement(select(_RC.name, _RC.id).order_by(_RC.id).with_for_update(read=True), _RC.name)


@dataclass(frozen=True, slots=True)
class ResourceClass:
    """A resource class; ``modified`` is naive UTC, or None if it was not recorded."""

    id: int
    name: str
    modified: datetime | None


def _classes_in(tx: Transaction, query: Select[Any]) -> list[ResourceClass]:
    return [ResourceClass(*row) for row in tx.execute(query)]


def all_classes(tx: Transaction) -> list[ResourceClass]:
    """Return all resource classes, standard ones first, each kind in the order of ids."""
    return _classes_in(tx, _ALL.order_by(_STANDARD_FIRST, _RC.id))


def class_named(tx: Transaction, name: str) -> ResourceClass | None:
    """Return the class with this name, or None."""
    return next(iter(_classes_in(tx, _ALL.where(_RC.name == name))), None)


def required_class(tx: Transaction, name: str, *, locked: bool = False) -> ResourceClass:
    """Return the class with this name; NotFound if there is none.

    Once it is ``locked``, those that give it to a provider have ended, and others wait.
    """
    query = _ALL.where(_RC.name == name)
    for resource_class in _classes_in(tx, query.with_for_update() if locked else query):
        return resource_class
    raise NotFound(f"No such resource class {name}.")


def claimed_class_ids(tx: Transaction, names: Collection[str]) -> dict[str, int]:
    """Return the ids of those classes that exist, and prevent their deletion during this transaction.

    Inventories have no foreign key: without the lock a class could be deleted while it gets its first inventory.
    """
    ids = tx.names.classes.ids(tx.connection, [name for name in names if not is_custom(name)])
    return ids | dict(_LOCK.tuples(tx.connection, filter(is_custom, names)))


def insert_class(tx: Transaction, name: str) -> bool:
    """Insert a class; return False if the name is taken."""
    highest = select(func.max(_RC.id) + 1).scalar_subquery()
    id_ = tx.execute(select(func.coalesce(highest, 0))).scalar_one()
    return insert_unless_exists(tx, resource_classes, {"id": max(id_, FIRST_CUSTOM_ID), "name": name}, key="name")


def rename_class(tx: Transaction, id_: int, name: str) -> None:
    """Rename a class."""
    tx.execute(update(resource_classes).where(_RC.id == id_).values(name=name))


def is_in_use(tx: Transaction, id_: int) -> bool:
    """Tell whether any provider has inventory of a class."""
    return bool(tx.execute(select(exists().where(inventories.c.resource_class_id == id_))).scalar())


def delete_class(tx: Transaction, id_: int) -> None:
    """Delete a class."""
    tx.execute(delete(resource_classes).where(_RC.id == id_))
