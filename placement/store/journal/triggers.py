"""Making, checking and removing the journal's triggers.

Like those that keep usage they are no part of a migration's history: what stands in a database is compared with the
text of this release, and made anew where it differs.
"""

from collections.abc import Collection

from sqlalchemy import Connection, func, insert, select

from placement.store.journal import postgresql_triggers, row_triggers
from placement.store.journal.watched import BEGAN, JOURNAL, WATCHED
from placement.store.tables import placement_journal, utc_now
from placement.store.trigger_set import refusals_explained

_SETS = {
    "postgresql": postgresql_triggers.SET,
    "sqlite": row_triggers.SQLITE,
    "mysql": row_triggers.MARIADB,
    "mariadb": row_triggers.MARIADB,
}


EARLIER: Collection[str] = frozenset({"3034a34071aa4142"})
"""Fingerprints of triggers of earlier releases after which the journal goes on: their rows mean what today's mean."""


def triggers_in_place(connection: Connection) -> bool:
    """Tell whether every trigger is there, enabled, and as this release makes it. One small query."""
    return _SETS[connection.dialect.name].is_in_place(connection)


def some_are_there(connection: Connection) -> bool:
    """Tell whether anything is written into the journal."""
    return _SETS[connection.dialect.name].some_are_there(connection)


def install(connection: Connection) -> None:
    """Make the triggers anew, and say in the journal that it begins here.

    Within a transaction of ``maintenance.exclusively``. Whoever writes a table keeps others from making triggers on it
    until the end of the transaction, and the other way round: so what is committed after the last trigger is recorded
    as a whole, and what was before is older than the row that is written here.

    Raises:
        TriggersRefused: MariaDB withholds the privilege; the message names the missing grant.
    """
    remove(connection)
    _create(connection)
    begin(connection)


def bring_up_to_date(connection: Connection, earlier: Collection[str] = EARLIER) -> None:
    """Make the triggers that are missing or of another release; the journal goes on where it was written until now.

    Args:
        connection: within a transaction of ``maintenance.exclusively``.
        earlier: fingerprints of triggers that wrote what these do.

    Raises:
        TriggersRefused: as ``install``.
    """
    ours = _SETS[connection.dialect.name]
    if ours.standing_fingerprint(connection) not in {*earlier, ours.fingerprint(connection.dialect.name)}:
        install(connection)
        return
    _keep_writers_out(connection)
    with refusals_explained(connection, remove, "there is no journal. To have one"):
        ours.replace(connection)


def resume(connection: Connection) -> None:
    """Make the triggers where nothing was changed without them: the journal goes on.

    Raises:
        TriggersRefused: as ``install``.
    """
    _create(connection)


def _keep_writers_out(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        tables = ", ".join(watched.table for watched in WATCHED)
        connection.exec_driver_sql(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")


def _create(connection: Connection) -> None:
    _keep_writers_out(connection)
    with refusals_explained(connection, remove, "there is no journal. To have one"):
        _SETS[connection.dialect.name].create(connection)


def begin(connection: Connection) -> None:
    """Say in the journal that it begins here: what changed before may be missing."""
    row = {"time": utc_now(), "kind": JOURNAL, "action": BEGAN}
    if connection.dialect.name == "postgresql":
        mark = connection.exec_driver_sql("SELECT pg_current_xact_id()::text::bigint").scalar_one()
        row["commit_mark"] = mark
    connection.execute(insert(placement_journal), row)


def remove(connection: Connection) -> None:
    """Drop the triggers and their functions, as far as they are there."""
    _SETS[connection.dialect.name].drop(connection)


def row_count(connection: Connection) -> int:
    """Return how many changes are told."""
    query = select(func.count()).select_from(placement_journal).where(placement_journal.c.kind != JOURNAL)
    return connection.execute(query).scalar_one()


def mark_of_the_past(connection: Connection) -> dict[str, int | None]:
    """Return how a row is marked that was written in another database: everything here is newer."""
    return {"commit_mark": 0 if connection.dialect.name == "postgresql" else None}
