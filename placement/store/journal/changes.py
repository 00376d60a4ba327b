"""Which trees have changed since somebody looked: what keeps a picture of a cloud current without reading it again."""

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple

import orjson

from placement.domain.inventory import Inventory
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.cursor import Cursor
from placement.store.journal.order import POSTGRESQL, SQLITE, JournalOfAnother, now
from placement.store.journal.tree_rows import RowOfTree, new_rows
from placement.store.journal.watched import PROVIDER

MOST_CHANGED = 20_000
"""Where so many trees have changed, everything is read again. A statement of SQLite has at most 32,766 values."""

SumStep = tuple[int, int, int]
"""The root of a tree, the id of a class, and by how much more of it the tree has, or uses."""


class TreeChanges(NamedTuple):
    """What has changed from one snapshot to another.

    Only what this server wrote is told as steps. It locks the provider first, so that its row in the journal names the
    tree that the provider is in, and lets nobody take of what has no inventory. Others may do otherwise: what they
    wrote changes the tree that the row names, and the one that the provider is in by now.

    Args:
        roots: the roots of the trees of which something has changed.
        capacities: what has become of their capacities, in any order; each counts once.
        uses: likewise, of what is in use.
        untold: the roots of those trees of which steps do not tell all.
    """

    roots: frozenset[int]
    capacities: Sequence[SumStep] = ()
    uses: Sequence[SumStep] = ()
    untold: AbstractSet[int] = frozenset()


NO_CHANGES = TreeChanges(frozenset())


class JournalLook(NamedTuple):
    """What a snapshot shows of the journal.

    Args:
        place: where it stands.
        changes: what has changed; None for everything.
    """

    place: Cursor
    changes: TreeChanges | None


def look(tx: Transaction, since: Cursor | None) -> JournalLook | None:
    """Return what has changed in this snapshot for a reader who stands at a place; None where no journal tells.

    A transaction that writes is told nothing: its own rows, which others do not see yet, would be passed. To who has
    seen a newer snapshot than this one everything has changed.

    Args:
        tx: the snapshot.
        since: where the reader stands; None before it has read anything.
    """
    if not tx.is_snapshot or not tx.database.keeps_journal or tx.dialect not in {POSTGRESQL, SQLITE}:
        return None
    try:
        if since is None:
            return JournalLook(now(tx), None)
        place, rows = new_rows(tx, since)
    except JournalOfAnother:
        return None
    return JournalLook(place, None if rows is None else _told(rows, is_exact=since.is_exact))


def _told(rows: Collection[RowOfTree], *, is_exact: bool) -> TreeChanges | None:
    """Return what rows tell; None where that is too little, or too much."""
    named = {row[0] for row in rows}
    # A provider is in no tree when it has just been made and before it goes. What it has always is in one.
    if None in named and any(row[0] is None and row[2] != PROVIDER for row in rows):
        return None
    named.update([row[1] for row in rows])
    named.discard(None)
    changed = frozenset(named)
    if len(changed) >= MOST_CHANGED:
        return None
    if not is_exact:  # What was shown, but did not count as seen, comes again.
        return TreeChanges(changed, untold=changed)
    return TreeChanges(changed, *_told_of_sums(rows))


def _told_of_sums(rows: Collection[RowOfTree]) -> tuple[list[SumStep], list[SumStep], set[int]]:
    """Return what has become of capacities, and of uses, and of which trees that is not told."""
    capacities, uses, untold = list[SumStep](), list[SumStep](), set[int]()
    for root, other, kind, class_id, used, old_row, new_row in rows:
        if used is not None:
            uses.append((root, class_id, used))
        elif new_row is not None:
            capacities.append((root, class_id, _capacity(new_row) - _capacity(old_row)))
        elif kind is not None:
            untold |= {root, other}
    untold.discard(None)
    return capacities, uses, untold


@lru_cache(maxsize=4096)
def _capacity(row: str) -> int:
    """Return the capacity of an inventory that the journal shows. Many are alike."""
    return Inventory(**orjson.loads(row)).capacity
