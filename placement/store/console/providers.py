"""Lists of providers, page by page: searched, ordered and limited in SQL."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, false, func, or_, select

from placement.allocators.natural_order import natural_key
from placement.store.connection.unit_of_work import Transaction
from placement.store.console.consumers import counted
from placement.store.console.stocks import MAX_CHANGES, disabled_roots, free_in_trees, of_kind, tree_loads
from placement.store.journal.order import J
from placement.store.marks import roots_in
from placement.store.providers import CHANGED_AT, IN_TREES, NAME, ROOT, ROOT_NAME, RP
from placement.store.tables import resource_providers


class ConsoleProvider(NamedTuple):
    """A provider in a list; ``size`` is the number of providers in its tree."""

    id: int
    uuid: str
    name: str
    generation: int
    changed_at: datetime | None
    root_uuid: str
    root_name: str
    size: int

    @property
    def is_root(self) -> bool:
        """Whether it is the root of its tree."""
        return self.uuid == self.root_uuid


SORTED_BY_NATURE = 20_000
"""A longer list is sorted by the database, which does not compare numbers in names by value."""

LONGEST_NAME = 200
"""How long names may be; SQLite refuses to look for parts of 50,000 characters."""

_MEMBER = resource_providers.alias("member")
_SIZE = (
    select(func.count())
    .select_from(_MEMBER)
    .where(_MEMBER.c.root_provider_id == RP.root_provider_id)
    .correlate(resource_providers)
    .scalar_subquery()
)
_COLUMNS = select(RP.id, RP.uuid, NAME, RP.generation, CHANGED_AT, ROOT.c.uuid, ROOT_NAME, _SIZE).select_from(IN_TREES)


def latest_changes(tx: Transaction, *, limit: int) -> list[ConsoleProvider]:
    """Return the providers that changed last, newest change first."""
    # Databases disagree on whether nulls come first or last.
    query = _COLUMNS.where(CHANGED_AT.is_not(None)).order_by(CHANGED_AT.desc(), RP.id.desc()).limit(limit)
    return [ConsoleProvider(*row) for row in tx.execute(query)]


class ListOrder(StrEnum):
    """The order of a list of providers; names break ties."""

    NAME = "name"
    FULLEST = "fullest"
    EMPTIEST = "emptiest"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """Conditions on providers, or on their trees, beyond the API's filters.

    Args:
        words: each has to be part of the name, or the beginning of the uuid.
        room: class id -> the amount that the whole tree must have left.
        kind: the ids of exactly the classes that the tree has.
        disabled: whether nova has disabled the host.
        full: whether any class of the tree is fully used.
        groups: for each group, its aggregates: the tree needs a provider in one of them.
        changed_since: the earliest time of the last change (naive UTC).
        by_journal: whether changes recorded only in the journal count: not all of them touch the provider's row.
    """

    words: Sequence[str] = ()
    room: Mapping[int, int]
    kind: Collection[int] = ()
    disabled: bool | None = None
    full: bool | None = None
    groups: Sequence[Collection[str]] = ()
    changed_since: datetime | None = None
    by_journal: bool = False


class Listed:
    """Providers that meet conditions, or the roots of the trees in which one does.

    Args:
        tx: the transaction.
        conditions: the conditions on a provider.
        facets: further conditions on the provider or its tree.
        trees: whether to list trees.
    """

    def __init__(
        self, tx: Transaction, conditions: Sequence[ColumnElement[bool]], facets: Facets, *, trees: bool
    ) -> None:
        self._tx = tx
        self._trees = trees
        of_each = [*conditions, *_of_each(facets)]
        self._conditions = [RP.parent_provider_id.is_(None)] if trees else of_each
        if trees and of_each:
            # Uncorrelated: the conditions are on the same table as the enclosing query.
            inside = select(RP.root_provider_id).where(*of_each).correlate(None).subquery("inside")
            self._conditions.append(RP.id.in_(select(inside.c.root_provider_id)))
        self._conditions += _of_tree(tx, facets)

    def rows(self, order: ListOrder, *, first: int, most: int) -> list[ConsoleProvider]:
        """Return a page of the list."""
        by_name = (RP.parent_provider_id.is_not(None), RP.name, RP.id)
        query = _COLUMNS.where(*self._conditions)
        if order in (ListOrder.FULLEST, ListOrder.EMPTIEST):
            loads = tree_loads(self._tx)
            query = query.outerjoin(loads, loads.c.root_id == RP.root_provider_id)
            load = func.coalesce(loads.c.load, 0)
            by = load.desc() if order is ListOrder.FULLEST else load
            query = query.order_by(by, *by_name)
        elif order is ListOrder.CHANGED:
            # Databases disagree on whether nulls come first; MariaDB's timestamps are whole seconds.
            query = query.order_by(CHANGED_AT.is_(None), CHANGED_AT.desc(), RP.id.desc())
        elif order is ListOrder.UNCHANGED:
            query = query.order_by(CHANGED_AT.is_not(None), CHANGED_AT, RP.id)
        elif (ids := self._in_natural_order()) is not None:
            places = {id_: place for place, id_ in enumerate(ids[first : first + most])}
            rows = [ConsoleProvider(*row) for row in self._tx.execute(_COLUMNS.where(RP.id.in_(places)))]
            return sorted(rows, key=lambda row: places[row.id])
        else:
            query = query.order_by(*by_name)
        return [ConsoleProvider(*row) for row in self._tx.execute(query.offset(first).limit(most))]

    def _in_natural_order(self) -> list[int] | None:
        """Return the ids of all rows, roots first, then by name with numbers by value; None if there are too many."""
        query = select(RP.parent_provider_id.is_not(None), RP.name, RP.id).where(*self._conditions)
        rows = self._tx.tuples(query.limit(SORTED_BY_NATURE + 1))
        if len(rows) > SORTED_BY_NATURE:
            return None
        return [id_ for *_, id_ in sorted(rows, key=lambda row: (bool(row[0]), natural_key(row[1] or ""), row[2]))]

    def count(self) -> int | None:
        """Return the length of the list; None if it is too long to count."""
        return counted(self._tx, select(RP.id).where(*self._conditions))


def _of_each(facets: Facets) -> list[ColumnElement[bool]]:
    conditions = [
        or_(RP.name.icontains(word, autoescape=True), RP.uuid.istartswith(word, autoescape=True))
        if len(word) <= LONGEST_NAME
        else false()
        for word in facets.words
    ]
    if facets.changed_since is not None:
        written = facets.changed_since <= CHANGED_AT
        told = RP.uuid.in_(_told_of_since(facets.changed_since))
        conditions.append(or_(written, told) if facets.by_journal else written)
    return conditions


def _told_of_since(moment: datetime) -> Select[tuple[str | None]]:
    """Return a query for the providers in the newest journal rows since a moment."""
    rows = select(J.provider_uuid).where(J.time >= moment).order_by(J.id.desc()).limit(MAX_CHANGES).subquery("rows")
    return select(rows.c.provider_uuid).where(rows.c.provider_uuid.is_not(None))


def _of_tree(tx: Transaction, facets: Facets) -> list[ColumnElement[bool]]:
    root = RP.root_provider_id
    conditions: list[ColumnElement[bool]] = []
    if facets.room:
        conditions.append(root.in_(free_in_trees(tx, facets.room)))
    if facets.kind:
        conditions.append(root.in_(of_kind(facets.kind)))
    if facets.disabled is not None:
        disabled = disabled_roots(tx)
        conditions.append(root.in_(disabled) if facets.disabled else root.not_in(disabled))
    if facets.full is not None:
        loads = tree_loads(tx)
        those = select(loads.c.root_id).where(loads.c.load >= 1)
        conditions.append(root.in_(those) if facets.full else root.not_in(those))
    conditions += [root.in_(roots_in(uuids)) for uuids in facets.groups]
    return conditions
