"""Tells which trees have changed since a reader's last snapshot, so that caches need not read the whole cloud again."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from placement.domain.inventory import Inventory
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.completeness import is_whole
from placement.store.journal.cursor import Cursor
from placement.store.journal.order import JournalOfAnother
from placement.store.journal.tree_row import NewRows, RowOfTree
from placement.store.journal.tree_rows import Along, new_rows, place_of
from placement.store.journal.watched import AGGREGATE, ALLOCATION, INVENTORY, PROVIDER, TRAIT

MAX_CHANGED = 20_000
"""From this many changed trees on, everything is read again: SQLite binds at most 32,766 values per statement."""

_OF_NO_SUM = (TRAIT, AGGREGATE)
"""Kinds of rows that leave the sums of trees as they were."""

SumStep = tuple[int, int]
"""The root of a tree, and the change in the tree's capacity or use of a class."""

StepsByClass = Mapping[int, Sequence[SumStep]]
"""Steps by the id of their class."""

_NO_STEPS: StepsByClass = MappingProxyType({})


class TreeChanges(NamedTuple):
    """What has changed from one snapshot to another.

    Only this server's own writes yield steps: it locks the provider before it writes, so that the journal row names the
    provider's actual tree, and it refuses allocations without inventory. Other writers guarantee neither, so their rows
    count as changes to the tree that the row names and to the provider's current one.

    Args:
        roots: the roots of all changed trees.
        capacities: the steps of their capacities, in any order; each counts once.
        uses: the steps of their usage, likewise.
        untold: the roots of the trees whose changes the steps do not fully cover.
    """

    roots: frozenset[int]
    capacities: StepsByClass = _NO_STEPS
    uses: StepsByClass = _NO_STEPS
    untold: AbstractSet[int] = frozenset()


NO_CHANGES = TreeChanges(frozenset())


class JournalLook(NamedTuple):
    """What a snapshot shows of the journal.

    Args:
        place: its cursor.
        changes: what has changed; None for everything.
        along: the scalars that were read along; None if none were.
    """

    place: Cursor
    changes: TreeChanges | None
    along: Sequence[Any] | None = None


def look(tx: Transaction, since: Cursor | None, along: Along | None = None) -> JournalLook | None:
    """Return what has changed between a reader's cursor and this snapshot; None without a usable journal.

    A writing transaction gets None: the cursor would advance past its own uncommitted rows. For a reader that has seen
    a newer snapshot than this one, everything has changed, and so it has where the triggers may have been missing in
    any transaction between the two (completeness.py): what follows the journal through here is never without a row.

    Args:
        tx: the snapshot.
        since: the reader's cursor; None before it has read anything.
        along: scalars to read in the same statement, which saves one, where that is possible.
    """
    if not tx.is_snapshot or not tx.database.keeps_journal:
        return None
    try:
        found = _anything(tx) if since is None else new_rows(tx, since, along)
    except JournalOfAnother:
        return None
    if found is None or not is_whole(tx, found.place.triggers):
        return None
    if since is None or found.rows is None or found.place.triggers != since.triggers:
        return JournalLook(found.place, None, found.along)
    return JournalLook(found.place, _told(found.rows, is_exact=since.is_exact), found.along)


def _anything(tx: Transaction) -> NewRows | None:
    place = place_of(tx)
    return None if place is None else NewRows(place, None)


def _told(rows: Collection[RowOfTree], *, is_exact: bool) -> TreeChanges | None:
    """Return the changes that rows record; None if too little is known, or too much."""
    named = {row[0] for row in rows}
    # Only a provider just created or about to be deleted is in no tree; what it holds always is in one.
    if None in named and any(row[0] is None and row[2] != PROVIDER for row in rows):
        return None
    named.update([row[1] for row in rows])
    named.discard(None)
    changed = frozenset(named)
    if len(changed) >= MAX_CHANGED:
        return None
    if not is_exact:  # Rows shown without counting as seen come again: steps would be counted twice.
        return TreeChanges(changed, untold=changed)
    return TreeChanges(changed, *_told_of_sums(rows))


def _told_of_sums(rows: Collection[RowOfTree]) -> tuple[StepsByClass, StepsByClass, set[int]]:
    """Return the steps of capacities, those of usage, and the roots that they do not fully cover."""
    capacities, uses = defaultdict[int, list[SumStep]](list), defaultdict[int, list[SumStep]](list)
    untold = set[int]()
    for root, other, kind, is_ours, class_id, more, old_row, new_row in rows:
        if is_ours and kind == ALLOCATION:
            uses[class_id].append((root, more))
        elif is_ours and kind == INVENTORY and old_row and new_row:
            capacities[class_id].append((root, _capacity(new_row) - _capacity(old_row)))
        elif kind not in _OF_NO_SUM:
            untold |= {root, other}
    untold.discard(None)
    return capacities, uses, untold


@lru_cache(maxsize=4096)
def _capacity(row: str) -> int:
    """Return the capacity of an inventory in a journal row. Memoised: many are equal."""
    return Inventory(**orjson.loads(row)).capacity
