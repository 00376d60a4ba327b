"""What is tried again when the database fails, how long to wait before it, and when to give up.

The one retry boundary of the server: it stands outside the transaction, around the whole unit of work, commit
included, because that is where a lost certification (Galera) or serialization failure may surface.
"""

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from placement.errors import Unavailable
from placement.store.connection.database import READ, Database
from placement.store.connection.faults import (
    NO_FREE_CONNECTION,
    TOO_LONG,
    DatabaseFailed,
    DatabaseFault,
    fault_of,
    first_line,
)

T = TypeVar("T")

FIRST_PAUSE_S = 0.004
LONGEST_PAUSE_S = 0.4
LAST_TRY_S = 20.0
"""After so long nothing is begun again: a wait for a lock may take as long as the operator of the database allows."""


class OutcomeUnknown(Unavailable):
    """The connection to the database broke while the change was being committed; look before you try again."""


def pauses(attempts: int) -> Iterator[float]:
    """Yield how long to wait before each further try: growing, capped, and jittered so that rivals part."""
    for attempt in range(attempts - 1):
        ceiling = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt)
        yield random.uniform(ceiling / 4, ceiling)  # noqa: S311 - spreads load, keeps no secret


def retried(database: Database, attempt: Callable[[], T], *, kind: str) -> T:
    """Call ``attempt`` until it succeeds, fails for good, or has been tried often or long enough.

    Args:
        database: knows how often work is tried, and is told of every retry and fault.
        attempt: one run of a unit of work.
        kind: WRITE or READ.

    Raises:
        DatabaseFailed: the database cannot do it.
    """
    begun = time.monotonic()
    waits = pauses(database.attempts)
    while True:
        try:
            return attempt()
        except PoolTimeout as error:
            raise given_up(database, NO_FREE_CONNECTION, kind=kind) from error
        except DBAPIError as error:
            fault = fault_of(error)
            if fault is None:
                raise
            if fault.passes:
                database.note_retry(fault.cause)
            wait = next(waits, None) if fault.passes and time.monotonic() - begun < LAST_TRY_S else None
            if wait is None:
                raise given_up(database, fault, kind=kind, words=first_line(error)) from error
            time.sleep(wait)


def given_up(database: Database, fault: DatabaseFault, *, kind: str, words: str = "") -> DatabaseFailed:
    """Return what a client is told of a fault, after taking note of it."""
    database.note_fault(fault.cause, words, kind=kind)
    would_fail_again = fault is TOO_LONG and kind == READ
    return DatabaseFailed(fault, retry_after_s=None if would_fail_again else fault.retry_after_s)
