"""Use cases of the journal: what changed since a cursor, and who changed what."""

import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from placement.errors import NotFound, PlacementError, Unavailable
from placement.store.connection.batching import BackgroundWork
from placement.store.connection.database import Database, Transaction, reads, reads_anywhere, writes
from placement.store.journal import order, reading
from placement.store.journal.history import PastProvider, extent, provider_at, prune_some
from placement.store.journal.order import BEGINNING, Cursor, JournalOfAnother, NumberedMeanwhile
from placement.store.journal.reading import Entry, EntryFilter, NamedChange
from placement.store.tables import utc_now

LOG = logging.getLogger(__name__)

NUMBERING_TRIES = 20
FIRST_LOOK_S = 60.0
LOOK_EVERY_S = 600.0
PAUSE_S = 1.0
DAY_S = 86_400
EVERYTHING = EntryFilter()

Value = TypeVar("Value")


def read_feed(
    database: Database, cursor: Cursor = BEGINNING, entry_filter: EntryFilter = EVERYTHING, *, limit: int
) -> tuple[list[Entry], Cursor]:
    """Return some rows that a cursor has not seen, in commit order, and the cursor after them; or CursorGone."""
    return _of_our_journal(database, lambda: _feed(database, cursor, entry_filter, limit=limit))


def newest(database: Database) -> Cursor:
    """Return the cursor that has seen everything."""
    return _of_our_journal(database, lambda: _newest(database))


def _of_our_journal(database: Database, read: Callable[[], Value]) -> Value:
    """Return what is read of the journal in order, once it is this database's: a copy brings another one's."""
    put_in_order(database)
    try:
        return read()
    except JournalOfAnother:
        _make_ours(database)
        return read()


def prune(database: Database, *, keep_days: int) -> int:
    """Delete rows older than ``keep_days``, portion by portion; return how many were deleted."""
    put_in_order(database)  # A reader that remembers rows without numbers would take their loss for another journal.
    before = _days_ago(keep_days)
    removed = 0
    while portion := _prune_some(database, before).rows:
        removed += portion
    return removed


class JournalPruner:
    """Deletes old rows in the background of a server's requests: a portion, a pause, and so on.

    Where several workers do, all but one soon stop: whoever sees that another has deleted rows since leaves it to them.
    """

    def __init__(self, database: Database, keep_days: int, *, pause_s: float = PAUSE_S) -> None:
        self._database = database
        self._keep_days = keep_days
        self._pause_s = pause_s
        self.work = BackgroundWork(self.look, name="journal pruning", first_s=FIRST_LOOK_S, every_s=LOOK_EVERY_S)

    def look(self) -> int:
        """Delete the rows that are older than they should be; return how many."""
        removed, before = 0, _days_ago(self._keep_days)
        try:
            if journal_extent(self._database).age_s <= self._keep_days * DAY_S:
                return 0
            put_in_order(self._database)
            portion = _prune_some(self._database, before)
            while portion.rows:
                removed += portion.rows
                time.sleep(self._pause_s)
                portion = _prune_some(self._database, before, oldest=portion.oldest)
        except PlacementError as error:
            LOG.warning("The journal cannot be pruned at present: %s", error.message)
        if removed:
            LOG.info("%d rows of the journal were older than %d days and are deleted.", removed, self._keep_days)
        return removed


def _days_ago(days: int) -> datetime:
    """Return a moment in the past, or the first there is if that would be before it."""
    try:
        return utc_now() - timedelta(days=days)
    except OverflowError:
        return datetime.min


_prune_some = writes(prune_some)
journal_extent = reads(extent)
read_trail = reads(reading.trail)
_feed = reads(reading.feed)
_newest = reads(order.cursor_of)
_number_some = writes(order.number_rows)
_make_ours = writes(order.make_ours)


@reads
def read_history(tx: Transaction, provider_uuid: str, time_: datetime) -> PastProvider[str]:
    """Return the state of a provider at a moment; TooLongAgo, or NotFound if there was none."""
    past = provider_at(tx, provider_uuid, time_)
    if not past.exists:
        raise NotFound(f"There was no resource provider with uuid {provider_uuid} at that time.")
    return past


@reads
def provider_names(tx: Transaction, entries: Sequence[Entry]) -> dict[str, str]:
    """Return the names of the providers in entries that still exist, by uuid."""
    return {uuid: name for uuid, (name, *_root) in reading.provider_names(tx, entries).items()}


def put_in_order(database: Database) -> None:
    """On MariaDB, number every journal row that is committed by now."""
    if database.dialect != "mysql":
        return
    for _ in range(NUMBERING_TRIES):
        try:
            while not _number_some(database):
                pass
        except NumberedMeanwhile:
            continue
        return
    raise Unavailable("Other readers are numbering the rows of the journal; try again.")


@reads_anywhere
def changes(
    tx: Transaction, *, limit: int, providers: Sequence[str] = (), consumer: str | None = None
) -> list[NamedChange]:
    """Return the latest changes, newest first."""
    return reading.named_changes(tx, limit=limit, providers=providers, consumer=consumer)
