"""The map of all trees: hosts, what each has of one class now and had earlier, and some projects.

Each function sends one statement, whatever the size of the cloud, or two if a name has to be looked up first.
"""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import BigInteger, cast, func, select

from placement.allocators.natural_order import natural_key
from placement.store.connection.unit_of_work import Transaction
from placement.store.console.stocks import INV
from placement.store.journal.order import J
from placement.store.journal.watched import ALLOCATION
from placement.store.providers import RP
from placement.store.tables import inventories, projects

MAX_CHANGES = 200_000
"""The most journal rows that are added up to look back."""


class MappedHost(NamedTuple):
    """The root of a tree."""

    id: int
    uuid: str
    name: str


def hosts(tx: Transaction) -> list[MappedHost]:
    """Return the roots of all trees, in the natural order of their names."""
    name = func.coalesce(RP.name, RP.uuid)
    rows = tx.tuples(select(RP.id, RP.uuid, name).where(RP.parent_provider_id.is_(None)))
    return [MappedHost(*row) for row in sorted(rows, key=lambda row: (natural_key(row[2]), row[0]))]


def hosts_with(tx: Transaction, beginning: str) -> list[int]:
    """Return the roots whose uuid starts with ``beginning``, at most two."""
    begins = RP.uuid.startswith(beginning.lower(), autoescape=True)
    return [root for (root,) in tx.tuples(select(RP.id).where(RP.parent_provider_id.is_(None), begins).limit(2))]


def held_classes(tx: Transaction) -> list[str]:
    """Return the names of the classes that any provider has, in the order of their ids."""
    rows = tx.tuples(select(INV.resource_class_id).select_from(inventories).distinct())
    ids = sorted([id_ for (id_,) in rows])
    names = tx.names.classes.names(tx.connection, ids)
    return [names[id_] for id_ in ids]


def project_names(tx: Transaction, *, most: int) -> list[str]:
    """Return the ids of some projects, newest first."""
    query = select(projects.c.external_id).order_by(projects.c.id.desc()).limit(most)
    return [name for (name,) in tx.tuples(query)]


def used_since(tx: Transaction, class_name: str, moment: datetime) -> dict[int, int] | None:
    """Return the growth of a class's usage since a moment, by tree; None if there are too many changes.

    The cost grows with the number of changes, up to MAX_CHANGES.
    """
    class_id = tx.names.classes.ids(tx.connection, [class_name]).get(class_name)
    rows = (
        select(J.root_provider_id, J.old_amount, J.new_amount)
        .where(J.time >= moment, J.kind == ALLOCATION, J.resource_class_id == class_id)
        .limit(MAX_CHANGES + 1)
        .subquery("rows")
    )
    grown = func.coalesce(rows.c.new_amount, 0) - func.coalesce(rows.c.old_amount, 0)
    query = select(rows.c.root_provider_id, cast(func.sum(grown), BigInteger), func.count()).group_by(
        rows.c.root_provider_id
    )
    found = tx.tuples(query)
    if sum(count for _root, _grown, count in found) > MAX_CHANGES:
        return None
    return {root: int(amount) for root, amount, _count in found if root is not None}
