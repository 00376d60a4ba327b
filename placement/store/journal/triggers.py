"""Creates, checks and drops the journal's triggers.

Like those that keep usage, they do not belong to the migrations: the triggers found in a database are compared with
this release's text and recreated where they differ.
"""

from collections.abc import Collection

from sqlalchemy import Connection, func, insert, select

from placement.store.journal.trigger_texts import MARIADB, POSTGRESQL, SQLITE
from placement.store.journal.watched import BEGAN, JOURNAL, WATCHED
from placement.store.tables import placement_journal, utc_now
from placement.store.trigger_set import refusals_explained

_MARKS_ON_POSTGRESQL = (
    "SELECT pg_current_xact_id()::text::bigint AS commit_mark, "
    "pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest_open"
)

SETS = {"postgresql": POSTGRESQL, "sqlite": SQLITE, "mysql": MARIADB, "mariadb": MARIADB}

EARLIER: Collection[str] = frozenset(
    {
        "3034a34071aa4142", "9b9b14d0a92e090b", "403d3a02695d94d8", "05fd44b2fdad54ec", "6d70e77d1fc75a39",
        "95a1fbee6c8d8842", "b0debc8935d6c79b", "bba72890aff2581c", "be17cffbb16e77d4",
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
    """Recreate the triggers, and record in the journal that it begins here.

    Runs within a transaction of ``maintenance.exclusively``. Writing a table and creating a trigger on it block each
    other until the transaction ends: whatever commits after the last trigger is recorded in full, and whatever came
    before is older than the row written here.

    Raises:
        TriggersRefused: MariaDB withholds the privilege; the message names the missing grant.
    """
    remove(connection)
    resume(connection)
    begin(connection)


def bring_up_to_date(connection: Connection, earlier: Collection[str] = EARLIER) -> None:
    """Replace missing or outdated triggers; the journal continues if the present ones wrote the same.

    Args:
        connection: within a transaction of ``maintenance.exclusively``.
        earlier: fingerprints of triggers that wrote what these do.

    Raises:
        TriggersRefused: as ``install``.
    """
    ours = SETS[connection.dialect.name]
    if ours.standing_fingerprint(connection) not in {*earlier, ours.fingerprint(connection.dialect.name)}:
        install(connection)
        return
    _keep_writers_out(connection)
    with refusals_explained(connection, remove, "there is no journal. To have one"):
        ours.replace(connection)


def _keep_writers_out(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        tables = ", ".join(watched.table for watched in WATCHED)
        connection.exec_driver_sql(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")


def resume(connection: Connection) -> None:
    """Create the triggers where nothing has changed without them: the journal continues.

    Raises:
        TriggersRefused: as ``install``.
    """
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
