"""Rows of providers for pages: lists of them, the roots of all trees, and which have what cannot be seen in columns."""

from collections.abc import Collection, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, and_, false, func, or_, select

from placement.allocators import natural_key
from placement.store.connection.database import Transaction
from placement.store.connection.statements import KeyedStatement
from placement.store.console.stocks import MAX_CHANGES
from placement.store.journal.order import J
from placement.store.providers import CHANGED_AT, IN_TREES, NAME, ROOT, ROOT_NAME, RP
from placement.store.search.cloud_rows import HAS_ROOT
from placement.store.tables import drained_inventories, inventories, resource_providers


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


MAX_LISTED = 100_000
"""A list of providers ends here."""

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
_LISTED = KeyedStatement(_COLUMNS, RP.id)
IS_ROOT = RP.parent_provider_id.is_(None)


def listed_providers(tx: Transaction, ids: Sequence[int]) -> list[ConsoleProvider]:
    """Return providers by id, in this order."""
    rows = {row[0]: ConsoleProvider(*row) for row in _LISTED.rows(tx.connection, ids)}
    return [rows[id_] for id_ in ids if id_ in rows]


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


# Databases disagree on whether nulls come first; MariaDB's timestamps are whole seconds.
BY_CHANGE = {
    ListOrder.CHANGED: (CHANGED_AT.is_(None), CHANGED_AT.desc(), RP.id.desc()),
    ListOrder.UNCHANGED: (CHANGED_AT.is_not(None), CHANGED_AT, RP.id),
}


def ids_in_order(
    tx: Transaction, conditions: Sequence[ColumnElement[bool]], order: ListOrder
) -> list[tuple[int, int | None]]:
    """Return (id, id of the root) of the providers that meet conditions, at most MAX_LISTED.

    They come by their changes, if the order is one of these; else roots first, and by name.
    """
    is_child = RP.parent_provider_id.is_not(None)
    query = select(RP.id, RP.root_provider_id, is_child, RP.name).where(*conditions, HAS_ROOT)
    by_change = BY_CHANGE.get(order)
    rows = tx.tuples(query.order_by(*(by_change or (is_child, RP.name, RP.id))).limit(MAX_LISTED))
    if by_change is None and len(rows) <= SORTED_BY_NATURE:
        rows = sorted(rows, key=lambda row: (bool(row[2]), natural_key(row[3] or ""), row[0]))
    return [(id_, root) for id_, root, *_ in rows]


def roots_with(tx: Transaction, conditions: Sequence[ColumnElement[bool]]) -> list[int]:
    """Return the roots of the trees in which any provider meets conditions."""
    return [root for (root,) in tx.tuples(select(RP.root_provider_id).where(*conditions, HAS_ROOT).distinct())]


def has_word(word: str) -> ColumnElement[bool]:
    """Return the condition that a word is part of a provider's name, or the beginning of its uuid."""
    if len(word) > LONGEST_NAME:
        return false()
    return or_(RP.name.icontains(word, autoescape=True), RP.uuid.istartswith(word, autoescape=True))


def has_changed(since: datetime, *, by_journal: bool) -> ColumnElement[bool]:
    """Return the condition that a provider has changed since a time (naive UTC).

    Not all changes touch the provider's row, so those in the newest rows of the journal may count as well.
    """
    newest = select(J.provider_uuid).where(J.time >= since).order_by(J.id.desc()).limit(MAX_CHANGES).subquery("newest")
    in_journal = RP.uuid.in_(select(newest.c.provider_uuid).where(newest.c.provider_uuid.is_not(None)))
    return or_(since <= CHANGED_AT, in_journal) if by_journal else since <= CHANGED_AT


def unchanged_trees(tx: Transaction, since: datetime) -> int:
    """Return how many trees have no provider that has changed since a time (naive UTC)."""
    changed = select(RP.root_provider_id).where(since <= CHANGED_AT, HAS_ROOT)
    roots = RP.id == RP.root_provider_id
    query = select(func.count()).select_from(resource_providers).where(roots, RP.id.not_in(changed))
    return int(tx.execute(query).scalar_one())


def drained_roots(tx: Transaction) -> Collection[int]:
    """Return the roots of the trees in which an inventory is reserved as a whole by a drain."""
    drained, has = drained_inventories.c, inventories.c
    of_drain = and_(drained.provider_uuid == RP.uuid, has.resource_class_id == drained.resource_class_id)
    source = resource_providers.join(inventories, has.resource_provider_id == RP.id).join(drained_inventories, of_drain)
    query = select(RP.root_provider_id).select_from(source).where(has.reserved >= has.total, HAS_ROOT).distinct()
    return [root for (root,) in tx.tuples(query)]


class NamedHost(NamedTuple):
    """The root of a tree."""

    id: int
    uuid: str
    name: str


def named_hosts(tx: Transaction) -> list[NamedHost]:
    """Return the roots of all trees, in the natural order of their names."""
    rows = tx.tuples(select(RP.id, RP.uuid, NAME).where(IS_ROOT))
    return [NamedHost(*row) for row in sorted(rows, key=lambda row: (natural_key(row[2]), row[0]))]


def hosts_with(tx: Transaction, beginning: str) -> list[int]:
    """Return the roots whose uuid starts with ``beginning``, at most two."""
    begins = RP.uuid.startswith(beginning.lower(), autoescape=True)
    query: Select[tuple[int]] = select(RP.id).where(IS_ROOT, begins).limit(2)
    return [root for (root,) in tx.tuples(query)]
