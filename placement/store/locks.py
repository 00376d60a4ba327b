"""Places that somebody holds exclusively: of the class that their level has as a lock, everything is in use.

Who holds a place has locked all providers below it while it was taken (services/planner/allocating.py), so whoever has
locked one of these sees it here.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, bindparam, exists, select

from placement.domain.ancestry import upwards
from placement.domain.overlay import AS_IT_IS, Overlay
from placement.domain.place_lock import PlaceLock
from placement.store.connection.chunks import chunks
from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import EVERYWHERE, Extent, Scope, within
from placement.store.search.summaries import LISTED
from placement.store.stock import stock_by_tree
from placement.store.tables import (
    inventories,
    resource_classes,
    resource_provider_traits,
    resource_providers,
    traits,
)

_RP = resource_providers.c
_INV = inventories.c


class ExclusivePlace(NamedTuple):
    """A provider of which all of a lock class is in use."""

    id: int
    root: int
    class_id: int
    capacity: int
    used: int

    @property
    def lock(self) -> tuple[int, int]:
        """The inventory that is its lock: the provider and the class."""
        return self.id, self.class_id


UsedLocks = Mapping[int, str | None]
"""The ids of lock classes of which there is inventory, each with the trait of its level, as in PlaceLock."""


def lock_columns(number: int) -> list[ColumnElement[Any]]:
    """Return for each of so many classes its id, NULL unless a provider has inventory of it.

    They are columns for a statement that is sent in any case: where there is no lock, none costs a statement. The
    names of the classes are bound by ``lock_values``.
    """
    return [
        select(resource_classes.c.id)
        .where(
            resource_classes.c.name == bindparam(f"lock_{index}"),
            exists().where(_INV.resource_class_id == resource_classes.c.id),
        )
        .scalar_subquery()
        for index in range(number)
    ]


def lock_values(locks: Sequence[PlaceLock]) -> dict[str, str]:
    """Return what ``lock_columns`` binds."""
    return {f"lock_{index}": lock.resource_class for index, lock in enumerate(locks)}


def used_locks(locks: Sequence[PlaceLock], columns: Sequence[int | None]) -> UsedLocks:
    """Return which locks there are, given what ``lock_columns`` found."""
    return {id_: lock.trait for lock, id_ in zip(locks, columns, strict=True) if id_ is not None}


def locks_known(tx: Transaction, locks: Sequence[PlaceLock]) -> UsedLocks:
    """Return the locks whose classes exist: what is asked by name, whether there is inventory of them or not."""
    ids = tx.names.classes.ids(tx.connection, {lock.resource_class for lock in locks}) if locks else {}
    return {ids[lock.resource_class]: lock.trait for lock in locks if lock.resource_class in ids}


def withheld_providers(
    tx: Transaction, locks: UsedLocks, roots: Collection[int] | None = None, *, overlay: Overlay = AS_IT_IS
) -> frozenset[int]:
    """Return the places that are held exclusively, and all providers below them.

    Args:
        tx: the transaction.
        locks: the locks.
        roots: of which trees, and perhaps of others in between; None for all.
        overlay: what would be given back; locks that this frees hold nothing.
    """
    extent = EVERYWHERE if roots is None else _extent(roots)
    held = _places(tx, _held(extent.scope, keeps_usage=tx.database.keeps_usage), extent.values, locks)
    if overlay.released:
        names = tx.names.classes.names(tx.connection, locks)
        held = [one for one in held if one.used + overlay.change(one.id, names[one.class_id]) >= one.capacity]
    places = {place.id for place in held}
    parents = parents_in(tx, {place.root for place in held})
    return frozenset([one for one in parents if not places.isdisjoint(upwards(one, parents))])


def held_around(tx: Transaction, locks: UsedLocks, providers: Collection[int]) -> list[ExclusivePlace]:
    """Return the places in the trees of some providers that are held exclusively."""
    statement = _held(None, keeps_usage=tx.database.keeps_usage)
    return _places(tx, statement, {"providers": sorted(providers)}, locks)


def _places(
    tx: Transaction, statement: PreparedStatement, values: Mapping[str, Any], locks: UsedLocks
) -> list[ExclusivePlace]:
    """Return the held places that a statement finds, without providers that are no places of the lock's level."""
    rows = tx.tuples(statement, {**values, "locks": sorted(locks)})
    if not rows:
        return []
    found = [ExclusivePlace(id_, root, lock, int(capacity), int(used)) for id_, root, lock, capacity, used in rows]
    names = sorted({trait for trait in locks.values() if trait is not None})
    asked = [{"places": [one.id for one in some], "names": names} for some in chunks(found) if names]
    has = {pair for values in asked for pair in tx.tuples(_HAS, values)}
    return [one for one in found if (trait := locks[one.class_id]) is None or (one.id, trait) in has]


def parents_in(tx: Transaction, roots: Collection[int]) -> Mapping[int, int | None]:
    """Return the parents of all providers of some trees, and perhaps of others in between."""
    if not roots:
        return {}
    extent = _extent(roots)
    return dict(tx.tuples(_parents(extent.scope), extent.values))


def _extent(roots: Collection[int]) -> Extent:
    return Extent.listed(sorted(roots)) if len(roots) <= LISTED else Extent.between(min(roots), max(roots))


_HAS = PreparedStatement(
    select(resource_provider_traits.c.resource_provider_id, traits.c.name)
    .select_from(resource_provider_traits.join(traits, traits.c.id == resource_provider_traits.c.trait_id))
    .where(
        resource_provider_traits.c.resource_provider_id.in_(bindparam("places", expanding=True)),
        traits.c.name.in_(bindparam("names", expanding=True)),
    )
)


@lru_cache(maxsize=2 * (len(Scope) + 1))
def _held(scope: Scope | None, *, keeps_usage: bool) -> PreparedStatement:
    """Return the statement: rows of ExclusivePlace; without a scope for the trees of ``providers``."""
    stock = stock_by_tree(keeps_usage=keeps_usage).c
    if scope is None:
        trees = select(_RP.root_provider_id).where(_RP.id.in_(bindparam("providers", expanding=True)))
        where: list[ColumnElement[bool]] = [stock.root_provider_id.in_(trees)]
    else:
        where = within(stock.root_provider_id, scope)
    return PreparedStatement(
        select(
            stock.resource_provider_id, stock.root_provider_id, stock.resource_class_id, stock.capacity, stock.used
        ).where(
            stock.resource_class_id.in_(bindparam("locks", expanding=True)),
            stock.used > 0,
            stock.used >= stock.capacity,
            *where,
        )
    )


@lru_cache(maxsize=len(Scope))
def _parents(scope: Scope) -> PreparedStatement:
    return PreparedStatement(select(_RP.id, _RP.parent_provider_id).where(*within(_RP.root_provider_id, scope)))
