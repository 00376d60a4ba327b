"""Tells which trees have changed since a reader's last snapshot, so that caches need not read the whole cloud again."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, NamedTuple

from placement.cloud.columns import UseStep
from placement.cloud.derived import MAX_CHANGED
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.cursor import Cursor
from placement.store.journal.order import JournalOfAnother
from placement.store.journal.tree_rows import Along, NewRows, RowOfTree, new_rows, place_of
from placement.store.journal.triggers import is_whole
from placement.store.journal.watched import ALLOCATION, MARK_KINDS, PROVIDER

_NO_STEPS: Mapping[int, Sequence[UseStep]] = MappingProxyType({})


class TreeChanges(NamedTuple):
    """What has changed from one snapshot to another.

    Only this server's own allocations yield steps: it locks the provider before it writes, so that the journal row
    names the provider's actual tree. Other writers do not, so their rows count as changes to the tree that the row
    names and to the provider's current one.

    Args:
        roots: the roots of all changed trees.
        marks: the traits and aggregates, by kind and id, that any provider has been given or has lost; and, by kind and
            root, the trees in which a provider has come or gone, or has another name or parent.
        uses: changes in what is in use, by the id of the class, in any order; each counts once.
        untold: the roots of the trees whose providers or amounts have changed in other ways.
        filled: the roots of the trees in which nothing has changed but that more is in use.
    """

    roots: frozenset[int]
    marks: frozenset[tuple[str, int]] = frozenset()
    uses: Mapping[int, Sequence[UseStep]] = _NO_STEPS
    untold: AbstractSet[int] = frozenset()
    filled: frozenset[int] = frozenset()


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
    any transaction between the two (triggers.py): what follows the journal through here is never without a row.

    Args:
        tx: the snapshot.
        since: the reader's cursor; None before it has read anything.
        along: scalars to read in the same statement, which saves one, where that is possible.
    """
    if not tx.is_snapshot or not tx.database.keeps_journal:
        return None
    try:
        new = _anything(tx) if since is None else new_rows(tx, since, along)
    except JournalOfAnother:
        return None
    if new is None or not is_whole(tx, new.place.triggers):
        return None
    if since is None or new.rows is None or new.place.triggers != since.triggers:
        return JournalLook(new.place, None, new.along)
    return JournalLook(new.place, _told(new.rows, is_exact=since.is_exact), new.along)


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
    marks = frozenset([mark for row in rows for mark in _marks(row)])
    if not is_exact:  # Rows shown without counting as seen come again: steps would be counted twice.
        return TreeChanges(changed, marks, untold=changed)
    altered = {root for row in rows if not _only_fills(row) for root in row[:2]}
    return TreeChanges(changed, marks, *_amounts_told(rows), changed - altered)


def _only_fills(row: RowOfTree) -> bool:
    _root, _other, kind, is_ours, _class_id, more, *_rest = row
    return bool(is_ours) and kind == ALLOCATION and more >= 0


def _marks(row: RowOfTree) -> Sequence[tuple[str, int]]:
    root, other, kind, _is_ours, mark, *_rest = row
    if kind == PROVIDER:
        return [(PROVIDER, of) for of in (root, other) if of is not None]
    return [(kind, mark)] if kind in MARK_KINDS else ()


def _amounts_told(rows: Collection[RowOfTree]) -> tuple[Mapping[int, Sequence[UseStep]], set[int]]:
    """Return the steps of what is in use, and the roots of the trees that they do not fully cover."""
    uses = defaultdict[int, list[UseStep]](list)
    untold = set[int]()
    for root, other, kind, is_ours, class_id, more, provider, _nothing in rows:
        if is_ours and kind == ALLOCATION:
            uses[class_id].append(UseStep(root, provider, more))
        elif kind not in MARK_KINDS:
            untold |= {root, other}
    untold.discard(None)
    return uses, untold
