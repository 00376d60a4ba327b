"""Tells which trees have changed between the snapshots of requests, and keeps the columns of the cloud.

A snapshot in which any tree has changed gets the next number. Snapshots may come out of order: an older one is told
which trees may differ from the newest state. The columns follow the journal to the newest state; trees that differ in a
snapshot, or whose changes the journal does not fully cover, are read in that snapshot. Rows of MariaDB's journal are
numbered in the background, for readers who cannot write in their snapshots.
"""

import logging
import math
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from placement.cloud.columns import CloudColumns
from placement.cloud.derived import MAX_CHANGED, NO_CHANGES, CloudChanges, reading_all_pays
from placement.services.journal import put_in_order
from placement.store.connection.database import Database, Transaction
from placement.store.connection.statements import PreparedScalars, Values
from placement.store.journal.changes import Along, JournalLook, look, may_read_along, needs_numbers
from placement.store.journal.order import Cursor
from placement.store.search.cloud_rows import cloud_rows

MAX_AGE_S = 300.0
"""After this long everything counts as changed: a writer may have gone past the triggers, and left no trace."""

MAX_STATES = 256
"""The most to remember. A reader further behind reads everything."""

MAX_ROOTS = 100_000
"""The most changed roots to remember, some ten megabytes."""

LOG = logging.getLogger(__name__)

TOLERATED_UNNUMBERED = 50
"""With more rows than so many without numbers, it costs less to number them than to remember them."""

NUMBERING_PAUSE_S = 60.0
"""After a failure, it is left to others for so long."""

NUMBERING_THREAD = "numbering"


class CloudVersion(NamedTuple):
    """Where a snapshot stands in a history: at the newest state, by number, but for what may differ ``differing``."""

    history: "TreeHistory"
    number: int
    differing: CloudChanges = NO_CHANGES

    @property
    def is_newest(self) -> bool:
        """Whether the snapshot shows the newest state."""
        return not any(self.differing)

    def changed_since(self, number: int) -> CloudChanges | None:
        """Return what may differ from the state with a number; None for everything."""
        changed = self.history.changed(number, self.number)
        if changed is None:
            return None
        if number > self.number:  # Seen from the later state, less is in use here.
            changed = changed._replace(filled=frozenset())
        return changed.together_with(self.differing)


class _SeenState(NamedTuple):
    """A state of all trees: its number and cursor, and what has changed since the state before; None for all."""

    number: int
    place: Cursor
    changed: CloudChanges | None


class TreeHistory:
    """The states of the trees of one database, shared by threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._begun_at = clock()
        self._states: deque[_SeenState] = deque()
        self._roots = 0
        self._columns: CloudColumns | None = None
        """The newest state; None if it has to be read."""
        self._stale = set[int]()
        """The roots of the trees that are no longer as the columns show them."""
        self._reading = threading.Lock()
        """Held to read columns for all."""
        self._numbering = BackgroundNumbering(clock)

    def version(self, tx: Transaction) -> CloudVersion | None:
        """Return where a snapshot stands, the same each time; None without a usable journal or after too much."""
        if self not in tx.remembered:
            self._look(tx)
        version_: CloudVersion | None = tx.remembered[self]
        return version_

    def read_along(self, tx: Transaction, scalars: PreparedScalars, values: Values) -> Sequence[Any] | None:
        """Return scalars in a snapshot, read in one statement with its version; None if they must be read alone."""
        if self in tx.remembered or not self._states or not may_read_along(tx):
            return None
        return self._look(tx, Along(scalars, values))

    def _look(self, tx: Transaction, along: Along | None = None) -> Sequence[Any] | None:
        """Find the version of a snapshot; return the scalars that were read along."""
        with self._lock:
            newest = self._states[-1] if self._states else None
            if self._clock() - self._begun_at > MAX_AGE_S:
                newest = None
            shown = look(tx, newest and newest.place, along)
            tx.remembered[self] = shown and self._version(tx, shown, newest)
        if needs_numbers(tx, shown and shown.place, tolerated=self._numbering.tolerates):
            self._numbering.begin(tx.database)
        return shown and shown.along

    def _version(self, tx: Transaction, shown: JournalLook, newest: _SeenState | None) -> CloudVersion | None:
        """Return the version of a snapshot from what it shows of the journal since the newest state."""
        if newest is None:
            self._begun_at = self._clock()
            tx.database.note_read_anew()
            return self._noted(shown._replace(changes=None))
        if shown.changes is None:
            # Where neither snapshot contains the other, the journal was replaced.
            is_earlier = shown.place.is_part_of(newest.place) and not newest.place.is_part_of(shown.place)
            return self._earlier(tx, shown.place) if is_earlier else self._noted(shown)
        if shown.changes.roots:
            return self._noted(shown)
        self._states[-1] = newest._replace(place=shown.place)
        return CloudVersion(self, newest.number)

    def changed(self, first: int, second: int) -> CloudChanges | None:
        """Return what may differ between two states; None for everything."""
        earlier, later = sorted((first, second))
        with self._lock:
            return self._changed(earlier, later)

    def columns(self, tx: Transaction, version: CloudVersion) -> CloudColumns:
        """Return the cloud as a snapshot shows it, reading only what is not known of it."""
        if version.is_newest:
            self._read_for_all(tx, version)
        columns, differing = self._kept_columns(version)
        if columns is None or len(differing) > MAX_CHANGED:
            return CloudColumns.from_rows(cloud_rows(tx))
        return columns.with_trees(differing, cloud_rows(tx, differing)) if differing else columns

    def random_trees(
        self, version: CloudVersion, number: int, *, also: Collection[int]
    ) -> tuple[CloudColumns, set[int]] | None:
        """Return the columns, and the roots of some random trees and of ``also``, that they show as in a snapshot."""
        columns, differing = self._kept_columns(version)
        if columns is None:
            return None
        roots = columns.providers.roots
        picked = random.sample(range(len(roots)), min(number, len(roots)))  # keeps no secret
        return columns, {*roots[picked].tolist(), *also} - differing

    def _kept_columns(self, version: CloudVersion) -> tuple[CloudColumns | None, AbstractSet[int]]:
        """Return the columns, and the roots of the trees that may differ from them in a snapshot; None if unknown."""
        with self._lock:
            later = self._changed_after(version)
            if later is None:
                return None, frozenset()
            return self._columns, later.together_with(version.differing).roots | self._stale

    def drop(self) -> None:
        """Have everything count as changed."""
        with self._lock:
            self._begun_at = -math.inf

    def _read_for_all(self, tx: Transaction, version: CloudVersion) -> None:
        """Read what is missing or stale in the newest state; trees that have changed since the snapshot stay stale."""
        with self._reading:
            with self._lock:
                columns, stale = self._columns, frozenset(self._stale)
            if columns is None or reading_all_pays(len(stale), len(columns.providers.roots)):
                everything = CloudColumns.from_rows(cloud_rows(tx))
                with self._lock:
                    later = self._changed_after(version)
                    self._columns = None if later is None else everything
                    self._stale = {*(later.roots if later else ())}
            elif stale:
                rows = cloud_rows(tx, stale)
                with self._lock:
                    later = self._changed_after(version)
                    if later is not None and self._columns is not None:
                        self._columns = self._columns.with_trees(stale, rows)
                        self._stale = self._stale - stale | (later.roots & stale)

    def _changed_after(self, version: CloudVersion) -> CloudChanges | None:
        return self._changed(version.number, self._states[-1].number)

    def _noted(self, shown: JournalLook) -> CloudVersion:
        number = self._states[-1].number + 1 if self._states else 1
        self._states.append(_SeenState(number, shown.place, shown.changes))
        if shown.changes is None:
            self._columns = None
        elif self._columns is not None:
            self._columns, unknown = self._columns.with_uses(shown.uses)
            self._stale |= shown.unclear | unknown
        self._roots += _size(shown.changes)
        while len(self._states) > MAX_STATES or self._roots > MAX_ROOTS:
            self._roots -= _size(self._states.popleft().changed)
        return CloudVersion(self, number)

    def _earlier(self, tx: Transaction, place: Cursor) -> CloudVersion | None:
        """Place a snapshot that lacks changes already seen: what differs is what changed since a state it contains."""
        newest = self._states[-1].number
        for state in reversed(self._states):
            if state.place.is_part_of(place):
                shown, after = look(tx, state.place), self._changed(state.number, newest)
                if shown is None or shown.changes is None or after is None:
                    return None
                differing = after.together_with(shown.changes)
                return CloudVersion(self, newest, differing._replace(filled=frozenset()))  # Less may be in use here.
        return None

    def _changed(self, earlier: int, later: int) -> CloudChanges | None:
        if earlier == later:
            return NO_CHANGES
        if earlier + 1 < self._states[0].number:
            return None
        if earlier + 1 == self._states[-1].number:
            return self._states[-1].changed
        roots, marks, altered = set[int](), set[tuple[str, int]](), set[int]()
        for state in reversed(self._states):
            if state.number <= earlier:
                break
            if state.number <= later:
                if state.changed is None:
                    return None
                roots |= state.changed.roots
                marks |= state.changed.marks
                altered |= state.changed.roots - state.changed.filled
        return CloudChanges(frozenset(roots), frozenset(marks), frozenset(roots - altered))


def _size(changed: CloudChanges | None) -> int:
    return 0 if changed is None else len(changed.roots) + len(changed.marks)


class BackgroundNumbering:
    """Numbers the rows of one database, in one thread at a time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.tolerates = random.randint(TOLERATED_UNNUMBERED, 2 * TOLERATED_UNNUMBERED)  # noqa: S311 - of many workers, usually one begins
        """With more rows than so many without numbers, a reader should begin."""
        self._clock = clock
        self._busy = threading.Lock()
        self._paused_until = clock()

    def begin(self, database: Database) -> None:
        """Begin, for a standby on its primary, unless it is under way or has just failed."""
        if self._clock() >= self._paused_until and self._busy.acquire(blocking=False):
            where = database.primary or database
            threading.Thread(target=self._number, args=(where,), name=NUMBERING_THREAD, daemon=True).start()

    def _number(self, database: Database) -> None:
        try:
            put_in_order(database)
        except Exception as error:
            self._paused_until = self._clock() + NUMBERING_PAUSE_S
            LOG.info("The journal's rows could not be numbered: %s", error)
        finally:
            self._busy.release()
