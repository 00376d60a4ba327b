"""Read the journal: as a feed in commit order, as an audit trail, newest first, and as changes shown to people.

Rows have ids of resource classes, traits and providers. Triggers keep each name that an id loses, because the class or
trait is deleted or renamed, together with the row of the journal that tells of it; of a provider that is deleted, they
keep the uuid. Rows up to that one mean this name, later ones the next that the id got. That holds although ids are not
assigned in the order of commits: only what nobody uses any more can be deleted, and an id cannot be given away before
that is committed.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from sqlalchemy import ColumnElement, Integer, Select, and_, case, func, literal, or_, select

from placement.store.connection.database import Transaction
from placement.store.connection.statements import KeyedStatement
from placement.store.journal.order import Cursor, J, SeenMarks, anchor, not_ahead, now, unread, unseen, verify
from placement.store.journal.watched import AGGREGATE, ALLOCATION, CLASS_NAME, INVENTORY, PROVIDER, TRAIT, TRAIT_NAME
from placement.store.providers import IN_TREES, NAME, ROOT, ROOT_NAME, RP
from placement.store.tables import (
    consumer_types,
    placement_aggregates,
    placement_former_names,
    placement_journal,
    projects,
    resource_classes,
    traits,
    users,
)

_F = placement_former_names.c
_AT_ONCE = literal(0, Integer)

RowPosition = tuple[int, int]
"""Where a reader gets a row of the journal: in this portion (0) or a later one (1), and there in the order of ids."""


class FormerNames:
    """Names that were lost from some position of the journal on.

    >>> names = FormerNames([(0, 7, "trait_name", 1, "CUSTOM_A"), (0, 9, "trait_name", 1, "CUSTOM_B")])
    >>> names.at(5, "trait_name", 1), names.at(7, "trait_name", 1), names.at(8, "trait_name", 1)
    ('CUSTOM_A', 'CUSTOM_A', 'CUSTOM_B')
    >>> names.at(10, "trait_name", 1) is None
    True
    """

    def __init__(self, ends: Iterable[tuple[int, int, str, int, str]]) -> None:
        self._ends = defaultdict[tuple[str, int | None], list[tuple[RowPosition, str]]](list)
        for is_later, journal_id, kind, id_, name in sorted(ends):
            self._ends[kind, id_].append(((is_later, journal_id), name))

    def __bool__(self) -> bool:
        return bool(self._ends)

    def at(self, journal_id: int, kind: str, id_: int | None) -> str | None:
        """Return what a row of the journal calls a class, trait or provider; None for its present name."""
        ends = self._ends.get((kind, id_), [])
        place = bisect_left(ends, (0, journal_id), key=lambda end: end[0])
        return ends[place][1] if place < len(ends) else None


def names_for_portion(
    tx: Transaction, cursor: Cursor, portion: SeenMarks, *, providers: Collection[int]
) -> FormerNames:
    """Return the names for rows of a portion, for a reader at a cursor; of providers only those of some.

    A renaming may commit before a claim and have higher ids: its reader knows the old name until it has got that row.
    """
    is_later = case((unseen(tx, SeenMarks(), portion), 0), else_=1)
    return former_names(tx, unread(tx, cursor), providers, is_later=is_later)


def former_names(
    tx: Transaction,
    is_end: ColumnElement[bool],
    providers: Collection[int] = (),
    *,
    is_later: ColumnElement[int] = _AT_ONCE,
) -> FormerNames:
    """Return the names that end with some rows; of providers only those of some."""
    # As a join, SQLite would read the whole journal for the few rows that end a name.
    position = select(is_later).where(J.id == _F.journal_id, is_end).correlate(placement_former_names).scalar_subquery()
    entry_filter = or_(_F.kind != PROVIDER, _F.object_id.in_(sorted(providers)))
    ends = tx.tuples(select(position, _F.journal_id, _F.kind, _F.object_id, _F.name).where(entry_filter))
    return FormerNames([end for end in ends if end[0] is not None])


PORTION = 1000

_OF_TRAITS = (TRAIT, TRAIT_NAME)
_INFINITE = re.compile(r'("allocation_ratio":\s*)(-?Inf)\b')
_LINKS = {"parent_provider_id": "parent_provider_uuid", "root_provider_id": "root_provider_uuid"}


_ENTRIES: Select[Any] = (
    select(
        *(J.id, J.commit_mark, J.time, J.kind, J.action, J.object_id, J.provider_uuid, J.root_provider_id),
        *(J.consumer_uuid, projects.c.external_id, users.c.external_id, consumer_types.c.name),
        *(J.resource_class_id, resource_classes.c.name, func.coalesce(traits.c.name, placement_aggregates.c.uuid)),
        *(J.old_amount, J.new_amount, J.generation, J.old_row, J.new_row),
        *(J.request_id, J.by_user, J.by_project, J.route),
    )
    .select_from(placement_journal)
    .outerjoin(projects, projects.c.id == J.project_id)
    .outerjoin(users, users.c.id == J.user_id)
    .outerjoin(consumer_types, consumer_types.c.id == J.consumer_type_id)
    .outerjoin(resource_classes, resource_classes.c.id == J.resource_class_id)
    .outerjoin(traits, and_(traits.c.id == J.object_id, J.kind.in_(_OF_TRAITS)))
    .outerjoin(placement_aggregates, and_(placement_aggregates.c.id == J.object_id, J.kind == AGGREGATE))
)

SHOWN_KINDS = (ALLOCATION, INVENTORY, TRAIT, AGGREGATE, PROVIDER)
"""The kinds of rows to show; generations and consumers only change along with these."""


class Entry(NamedTuple):
    """A row of the journal, with the names that go with its ids; those of classes and traits are of that time."""

    id: int
    commit_mark: int | None
    time: datetime
    kind: str
    action: str
    object_id: int | None
    provider_uuid: str | None
    root_provider_id: int | None
    consumer_uuid: str | None
    project: str | None
    user: str | None
    consumer_type: str | None
    resource_class_id: int | None
    resource_class: str | None
    name: str | None
    old_amount: int | None
    new_amount: int | None
    generation: int | None
    old: dict[str, Any] | None
    new: dict[str, Any] | None
    request_id: str | None
    by_user: str | None
    by_project: str | None
    route: str | None


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """A filter on rows: by consumer, providers in any case, project of the consumer, acting user, time and kind."""

    consumer: str | None = None
    providers: tuple[str, ...] = ()
    project: str | None = None
    user: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    kinds: tuple[str, ...] = ()

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the filter as conditions."""
        conditions = []
        if self.consumer is not None:
            conditions.append(J.consumer_uuid == self.consumer)
        if self.providers:
            spellings = {spelling for uuid in self.providers for spelling in (uuid, uuid.lower())}
            conditions.append(J.provider_uuid.in_(sorted(spellings)))
        if self.project is not None:
            # A scalar subquery, so that the index on the project id is used.
            project = select(projects.c.id).where(projects.c.external_id == self.project).scalar_subquery()
            conditions.append(J.project_id == project)
        if self.user is not None:
            conditions.append(J.by_user == self.user)
        if self.since is not None:
            conditions.append(J.time >= self.since)
        if self.until is not None:
            conditions.append(J.time < self.until)
        if self.kinds:
            conditions.append(J.kind.in_(self.kinds))
        return conditions


def feed(tx: Transaction, cursor: Cursor, entry_filter: EntryFilter, *, limit: int) -> tuple[list[Entry], Cursor]:
    """Return rows that a cursor has not seen, in commit order, and the cursor after them; or CursorGone."""
    verify(tx, cursor)
    newest = now(tx)
    portion = cursor.portion or newest.marks
    query = (
        _ENTRIES.where(unseen(tx, cursor.marks, portion), J.id > cursor.last_id, *entry_filter.conditions())
        .where(not_ahead(cursor))
        .order_by(J.id)
        .limit(limit)
    )
    entries = _entries(tx, query)
    if entries:
        former = names_for_portion(tx, cursor, portion, providers=_linked(entries))
        entries = _as_called_then(tx, entries, former)
    if len(entries) == limit:
        last = entries[-1]
        return entries, replace(
            cursor,
            portion=portion,
            last_id=last.id,
            anchor=anchor(last.id, last.time, last.commit_mark),
            overlap=newest.overlap if cursor.portion is None else cursor.overlap,
        )
    if cursor.portion is None:
        return entries, newest
    return entries, Cursor(portion, anchor=cursor.anchor, overlap=cursor.overlap)


def trail(tx: Transaction, entry_filter: EntryFilter, *, limit: int, before: int | None = None) -> list[Entry]:
    """Return rows, newest first; if ``before`` is given, only those with lower ids."""
    query = _ENTRIES.where(*entry_filter.conditions()).order_by(J.id.desc()).limit(limit)
    if before is not None:
        query = query.where(J.id < before)
    entries = _entries(tx, query)
    if not entries:
        return []
    return _as_called_then(tx, entries, former_names(tx, _F.journal_id >= entries[-1].id, _linked(entries)))


def since_then(tx: Transaction, entry_filter: EntryFilter) -> Iterator[Entry]:
    """Yield all matching rows, newest first, reading them in portions."""
    before: int | None = None
    while entries := trail(tx, entry_filter, limit=PORTION, before=before):
        yield from entries
        before = entries[-1].id


def _entries(tx: Transaction, query: Select[Any]) -> list[Entry]:
    entries = [Entry(*row) for row in tx.execute(query)]
    return [entry._replace(old=_document(entry.old), new=_document(entry.new)) for entry in entries]


def _linked(entries: Sequence[Entry]) -> set[int]:
    """Return the ids of the parents and roots that entries show."""
    documents = [document for entry in entries for document in (entry.old, entry.new) if document]
    return {document[name] for document in documents for name in _LINKS if document.get(name) is not None}


def _as_called_then(tx: Transaction, entries: list[Entry], former: FormerNames) -> list[Entry]:
    """Replace ids of parents and roots by uuids, and present names of classes and traits by those of the time."""
    uuids: dict[int | None, str] = dict(_UUIDS.tuples(tx.connection, _linked(entries)))
    for entry in entries:
        for document in filter(None, (entry.old, entry.new)):
            for name in _LINKS.keys() & document.keys():
                id_ = document.pop(name)
                document[_LINKS[name]] = former.at(entry.id, PROVIDER, id_) or uuids.get(id_)
    return [_called_then(each_entry, former) for each_entry in entries] if former else entries


def _called_then(entry: Entry, former: FormerNames) -> Entry:
    class_ = former.at(entry.id, CLASS_NAME, entry.resource_class_id)
    trait = former.at(entry.id, TRAIT_NAME, entry.object_id) if entry.kind in _OF_TRAITS else None
    return entry._replace(resource_class=class_ or entry.resource_class, name=trait or entry.name)


def _document(text: Any) -> dict[str, Any] | None:
    if text is None:
        return None
    # JSON has no infinite numbers. PostgreSQL writes them as texts, and SQLite as they are.
    document = dict(orjson.loads(_INFINITE.sub(r'\1"\2"', text)))
    if isinstance(ratio := document.get("allocation_ratio"), str):
        document["allocation_ratio"] = float(ratio)
    return document


_UUIDS = KeyedStatement(select(RP.id, RP.uuid), RP.id)
_NAMES = KeyedStatement(select(RP.uuid, NAME, ROOT_NAME, ROOT.c.uuid).select_from(IN_TREES), RP.uuid)


class NamedChange(NamedTuple):
    """A row of the journal, with what its provider and the root above are called; None if they no longer exist."""

    entry: Entry
    name: str | None
    root_name: str | None
    root_uuid: str | None


def provider_names(tx: Transaction, entries: Iterable[Entry]) -> dict[str, tuple[str, str, str]]:
    """Return the name of each provider in entries that still exists, and the name and uuid of its root."""
    uuids = {entry.provider_uuid for entry in entries if entry.provider_uuid is not None}
    return {uuid: tuple(names) for uuid, *names in _NAMES.tuples(tx.connection, uuids)}


def named_changes(
    tx: Transaction, *, limit: int, providers: Sequence[str] = (), consumer: str | None = None
) -> list[NamedChange]:
    """Return the latest changes, of some providers or a consumer or of all, newest first."""
    entries = trail(tx, EntryFilter(consumer, tuple(providers), kinds=SHOWN_KINDS), limit=limit)
    names = provider_names(tx, entries)
    return [NamedChange(entry, *names.get(entry.provider_uuid or "", (None, None, None))) for entry in entries]
