"""Tells caches which trees have changed between the snapshots of requests, and maintains the sums of all trees.

A snapshot in which any tree has changed gets the next number. Snapshots may come out of order: an older one is told
which trees may differ from the newest state. Sums follow the journal to the newest state; those of trees that differ in
a snapshot, or whose changes the journal does not fully cover, are read in that snapshot.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from placement.services.numbering import BackgroundNumbering
from placement.services.tree_sums import AskedSums, SumsByClass
from placement.store.connection.database import Database
from placement.store.connection.prepared import PreparedScalars, Values
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.changes import MAX_CHANGED, JournalLook, TreeChanges, look
from placement.store.journal.cursor import Cursor
from placement.store.journal.tree_rows import Along, may_read_along, needs_numbers
from placement.store.search.scores import TreeSums, class_sums, roots_with_unstocked_use, tree_sums

MAX_AGE_S = 300.0
"""After this long everything counts as changed: a writer may have gone past the triggers, and left no trace."""

MAX_STATES = 256
"""The most to remember. A reader further behind reads everything."""

MAX_ROOTS = 100_000
"""The most changed roots to remember, some ten megabytes."""

Roots = frozenset[int]
"""The roots of trees."""


class Moment(NamedTuple):
    """Where a snapshot stands in a history.

    Args:
        number: the number of the newest state.
        apart: the roots of the trees that may differ in the snapshot, if that is older.
    """

    number: int
    apart: Roots = frozenset()


class _SeenState(NamedTuple):
    """A state of all trees: its number and cursor, and the roots changed since the state before; None for all."""

    number: int
    place: Cursor
    changed: Roots | None


class TreeHistory:
    """The states of the trees of one database, shared by threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._begun_at = clock()
        self._states: deque[_SeenState] = deque()
        self._roots = 0
        self._sums = SumsByClass()
        self._reading = threading.Lock()
        """Held to read sums for all."""
        self._numbering = BackgroundNumbering(clock)

    @property
    def has_begun(self) -> bool:
        """Whether any snapshot has been found in the journal yet."""
        return bool(self._states)

    def moment(self, tx: Transaction) -> Moment | None:
        """Return where a snapshot stands; None without a usable journal, or if too much has changed since.

        Memoised per snapshot: later commits do not change what it shows.
        """
        if self not in tx.remembered:
            self._look(tx)
        known: Moment | None = tx.remembered[self]
        return known

    def read_along(self, tx: Transaction, scalars: PreparedScalars, values: Values) -> Sequence[Any] | None:
        """Return scalars in a snapshot, read in one statement with its moment; None if they must be read alone."""
        if self in tx.remembered or not self._states or not may_read_along(tx):
            return None
        return self._look(tx, Along(scalars, values))

    def _look(self, tx: Transaction, along: Along | None = None) -> Sequence[Any] | None:
        """Find the moment of a snapshot; return the scalars that were read along."""
        with self._lock:
            newest = self._states[-1] if self._states else None
            if self._clock() - self._begun_at > MAX_AGE_S:
                newest = None
            found = look(tx, newest and newest.place, along)
            tx.remembered[self] = found and self._moment(tx, found, newest)
        if needs_numbers(tx, found and found.place, most=self._numbering.tolerates):
            self._numbering.begin(tx.database)
        return found and found.along

    def _moment(self, tx: Transaction, found: JournalLook, newest: _SeenState | None) -> Moment | None:
        """Return the moment of a snapshot from what it shows of the journal since the newest state."""
        if newest is None:
            self._begun_at = self._clock()
            tx.database.note_read_anew()
            return self._noted(found.place, None)
        if found.changes is None and _is_earlier(found.place, newest.place):
            return self._earlier(tx, found.place)
        if found.changes is None or found.changes.roots:
            return self._noted(found.place, found.changes)
        self._states[-1] = newest._replace(place=found.place)
        return Moment(newest.number)

    def changed(self, one: int, other: int) -> Roots | None:
        """Return the roots of the trees that may differ between two states; None for all."""
        earlier, later = sorted((one, other))
        with self._lock:
            return self._changed(earlier, later)

    def sums(
        self, tx: Transaction, moment: Moment, asked: AskedSums, roots: Collection[int] | None = None
    ) -> list[TreeSums]:
        """Return what ``tree_sums`` would, reading only what is not cached.

        Args:
            tx: the snapshot.
            moment: where it stands.
            asked: the classes.
            roots: the trees; None for all.
        """
        classes, known = asked.ids, list[TreeSums]()
        if tx.database.keeps_usage and not moment.apart:
            self._read_for_all(tx, moment, classes)
        with self._lock:
            later = self._changed_after(moment)
            if later is not None and classes <= self._sums.classes:
                elsewhere = later | moment.apart | self._sums.unknown
                known = self._sums.rows(asked, roots, but=elsewhere)
                roots = elsewhere if roots is None else elsewhere.intersection(roots)
        if roots is not None and len(roots) > MAX_CHANGED:
            known, roots = [], None
        return known if roots is not None and not roots else known + tree_sums(tx, *asked, roots)

    def _read_for_all(self, tx: Transaction, moment: Moment, classes: Roots) -> None:
        """Read missing and stale sums; those of trees changed since the snapshot stay unknown."""
        if self._sums.classes >= classes and not self._sums.unknown:
            return
        with self._reading:
            with self._lock:
                if self._sums.are_little_known:
                    self._sums = SumsByClass()
                sums = self._sums
                missing, unknown = sorted(classes - sums.classes), frozenset(sums.unknown)
            if missing:
                rows, unstocked = class_sums(tx, missing), roots_with_unstocked_use(tx)
                with self._lock:
                    sums.add(missing, rows, unstocked)
                    self._mark_unknown(sums, self._changed_after(moment))
            if unknown:
                rows, unstocked = class_sums(tx, [*sums.classes], unknown), roots_with_unstocked_use(tx, unknown)
                with self._lock:
                    sums.renew(unknown, rows, unstocked)
                    later = self._changed_after(moment)
                    self._mark_unknown(sums, None if later is None else later & unknown)

    def _mark_unknown(self, sums: SumsByClass, later: Roots | None) -> None:
        """Mark as unknown the trees that have changed since they were read; None for all."""
        if later is not None:
            sums.unknown |= later
        elif self._sums is sums:
            self._sums = SumsByClass()

    def _changed_after(self, moment: Moment) -> Roots | None:
        return self._changed(moment.number, self._states[-1].number)

    def _noted(self, place: Cursor, changes: TreeChanges | None) -> Moment:
        number = self._states[-1].number + 1 if self._states else 1
        changed = None if changes is None else changes.roots
        self._states.append(_SeenState(number, place, changed))
        if changes is None:
            self._sums = SumsByClass()
        else:
            self._sums.follow(changes)
        self._roots += len(changed or ())
        while len(self._states) > MAX_STATES or self._roots > MAX_ROOTS:
            self._roots -= len(self._states.popleft().changed or ())
        return Moment(number)

    def _earlier(self, tx: Transaction, place: Cursor) -> Moment | None:
        """Place a snapshot that lacks changes already seen: apart is what differs since a state it contains."""
        newest = self._states[-1].number
        for state in reversed(self._states):
            if state.place.is_part_of(place):
                found, after = look(tx, state.place), self._changed(state.number, newest)
                if found is None or found.changes is None or after is None:
                    return None
                return Moment(newest, found.changes.roots | after)
        return None

    def _changed(self, earlier: int, later: int) -> Roots | None:
        if earlier == later:
            return frozenset()
        if earlier + 1 < self._states[0].number:
            return None
        if earlier + 1 == self._states[-1].number:
            return self._states[-1].changed
        found: set[int] = set()
        for state in reversed(self._states):
            if state.number <= earlier:
                break
            if state.number <= later:
                if state.changed is None:
                    return None
                found |= state.changed
        return frozenset(found)


def _is_earlier(place: Cursor, than: Cursor) -> bool:
    """Tell whether a snapshot is older than another. Where neither contains the other, the journal was replaced."""
    return place.is_part_of(than) and not than.is_part_of(place)


class TreeHistories:
    """A history for each database; a standby has one of its own."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._by_database: dict[int, tuple[Database, TreeHistory]] = {}

    def of(self, database: Database) -> TreeHistory:
        """Return the history of a database."""
        known = self._by_database.get(id(database))
        if known is None:
            with self._lock:
                # The entry holds the database, so that no other can get its id.
                known = self._by_database.setdefault(id(database), (database, TreeHistory(self._clock)))
        return known[1]
