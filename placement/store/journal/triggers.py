"""Creates, checks and drops the journal's triggers, and proves that the journal lacks nothing between two snapshots.

Like those that keep usage, they do not belong to the migrations: the triggers found in a database are compared with
this release's text and recreated where they differ.

A snapshot shows the *revision* of the triggers, which differs once anybody has created, dropped, disabled or enabled
one. If two snapshots show the same revision, and the triggers are whole in one of them, then they wrote down every
transaction that only one of the two shows:

* PostgreSQL: the number of triggers, and the sum of the ids of the transactions that last changed them. These ids only
  grow, so a trigger that was changed and changed back shows as well. Whoever changes a trigger waits for those who
  write the table, and they for him: a snapshot that shows a write shows every change of triggers before it.
* SQLite: the number of changes to its schema, in the snapshot.
* MariaDB: no snapshot shows triggers, and asking for them takes 7 ms. They are looked up every ``MARIADB_LOOKS_S``.

No revision shows what goes past triggers that are there: ``session_replication_role = replica``, SQLite's setting of a
connection, TRUNCATE on MariaDB, the body of a function replaced by hand. For these there are /readycheck, the
comparison of cached values with the tables, and ``placement db check``.
"""

import logging
import time
from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Executable, String, func, insert, literal_column, select, text

from placement.store import kept_usage
from placement.store.connection.database import Database, Transaction
from placement.store.journal.trigger_texts import MARIADB, POSTGRESQL, SQLITE
from placement.store.journal.watched import BEGAN, JOURNAL, WATCHED
from placement.store.tables import placement_journal, utc_now
from placement.store.trigger_set import DOUBTED, refusals_explained

_MARKS_ON_POSTGRESQL = (
    "SELECT pg_current_xact_id()::text::bigint AS commit_mark, "
    "pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest_open"
)

SETS = {"postgresql": POSTGRESQL, "sqlite": SQLITE, "mysql": MARIADB}

EARLIER: Collection[str] = frozenset(
    {
        "3034a34071aa4142", "9b9b14d0a92e090b", "403d3a02695d94d8", "05fd44b2fdad54ec", "6d70e77d1fc75a39",
        "95a1fbee6c8d8842", "af81f1f3eb41ebaa", "b0debc8935d6c79b", "bba72890aff2581c", "be17cffbb16e77d4",
    }
)  # fmt: skip
"""Fingerprints of earlier releases' triggers whose rows mean what today's mean, so that the journal continues."""


def triggers_in_place(connection: Connection) -> bool:
    """Tell whether every trigger exists, is enabled and as in this release. Takes one small query."""
    return SETS[connection.dialect.name].is_in_place(connection)


def some_are_there(connection: Connection) -> bool:
    """Tell whether any of the triggers exists."""
    return SETS[connection.dialect.name].some_are_there(connection)


def install(connection: Connection) -> None:
    """Recreate the triggers, and record in the journal that it begins here; runs within ``maintenance.exclusively``.

    Writing a table and creating a trigger on it block each other until the transaction ends: whatever commits after the
    last trigger is recorded in full, and whatever came before is older than the row written here. TriggersRefused if
    MariaDB withholds the privilege.
    """
    remove(connection)
    resume(connection)
    begin(connection)


def bring_up_to_date(connection: Connection, earlier: Collection[str] = EARLIER) -> None:
    """Replace missing or outdated triggers; the journal continues if the present ones wrote the same.

    ``earlier`` are the fingerprints of triggers that wrote what these do.
    """
    current = SETS[connection.dialect.name]
    if current.standing_fingerprint(connection) not in {*earlier, current.fingerprint(connection.dialect.name)}:
        install(connection)
        return
    _keep_writers_out(connection)
    with refusals_explained(connection, remove, "there is no journal. To have one"):
        current.replace(connection)


def _keep_writers_out(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        tables = ", ".join(watched.table for watched in WATCHED)
        connection.exec_driver_sql(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")


def resume(connection: Connection) -> None:
    """Create the triggers where nothing has changed without them: the journal continues. Raises as ``install``."""
    _keep_writers_out(connection)
    with refusals_explained(connection, remove, "there is no journal. To have one"):
        SETS[connection.dialect.name].create(connection)


def begin(connection: Connection) -> None:
    """Record in the journal that it begins here: earlier changes may be missing."""
    row = {"time": utc_now(), "kind": JOURNAL, "action": BEGAN}
    if connection.dialect.name == "postgresql":
        row |= connection.exec_driver_sql(_MARKS_ON_POSTGRESQL).mappings().one()
    connection.execute(insert(placement_journal), row)


def remove(connection: Connection) -> None:
    """Drop whichever of the triggers and their functions exist."""
    SETS[connection.dialect.name].drop(connection)


def remove_those_of_names(connection: Connection) -> None:
    """Drop the triggers that write former names, for a release that has no table for them; the others go on."""
    tables = {watched.table for watched in WATCHED if watched.named}
    SETS[connection.dialect.name].on(tables).drop(connection)


def row_count(connection: Connection) -> int:
    """Return the number of recorded changes."""
    query = select(func.count()).select_from(placement_journal).where(placement_journal.c.kind != JOURNAL)
    return connection.execute(query).scalar_one()


def mark_of_the_past(connection: Connection) -> dict[str, int | None]:
    """Return the mark of a row written in another database: everything here is newer."""
    return {"commit_mark": 0 if connection.dialect.name == "postgresql" else None}


LOG = logging.getLogger(__name__)

MARIADB_LOOKS_S = 5.0

_WATCHED = ", ".join(f"CAST('{watched.table}' AS regclass)" for watched in WATCHED)
REVISION_ON_POSTGRESQL: ColumnElement[str] = literal_column(
    "(SELECT concat(count(*), '.', sum(CAST(CAST(xmin AS text) AS bigint))) FROM pg_trigger "  # noqa: S608
    f"WHERE tgrelid IN ({_WATCHED}) AND NOT tgisinternal)",
    String,
)
REVISION_ON_SQLITE: ColumnElement[str] = literal_column(
    "(SELECT CAST(schema_version AS text) FROM pragma_schema_version)", String
)
_REVISIONS = {"postgresql": REVISION_ON_POSTGRESQL, "sqlite": REVISION_ON_SQLITE}
_REVISION_ON_MARIADB = text(
    "SELECT CONCAT(COUNT(*), '.', COALESCE(SUM(UNIX_TIMESTAMP(created)), 0)) FROM information_schema.triggers "
    "WHERE trigger_schema = DATABASE()"
)


class TriggersFound(NamedTuple):
    """What a transaction shows of triggers: their revision, and whether those of usage and of the journal are whole."""

    revision: str
    keeps_usage: bool
    keeps_journal: bool


def triggers_found(tx: Transaction) -> TriggersFound:
    """Look the triggers up, with three small queries."""
    revision = _revision_read(tx)
    return TriggersFound(revision, kept_usage.triggers_in_place(tx.connection), triggers_in_place(tx.connection))


def trigger_revision(tx: Transaction) -> str:
    """Return the revision in a snapshot that has no other statement to read it along with."""
    database = tx.database
    if tx.dialect in _REVISIONS:
        return _revision_read(tx)
    if database.trigger_revision is None or time.monotonic() >= database.triggers_known_until:
        revision = _revision_read(tx)
        database.triggers_known_until = time.monotonic() + MARIADB_LOOKS_S
        return revision
    return database.trigger_revision


def revision_column(dialect: str) -> ColumnElement[str]:
    """Return a column with the revision, to read along; null on MariaDB."""
    return _REVISIONS.get(dialect, literal_column("NULL", String))


def _revision_read(tx: Transaction) -> str:
    query: Executable = select(_REVISIONS[tx.dialect]) if tx.dialect in _REVISIONS else _REVISION_ON_MARIADB
    return str(tx.execute(query).scalar_one())


def is_whole(tx: Transaction, revision: str | None) -> bool:
    """Tell whether all triggers of the journal are there under the revision that a snapshot shows."""
    have_changed(tx, revision)
    return tx.database.keeps_journal


def have_changed(tx: Transaction, revision: str | None) -> bool:
    """Tell whether a transaction shows another revision than is known; if so, look the triggers up and go by them."""
    if revision is None:
        revision = trigger_revision(tx)
    if revision == tx.database.trigger_revision:
        return False
    note(tx.database, triggers_found(tx))
    return True


def doubt_usage(database: Database) -> None:
    """Have usage summed until the triggers have been created anew, which counts it."""
    database.keeps_usage, database.doubted_revision = False, database.trigger_revision


def note(database: Database, now: TriggersFound) -> None:
    """Have a database go by the triggers that were found, and log what differs from before."""
    if now.revision == database.doubted_revision:
        now = now._replace(keeps_usage=False)
    before = TriggersFound(database.trigger_revision or now.revision, database.keeps_usage, database.keeps_journal)
    database.keeps_usage, database.keeps_journal = now.keeps_usage, now.keeps_journal
    database.trigger_revision = now.revision
    if before == now:
        return
    database.note_drop("triggers")
    if now.keeps_usage and now.keeps_journal:
        LOG.warning("The triggers have been changed and are whole: usage is kept, and caches begin anew.")
    if not now.keeps_usage:
        LOG.warning("The triggers that keep usage %s; usage is summed. Run 'placement db upgrade'.", DOUBTED)
    if not now.keeps_journal:
        LOG.warning("The triggers that write the journal %s; nothing is cached. Run 'placement db upgrade'.", DOUBTED)
