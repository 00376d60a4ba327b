"""Tell the journal's triggers on whose behalf a writing transaction runs (``domain/identity.py``).

PostgreSQL gets it in the message that begins the transaction, MariaDB in one more. SQLite has no session variable that
its triggers could read: the rows are completed just before the commit, while no other writer can be inside.
"""

from sqlalchemy import Connection

from placement.domain.identity import CURRENT_ORIGIN, Origin
from placement.store.connection import direct
from placement.store.journal.watched import REQUEST_SETTING, REQUEST_VARIABLE, SEPARATOR

_NEWEST = "SELECT max(id) FROM placement_journal"
_COMPLETE = "UPDATE placement_journal SET request_id = ?, by_user = ?, by_project = ?, route = ? WHERE id > ?"
_NEWEST_BEFORE = "placement_journal_newest"
_IS_SET = "placement_request_is_set"


def postgresql_setting() -> str | None:
    """Return the statement that names the origin of the transaction that begins, or None outside a request."""
    origin = CURRENT_ORIGIN.get()
    return None if origin is None else f"SET LOCAL {REQUEST_SETTING} = {_literal(origin)}"


def tell_mariadb(connection: Connection) -> None:
    """Name the origin of the transaction that begins. The session remembers it, so later ones have to clear it."""
    origin = CURRENT_ORIGIN.get()
    if origin is not None:
        direct.execute_raw(connection, f"SET {REQUEST_VARIABLE} = {_literal(origin)}")
        connection.info[_IS_SET] = True
    elif connection.info.pop(_IS_SET, False):
        direct.execute_raw(connection, f"SET {REQUEST_VARIABLE} = NULL")


def complete_on_sqlite(connection: Connection) -> None:
    """Complete the journal rows of a transaction begun with ``note_on_sqlite``, before it commits."""
    newest_before = connection.info.pop(_NEWEST_BEFORE, None)
    origin = CURRENT_ORIGIN.get()
    if newest_before is not None and origin is not None:
        connection.exec_driver_sql(_COMPLETE, (*(part or None for part in origin.parts), newest_before))


def note_on_sqlite(connection: Connection) -> None:
    """Note the newest journal row when a writing transaction begins: the rows after it are its own."""
    connection.info.pop(_NEWEST_BEFORE, None)
    if CURRENT_ORIGIN.get() is not None:
        connection.info[_NEWEST_BEFORE] = connection.exec_driver_sql(_NEWEST).scalar() or 0


def _literal(origin: Origin) -> str:
    return "'" + SEPARATOR.join(origin.parts).replace("'", "''") + "'"
