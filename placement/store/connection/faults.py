"""How databases fail, one table for each kind: classified by error code, never by message.

PostgreSQL reports a SQLSTATE, whose first two characters are its class; MariaDB a number; SQLite a result code. An
error in none of the tables is a bug in this server.
"""

import sqlite3
from typing import Any, NamedTuple

from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError

from placement.errors import Unavailable

SOON_S, LATER_S = 1, 10
"""When to tell a client to retry: contention is over soon, what an operator has to mend is not."""


class DatabaseFault(NamedTuple):
    """A way in which a database fails: its cause in a few words, and whether an immediate retry may succeed.

    A client may retry after ``retry_after_s``; the ``sentence`` is for it, where the cause alone does not say enough.
    """

    cause: str
    passes: bool = False
    retry_after_s: int = SOON_S
    sentence: str = ""


# A violated unique constraint passes: every unit of work looks before it inserts, so it takes a race between two
# requests, and the retry sees the other's row and gives the proper answer.
INTEGRITY = DatabaseFault("integrity", passes=True)
CONNECTION = DatabaseFault("connection", passes=True)
SERIALIZATION = DatabaseFault("serialization", passes=True)
DEADLOCK = DatabaseFault("deadlock", passes=True)
LOCK_TIMEOUT = DatabaseFault("lock timeout", passes=True)
BUSY = DatabaseFault("busy", passes=True)
READ_ONLY = DatabaseFault("read-only", passes=True, retry_after_s=LATER_S)
"""Either a standby or a primary that has just been replaced."""
TOO_MANY_CONNECTIONS = DatabaseFault("too many connections", passes=True)
CLUSTER = DatabaseFault("cluster not ready", passes=True)
SCHEMA_CHANGED = DatabaseFault("schema changed", passes=True)
RESTARTING = DatabaseFault("restarting", passes=True)
TOO_LONG = DatabaseFault(
    "query cancelled", sentence="The database ended the query: it took too long, or an operator did it."
)
UNREACHABLE = DatabaseFault("unreachable", sentence="The database cannot be reached or is too busy; try again.")
NO_FREE_CONNECTION = DatabaseFault("no free connection", sentence="All database connections are busy; try again.")
DISK_FULL = DatabaseFault("disk full", retry_after_s=LATER_S)
OUT_OF_MEMORY = DatabaseFault("out of memory", retry_after_s=LATER_S)
OUT_OF_RESOURCES = DatabaseFault("out of resources", retry_after_s=LATER_S)
INPUT_OUTPUT = DatabaseFault("input/output error", retry_after_s=LATER_S)
CORRUPT = DatabaseFault("corrupt", retry_after_s=LATER_S)
NOT_READY = DatabaseFault("not ready", retry_after_s=LATER_S)
INTERNAL = DatabaseFault("internal error", retry_after_s=LATER_S)
REFUSED = DatabaseFault("privilege missing", retry_after_s=LATER_S)
NO_TABLE = DatabaseFault("table missing", retry_after_s=LATER_S)
FILE_MOVED = DatabaseFault(
    "file removed or replaced",
    retry_after_s=LATER_S,
    sentence="The database's file was removed or replaced while the server ran; put it back or restart the server.",
)

_POSTGRESQL = {
    "08": CONNECTION,
    "25006": READ_ONLY,
    "25P03": CONNECTION,
    "25P04": TOO_LONG,
    "40001": SERIALIZATION,  # also a standby that cancels a reader in the way of the primary's changes
    "40P01": DEADLOCK,
    "42501": REFUSED,
    "42P01": NO_TABLE,
    "53": OUT_OF_RESOURCES,
    "53100": DISK_FULL,
    "53200": OUT_OF_MEMORY,
    "53300": TOO_MANY_CONNECTIONS,
    "55": NOT_READY,
    "55P03": LOCK_TIMEOUT,
    "57": RESTARTING,
    "57014": TOO_LONG,
    "58": INPUT_OUTPUT,
    "58030": INPUT_OUTPUT,
    "XX": INTERNAL,
    "XX001": CORRUPT,
    "XX002": CORRUPT,
}
_TOO_MANY_AT_THE_DOOR = ("too many clients", "remaining connection slots", "too many connections")
"""PostgreSQL's refusals to connect, by message: the driver passes on no SQLSTATE for these."""

_MARIADB = {
    **dict.fromkeys((1021, 1114), DISK_FULL),
    **dict.fromkeys((1037, 1038, 1041), OUT_OF_MEMORY),
    **dict.fromkeys((1040, 1203, 1226), TOO_MANY_CONNECTIONS),
    **dict.fromkeys((1290, 1792, 1836), READ_ONLY),
    **dict.fromkeys((1317, 1969, 3024), TOO_LONG),
    **dict.fromkeys((1023, 1024, 1026, 1030, 1180), INPUT_OUTPUT),
    **dict.fromkeys((1034, 1035, 1194, 1195, 1712, 1877), CORRUPT),
    **dict.fromkeys((1044, 1045, 1142, 1143, 1227), REFUSED),
    1020: SERIALIZATION,
    1047: CLUSTER,  # Galera: "WSREP has not yet prepared node for application use"
    1053: RESTARTING,
    1146: NO_TABLE,
    1205: LOCK_TIMEOUT,
    1206: OUT_OF_RESOURCES,  # the lock table is full
    1213: DEADLOCK,
    1412: SCHEMA_CHANGED,
}
_UNREAD_TRIGGER = (1064, "has an error in its body")
"""On Galera, a session that makes way for another's change while it loads triggers says that it cannot parse one.

It calls it "Unknown trigger", or by its name.
"""

_SQLITE = {
    3: REFUSED,
    5: BUSY,
    6: BUSY,
    7: OUT_OF_MEMORY,
    8: READ_ONLY._replace(passes=False),  # a file: another connection would not help
    9: TOO_LONG,
    10: INPUT_OUTPUT,
    11: CORRUPT,
    13: DISK_FULL,
    14: UNREACHABLE,
    15: BUSY,
    17: SCHEMA_CHANGED,
    26: CORRUPT,
    sqlite3.SQLITE_READONLY_DBMOVED: FILE_MOVED,
}
_PRIMARY_CODE = 0xFF
"""Masks a SQLite extended result code down to its primary one."""
_NO_SUCH_TABLE = (sqlite3.SQLITE_ERROR, "no such table")
"""SQLite has no code for this: by message."""


class DatabaseFailed(Unavailable):
    """The database cannot serve the request at present; try again."""

    def __init__(self, fault: DatabaseFault, *, retry_after_s: int | None) -> None:
        """Build the answer for work that was not done; no ``retry_after_s`` means that a retry would fail again."""
        super().__init__(fault.sentence or f"The database cannot do this at present ({fault.cause}); try again.")
        self.fault = fault
        self.retry_after_s = retry_after_s


def fault_of(error: DBAPIError) -> DatabaseFault | None:
    """Classify a database error; None means that the statement itself was wrong, which is a bug in this server."""
    if isinstance(error, IntegrityError):
        return INTEGRITY
    fault = _fault_by_code(error.orig)
    if error.connection_invalidated and fault not in (TOO_LONG, CLUSTER):
        return CONNECTION
    return fault or (_of_no_connection(error) if error.statement is None else None)


def is_cut_off(error: BaseException) -> bool:
    """Tell whether a Galera node has refused a statement because it has lost the cluster."""
    return _fault_by_code(error) is CLUSTER


def passing_fault(error: DBAPIError) -> DatabaseFault | None:
    """Return the fault if an immediate retry of the same work may succeed, else None."""
    fault = fault_of(error)
    return fault if fault is not None and fault.passes else None


def first_line(error: DBAPIError) -> str:
    """Return the first line of the database's own message."""
    arguments = error.orig.args if error.orig is not None else ()
    words = [str(argument) for argument in arguments if isinstance(argument, str)]
    return (words[-1].strip().splitlines() or [""])[0] if words else type(error.orig).__name__


def _fault_by_code(cause: Any) -> DatabaseFault | None:
    arguments = getattr(cause, "args", ())
    if arguments and isinstance(arguments[0], int):
        number, words = _UNREAD_TRIGGER
        if arguments[0] == number and words in str(arguments[-1]):
            return SCHEMA_CHANGED
        return _MARIADB.get(arguments[0])
    if (code := getattr(cause, "sqlite_errorcode", None)) is not None:
        number, words = _NO_SUCH_TABLE
        if code == number and words in str(cause):
            return NO_TABLE
        return _SQLITE.get(code) or _SQLITE.get(code & _PRIMARY_CODE)
    state = getattr(cause, "sqlstate", None) or ""
    return _POSTGRESQL.get(state) or _POSTGRESQL.get(state[:2])


def _of_no_connection(error: DBAPIError) -> DatabaseFault | None:
    """Classify a failure to connect: such an error carries no statement."""
    if not isinstance(error, OperationalError | InterfaceError):
        return None
    words = str(error.orig)
    return TOO_MANY_CONNECTIONS if any(part in words for part in _TOO_MANY_AT_THE_DOOR) else UNREACHABLE
