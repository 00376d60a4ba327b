"""Which trees have changed between the snapshots of requests: read from the journal once, for all who keep something.

A snapshot in which any tree has changed gets the next number. Snapshots need not come in their order: for one that is
older than the newest it is told which trees may be otherwise.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.changes import place_of, roots_changed
from placement.store.journal.cursor import Cursor

LONGEST_KEPT_S = 300.0
"""After so long everything counts as changed: whoever removes the journal's triggers while servers run leaves no row.
"""

MOST_STATES = 256
"""So many are remembered. Who is further behind reads everything."""

MOST_ROOTS = 100_000
"""Of so many changed trees they tell in all, some ten megabytes."""

Roots = frozenset[int]
"""The roots of trees."""


class Moment(NamedTuple):
    """Where a snapshot stands in a history.

    Args:
        number: the number of the newest state.
        apart: the roots of the trees that may be otherwise in the snapshot, where that is older.
    """

    number: int
    apart: Roots = frozenset()


class _SeenState(NamedTuple):
    """What was seen of all trees, where in the journal, and what had changed since the state before; None for all."""

    number: int
    place: Cursor
    changed: Roots | None


class TreeHistory:
    """The states of the trees of one database; threads share it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._begun_at = clock()
        self._states: deque[_SeenState] = deque()
        self._roots = 0

    @property
    def has_begun(self) -> bool:
        """Whether the journal has ever told where a snapshot stands."""
        return bool(self._states)

    def moment(self, tx: Transaction) -> Moment | None:
        """Return where a snapshot stands; None where no journal tells, or too much has changed since."""
        place = place_of(tx)
        if place is None:
            return None
        with self._lock:
            if not self._states or self._clock() - self._begun_at > LONGEST_KEPT_S:
                self._begun_at = self._clock()
                return self._noted(place, None)
            newest = self._states[-1]
            if not newest.place.seen.is_part_of(place.seen):
                return self._earlier(tx, place)
            changed = roots_changed(tx, newest.place, place)
            if changed is None or changed:
                return self._noted(place, changed)
            self._states[-1] = newest._replace(place=place)
            return Moment(newest.number)

    def changed(self, one: int, other: int) -> Roots | None:
        """Return the roots of the trees that may differ between two states; None for all."""
        earlier, later = sorted((one, other))
        with self._lock:
            return self._changed(earlier, later)

    def _noted(self, place: Cursor, changed: Roots | None) -> Moment:
        number = self._states[-1].number + 1 if self._states else 1
        self._states.append(_SeenState(number, place, changed))
        self._roots += len(changed or ())
        while len(self._states) > MOST_STATES or self._roots > MOST_ROOTS:
            self._roots -= len(self._states.popleft().changed or ())
        return Moment(number)

    def _earlier(self, tx: Transaction, place: Cursor) -> Moment | None:
        """Return where a snapshot stands that does not show all that was seen: apart from what came after it."""
        newest = self._states[-1].number
        for state in reversed(self._states):
            if state.place.seen.is_part_of(place.seen):
                before, after = roots_changed(tx, state.place, place), self._changed(state.number, newest)
                return None if before is None or after is None else Moment(newest, before | after)
        return None

    def _changed(self, earlier: int, later: int) -> Roots | None:
        if earlier == later:
            return frozenset()
        if earlier + 1 < self._states[0].number:
            return None
        found: set[int] = set()
        for state in reversed(self._states):
            if state.number <= earlier:
                break
            if state.number <= later:
                if state.changed is None:
                    return None
                found |= state.changed
        return frozenset(found)


class TreeHistories:
    """A history for each database: what is read from a standby has one of its own."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._by_database: dict[int, tuple[Database, TreeHistory]] = {}

    def of(self, database: Database) -> TreeHistory:
        """Return the history of a database."""
        with self._lock:
            # The database is kept with it, so that no other can get its id.
            return self._by_database.setdefault(id(database), (database, TreeHistory(self._clock)))[1]
