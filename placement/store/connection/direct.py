"""Text sent straight to the driver, PostgreSQL's mostly: SQLAlchemy takes longer around a statement than that for it.

Errors are SQLAlchemy's all the same; those who listen to statements and those who log them hear of these, too.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

if TYPE_CHECKING:
    from psycopg import RawCursor

LOG = logging.getLogger("sqlalchemy.engine.Engine")

LONGEST_PREPARED = 30_000
"""In characters: a search for some twenty request groups."""

_OPEN = (2, 3)
"""PQTRANS_INTRANS and PQTRANS_INERROR of libpq. By number, because psycopg takes a server on SQLite long to import."""


def send(connection: Connection, text: str, values: Sequence[Any]) -> "RawCursor[Any]":
    """Run a statement that says ``$1``, ``$2`` for its values, and return the driver's cursor."""
    cursor = _cursor(connection)
    for listener in connection.engine.dispatch.before_cursor_execute:
        listener(connection, cursor, text, values, None, False)  # noqa: FBT003 - the event's own shape
    return _run(connection, cursor, text, values)


def begin(connection: Connection, text: str) -> None:
    """Begin a transaction."""
    _run(connection, _cursor(connection), text, ())


def say(connection: Connection, text: str) -> None:
    """Send MariaDB a statement without values that answers nothing."""
    LOG.info("%s", text)
    try:
        with _driver(connection).cursor() as cursor:
            cursor.execute(text)
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(connection, text, (), error) from error


def roll_back(connection: Connection) -> None:
    """End the transaction, if one is open, without saving.

    The driver's own way forgets all prepared statements, because a transaction may have changed tables; ours do not,
    and after every refused request the next ones would be planned anew.
    """
    if not connection.invalidated:
        driver = _driver(connection)
        if driver.info.transaction_status in _OPEN:
            driver.pgconn.exec_(b"ROLLBACK")


def _run(connection: Connection, cursor: "RawCursor[Any]", text: str, values: Sequence[Any]) -> "RawCursor[Any]":
    LOG.info("%s\n%s", text, values)
    try:
        # Numbers come as they are, not as digits: a quarter less work with large answers.
        return cursor.execute(text.encode(), values, binary=True, prepare=_is_worth_preparing(text))
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(connection, text, values, error) from error


def _is_worth_preparing(text: str) -> bool | None:
    """Leave it to the driver, but let nothing very long stay in its memory and in that of the database."""
    return None if len(text) < LONGEST_PREPARED else False


def _cursor(connection: Connection) -> "RawCursor[Any]":
    cursor: RawCursor[Any] = connection.dialect.loaded_dbapi.RawCursor(_driver(connection))
    return cursor


def _driver(connection: Connection) -> Any:
    return connection.connection.dbapi_connection


def _wrapped(connection: Connection, text: str, values: Sequence[Any], error: Any) -> Exception:
    """Return a driver's error as SQLAlchemy reports it, after giving up a connection that is broken."""
    dialect = connection.dialect
    is_broken = dialect.is_disconnect(error, _driver(connection), None)
    if is_broken:
        connection.invalidate(error)
    wrapped = DBAPIError.instance(
        text, values, error, dialect.loaded_dbapi.Error, connection_invalidated=is_broken, dialect=dialect
    )
    assert isinstance(wrapped, DBAPIError)
    return wrapped
