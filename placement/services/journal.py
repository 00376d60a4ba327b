"""Use cases of the journal: what changed since a cursor, and who changed what."""

from datetime import datetime, timedelta

from placement.errors import NotFound, Unavailable
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads, writes
from placement.store.journal import order, reading
from placement.store.journal.beginning import JournalExtent, extent
from placement.store.journal.cursor import BEGINNING, Cursor
from placement.store.journal.history import PastProvider, provider_at
from placement.store.journal.order import JournalOfAnother, NumberedMeanwhile
from placement.store.journal.pruning import prune_some
from placement.store.journal.reading import Entry, Wanted
from placement.store.tables import utc_now

NUMBERING_TRIES = 20
EVERYTHING = Wanted()


def read_feed(
    database: Database, cursor: Cursor = BEGINNING, wanted: Wanted = EVERYTHING, *, limit: int
) -> tuple[list[Entry], Cursor]:
    """Return at most ``limit`` rows that a cursor has not seen, in commit order, and the cursor after them.

    Raises:
        CursorGone: unseen rows may have been deleted; start from the beginning.
    """
    put_in_order(database)
    try:
        return _feed(database, cursor, wanted, limit)
    except JournalOfAnother:
        _make_ours(database)
        return _feed(database, cursor, wanted, limit)


def newest(database: Database) -> Cursor:
    """Return the cursor that has seen everything."""
    put_in_order(database)
    try:
        return _newest(database)
    except JournalOfAnother:
        _make_ours(database)
        return _newest(database)


def prune(database: Database, *, keep_days: int) -> int:
    """Delete rows older than ``keep_days``, portion by portion; return how many were deleted."""
    put_in_order(database)  # A reader that remembers rows without numbers would take their loss for another journal.
    before = _days_ago(keep_days)
    removed = 0
    while some := _prune_some(database, before):
        removed += some
    return removed


def _days_ago(days: int) -> datetime:
    """Return a moment in the past, or the first there is if that would be before it."""
    try:
        return utc_now() - timedelta(days=days)
    except OverflowError:
        return datetime.min


@writes
def _prune_some(tx: Transaction, before: datetime) -> int:
    return prune_some(tx, before)


@reads
def journal_extent(tx: Transaction) -> JournalExtent:
    """Return how much the journal holds, and how late its readers are."""
    return extent(tx)


@reads
def read_history(tx: Transaction, provider_uuid: str, moment: datetime) -> PastProvider:
    """Return the state of a provider at a moment.

    Raises:
        TooLongAgo: the journal does not go back that far.
        NotFound: there was no such provider.
    """
    past = provider_at(tx, provider_uuid, moment)
    if not past.exists:
        raise NotFound(f"There was no resource provider with uuid {provider_uuid} at that time.")
    return past


@reads
def read_trail(tx: Transaction, wanted: Wanted, *, limit: int, before: int | None = None) -> list[Entry]:
    """Return at most ``limit`` rows with ids below ``before``, newest first."""
    return reading.trail(tx, wanted, limit=limit, before=before)


@reads
def _feed(tx: Transaction, cursor: Cursor, wanted: Wanted, limit: int) -> tuple[list[Entry], Cursor]:
    return reading.feed(tx, cursor, wanted, limit=limit)


@reads
def _newest(tx: Transaction) -> Cursor:
    return order.cursor_of(tx)


def put_in_order(database: Database) -> None:
    """On MariaDB, number every journal row that is committed by now."""
    if database.dialect not in {"mysql", "mariadb"}:
        return
    for _ in range(NUMBERING_TRIES):
        try:
            while not _number_some(database):
                pass
        except NumberedMeanwhile:
            continue
        return
    raise Unavailable("Others number the journal's rows all the time; try again.")


@writes
def _number_some(tx: Transaction) -> bool:
    return order.number_rows(tx)


@writes
def _make_ours(tx: Transaction) -> None:
    order.make_ours(tx)
