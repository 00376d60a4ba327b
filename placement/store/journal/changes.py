"""Which trees have changed since somebody looked: what keeps a picture of a cloud current without reading it again."""

from collections.abc import Collection, Sequence
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
    tree that the provider is in, and lets nobody take of what has no inventory; others may do otherwise.

    Args:
        roots: the roots of the trees of which something has changed.
        capacities: what has become of their capacities, in any order; each counts once.
        uses: likewise, of what is in use.
        untold: the roots of those trees of which steps do not tell all.
    """

    roots: frozenset[int]
    capacities: Sequence[SumStep] = ()
    uses: Sequence[SumStep] = ()
    untold: frozenset[int] = frozenset()


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
    if not rows:
        return NO_CHANGES
    roots, befores, kinds, classes, uses, old_rows, new_rows = zip(*rows, strict=True)
    named = {*roots}
    # A provider is in no tree when it has just been made and before it goes. What it has always is in one.
    if None in named and any(root is None and kind != PROVIDER for root, kind in zip(roots, kinds, strict=True)):
        return None
    # A row of a provider that has moved tells of two.
    changed = frozenset(named.union(befores)) - {None}
    if len(changed) >= MOST_CHANGED:
        return None
    if not is_exact:  # What was shown, but did not count as seen, comes again.
        return TreeChanges(changed, untold=changed)
    stocks = zip(roots, classes, old_rows, new_rows, strict=True)
    capacities = [(root, one, _capacity(new) - _capacity(old)) for root, one, old, new in stocks if new is not None]
    untold = {root for row in rows if row[2] is not None for root in row[:2]} - {None}
    used = [step for step in zip(roots, classes, uses, strict=True) if step[2] is not None]
    return TreeChanges(changed, capacities, used, frozenset(untold))


@lru_cache(maxsize=4096)
def _capacity(row: str) -> int:
    """Return the capacity of an inventory that the journal shows. Many are alike."""
    return Inventory(**orjson.loads(row)).capacity
