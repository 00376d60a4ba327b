"""The past in the journal: since when it is complete, how much it holds, what is pruned, and how a provider was.

A provider at a past time is its current state, with everything undone that the journal has recorded since.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import bindparam, delete, select

from placement.errors import Gone
from placement.store.connection.database import Database, Transaction
from placement.store.journal.order import J, newest_rows
from placement.store.journal.reading import Entry, EntryFilter, former_names, since_then
from placement.store.journal.watched import (
    AGGREGATE,
    ALLOCATION,
    BEGAN,
    CLASS_NAME,
    CREATED,
    DELETED,
    INVENTORY,
    PROVIDER,
    TRAIT,
    TRAIT_NAME,
)
from placement.store.providers import RP
from placement.store.tables import (
    allocations,
    inventories,
    placement_aggregates,
    placement_former_names,
    placement_journal,
    resource_provider_aggregates,
    resource_provider_traits,
    utc_now,
)


class _Searched(NamedTuple):
    """How far the journal has been searched: up to this row, and when it last began until then."""

    id: int
    time: datetime
    began: datetime | None


class JournalExtent(NamedTuple):
    """How many rows the journal holds at most, the age of the oldest, and of the oldest that has no number yet."""

    rows: int
    age_s: float
    lag_s: float


_searched: WeakKeyDictionary[Database, _Searched] = WeakKeyDictionary()
"""Rows that tell of a beginning are few and no index finds them, so only what is new is searched."""

_ROWS = select(J.id, J.time)
_UNNUMBERED = _ROWS.where(J.commit_mark.is_(None)).order_by(J.id).limit(1)


def complete_since(tx: Transaction) -> datetime | None:
    """Return that time, or None if the journal is empty."""
    # The first row's time is that of the oldest recorded change, unless the journal was interrupted and began again.
    first = tx.execute(_ROWS.order_by(J.id).limit(1)).first()
    newest = tx.execute(_ROWS.order_by(J.id.desc()).limit(1)).first()
    if first is None or newest is None:
        return None
    before = _searched.get(tx.database)
    if before and tx.execute(_ROWS.where(J.id == before.id, J.time == before.time)).first() is None:
        before = None  # pruned, or another journal
    again = select(J.time).where(J.action == BEGAN, J.id > (before.id if before else 0))
    began: datetime | None = tx.execute(again.order_by(J.id.desc()).limit(1)).scalar()
    if began is None and before:
        began = before.began
    _searched[tx.database] = _Searched(newest.id, newest.time, began)
    start: datetime = first.time
    return start if began is None else max(start, began)


def extent(tx: Transaction) -> JournalExtent:
    """Return how much the journal holds: three rows are read, whatever its size."""
    first = tx.execute(_ROWS.order_by(J.id).limit(1)).first()
    newest = tx.execute(_ROWS.order_by(J.id.desc()).limit(1)).first()
    if first is None or newest is None:
        return JournalExtent(0, 0.0, 0.0)
    late = tx.execute(_UNNUMBERED).first() if tx.dialect == "mysql" else None
    return JournalExtent(newest.id - first.id + 1, _age_s(first.time), _age_s(late.time) if late else 0.0)


def _age_s(at_time: datetime) -> float:
    return max(0.0, (utc_now() - at_time).total_seconds())


ROWS_AT_ONCE = 1000

_OLDEST = select(J.id, J.time).order_by(J.id).limit(ROWS_AT_ONCE + 1)
_LOCK_OLDEST = select(J.id).order_by(J.id).limit(1).with_for_update()
_DELETE = delete(placement_journal).where(J.id <= bindparam("last"))
_DELETE_NAMES = delete(placement_former_names).where(placement_former_names.c.journal_id <= bindparam("last"))


class PrunedRows(NamedTuple):
    """What a transaction has deleted: how many rows, and the id of the oldest one that is left."""

    rows: int
    oldest: int


NOTHING = PrunedRows(0, 0)


def prune_some(tx: Transaction, before: datetime, *, oldest: int | None = None) -> PrunedRows:
    """Delete up to ROWS_AT_ONCE of the oldest rows from before a moment; it waits for others that do the same.

    The newest row is kept whatever its age: cursors refer to it, and numbering continues from it. ``oldest`` is the id
    of the oldest row that the previous portion left: if it is gone, somebody else deletes rows, and nothing is done.
    """
    kept = min(newest_rows(tx), default=0)
    tx.execute(_LOCK_OLDEST)
    rows = tx.execute(_OLDEST).all()
    if oldest is not None and rows and rows[0].id != oldest:
        return NOTHING
    old = [row.id for row in rows[:ROWS_AT_ONCE] if row.time < before and row.id < kept]
    if not old:
        return NOTHING
    tx.execute(_DELETE_NAMES, {"last": old[-1]})
    return PrunedRows(tx.execute(_DELETE, {"last": old[-1]}).rowcount, rows[len(old)].id)


Key = TypeVar("Key", int, str)

_STOCK = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")


class TooLongAgo(Gone):
    """The journal does not reach back that far."""


@dataclass(slots=True)
class PastProvider(Generic[Key]):
    """A provider at a past time: inventories by class, (consumer, class, amount) by allocation id, traits.

    While changes are undone, classes and traits are ids, because they may have had other names then; at last names.
    """

    exists: bool
    inventories: dict[Key, dict[str, Any]] = field(default_factory=dict)
    allocations: dict[int, tuple[str, Key, int]] = field(default_factory=dict)
    traits: set[Key] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)

    @property
    def usages(self) -> dict[Key, int]:
        """Usage by class."""
        used: Counter[Key] = Counter()
        for _, class_, amount in self.allocations.values():
            used[class_] += amount
        return dict(used)

    @property
    def holders(self) -> dict[str, dict[Key, int]]:
        """What each consumer holds, by class."""
        holders: dict[str, Counter[Key]] = {}
        for consumer, class_, amount in self.allocations.values():
            holders.setdefault(consumer, Counter())[class_] += amount
        return {consumer: dict(held) for consumer, held in holders.items()}


def provider_at(tx: Transaction, uuid: str, at_time: datetime) -> PastProvider[str]:
    """Return a provider as of a moment, undoing all changes since; TooLongAgo if rows may be missing."""
    known_since = complete_since(tx)
    if known_since is None or at_time < known_since:
        raise TooLongAgo
    past = _now(tx, uuid)
    for entry in since_then(tx, EntryFilter(providers=(uuid,), since=at_time)):
        _undo(entry, past)
    return _named(tx, past, at_time)


def _now(tx: Transaction, uuid: str) -> PastProvider[int]:
    provider = tx.execute(select(RP.id).where(RP.uuid == uuid)).scalar()
    if provider is None:
        return PastProvider(exists=False)
    has, held, marks, groups = inventories.c, allocations.c, resource_provider_traits.c, resource_provider_aggregates.c
    stocks = select(has.resource_class_id, *(has[name] for name in _STOCK)).where(has.resource_provider_id == provider)
    taken = select(held.id, held.consumer_id, held.resource_class_id, held.used).where(
        held.resource_provider_id == provider
    )
    grouped = select(placement_aggregates.c.uuid).join(
        resource_provider_aggregates, groups.aggregate_id == placement_aggregates.c.id
    )
    return PastProvider(
        exists=True,
        inventories={id_: dict(zip(_STOCK, amounts, strict=True)) for id_, *amounts in tx.execute(stocks)},
        allocations={id_: (consumer_uuid, class_id, used) for id_, consumer_uuid, class_id, used in tx.tuples(taken)},
        traits=set(tx.execute(select(marks.trait_id).where(marks.resource_provider_id == provider)).scalars()),
        aggregates=set(tx.execute(grouped.where(groups.resource_provider_id == provider)).scalars()),
    )


def _undo(entry: Entry, past: PastProvider[int]) -> None:
    was_made, was_deleted = entry.action == CREATED, entry.action == DELETED
    if entry.kind == PROVIDER:
        past.exists = was_deleted or (past.exists and not was_made)
    elif entry.kind == INVENTORY:
        past.inventories.pop(int(entry.resource_class_id or 0), None)
        if entry.old is not None:
            past.inventories[int(entry.resource_class_id or 0)] = entry.old
    elif entry.kind == ALLOCATION:
        past.allocations.pop(int(entry.object_id or 0), None)
        if entry.old_amount is not None:
            held = (str(entry.consumer_uuid), int(entry.resource_class_id or 0), entry.old_amount)
            past.allocations[int(entry.object_id or 0)] = held
    elif entry.kind == TRAIT:
        (past.traits.discard if was_made else past.traits.add)(int(entry.object_id or 0))
    elif entry.kind == AGGREGATE:
        (past.aggregates.discard if was_made else past.aggregates.add)(str(entry.name))


def _named(tx: Transaction, past: PastProvider[int], at_time: datetime) -> PastProvider[str]:
    """Name classes and traits as they were called at a moment."""
    former, connection = former_names(tx, J.time >= at_time), tx.connection
    classes = tx.names.classes.names(connection, {*past.inventories, *(id_ for _, id_, _ in past.allocations.values())})
    traits = tx.names.traits.names(connection, past.traits)

    def class_name(id_: int) -> str:
        return former.at(0, CLASS_NAME, id_) or classes[id_]

    return PastProvider(
        exists=past.exists,
        inventories={class_name(id_): stock for id_, stock in past.inventories.items()},
        allocations={
            id_: (consumer_uuid, class_name(class_id), used)
            for id_, (consumer_uuid, class_id, used) in past.allocations.items()
        },
        traits={former.at(0, TRAIT_NAME, id_) or traits[id_] for id_ in past.traits},
        aggregates=past.aggregates,
    )
