"""Which database errors are worth another try, and how long to wait before it.

The one retry boundary of the server: it stands outside the transaction, around the whole unit of work, commit
included, because that is where a lost certification (Galera) or serialization failure may surface.
"""

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from placement.errors import Unavailable

T = TypeVar("T")

FIRST_PAUSE_S = 0.004
LONGEST_PAUSE_S = 0.4

READ_ONLY = "read-only"
"""Why a database server took no write: it is a standby, or a primary that was just replaced."""

_POSTGRESQL_STATES = {"40001": "serialization", "40P01": "deadlock", "55P03": "lock timeout", "25006": READ_ONLY}
_MARIADB_CODES = {
    1213: "deadlock",
    1205: "lock timeout",
    1020: "serialization",
    1047: "cluster not ready",
    1290: READ_ONLY,
    1836: READ_ONLY,
    1412: "schema changed",
}
_SQLITE_WORDS = ("database is locked", "database table is locked", "database is busy", "database schema is locked")


class OutcomeUnknown(Unavailable):
    """The connection to the database broke while the change was being committed; look before you try again."""


def transient_reason(error: DBAPIError) -> str | None:
    """Return in a word why the same work may succeed when it is tried again, or None if it cannot.

    A violated unique constraint counts: the work looks before it inserts, so it only happens in a race between two
    requests, and the next try sees the other's row and gives the proper answer.
    """
    if isinstance(error, IntegrityError):
        return "integrity"
    if error.connection_invalidated:
        return "connection"
    cause = error.orig
    if state := getattr(cause, "sqlstate", None):
        return _POSTGRESQL_STATES.get(state)
    arguments = getattr(cause, "args", ())
    first = arguments[0] if arguments else None
    if isinstance(first, int):
        return _MARIADB_CODES.get(first)
    if isinstance(error, OperationalError | InterfaceError) and isinstance(first, str):
        return "busy" if first.startswith(_SQLITE_WORDS) else None
    return None


def pauses(attempts: int) -> Iterator[float]:
    """Yield how long to wait before each further try: growing, capped, and jittered so that rivals part."""
    for attempt in range(attempts - 1):
        ceiling = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt)
        yield random.uniform(ceiling / 4, ceiling)  # noqa: S311 - spreads load, keeps no secret


def retried(attempt: Callable[[], T], *, noted: Callable[[str], None], attempts: int) -> T:
    """Call ``attempt`` until it succeeds, fails for good, or has been tried often enough (then: Unavailable)."""
    waits = pauses(attempts)
    while True:
        try:
            return attempt()
        except PoolTimeout as error:
            raise Unavailable("All database connections are busy; try again.") from error
        except DBAPIError as error:
            reason = transient_reason(error)
            if reason is None:
                if isinstance(error, OperationalError | InterfaceError) and _is_unreachable(error):
                    raise Unavailable from error
                raise
            noted(reason)
            wait = next(waits, None)
            if wait is None:
                raise Unavailable(f"The database stayed busy ({reason}); try again.") from error
            time.sleep(wait)


def _is_unreachable(error: DBAPIError) -> bool:
    """Tell whether no connection could be made at all: the error carries no statement."""
    return error.statement is None
