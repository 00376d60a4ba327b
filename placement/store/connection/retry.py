"""What to retry when the database fails, how long to back off, and when to give up.

This is the server's only retry boundary. It stands outside the transaction, around the whole unit of work including
its commit, because that is where a certification failure (Galera) or serialization failure may surface.
"""

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from placement.errors import Unavailable
from placement.store.connection.database import Database
from placement.store.connection.engines import READ
from placement.store.connection.faults import (
    CONNECTION,
    NO_FREE_CONNECTION,
    TOO_LONG,
    DatabaseFailed,
    DatabaseFault,
    fault_of,
    first_line,
)

T = TypeVar("T")

FIRST_PAUSE_S = 0.004
MAX_PAUSE_S = 0.4
LAST_TRY_S = 20.0
"""No attempt starts after this long: a single lock wait may last as long as the database's operator allows."""


class OutcomeUnknown(Unavailable):
    """The connection to the database broke while the change was being committed; look before you try again."""


def pauses(attempts: int) -> Iterator[float]:
    """Yield the backoff before each retry: exponential, capped, and jittered so that rivals drift apart."""
    for attempt in range(attempts - 1):
        ceiling = min(MAX_PAUSE_S, FIRST_PAUSE_S * 2**attempt)
        yield random.uniform(ceiling / 4, ceiling)  # noqa: S311 - spreads load, keeps no secret


def retried(database: Database, attempt: Callable[[], T], *, kind: str) -> T:
    """Call ``attempt`` until it succeeds, fails for good, or has used up its attempts or its time.

    Args:
        database: sets the number of attempts, and is notified of every retry and fault.
        attempt: one run of a unit of work.
        kind: WRITE or READ.

    Raises:
        DatabaseFailed: the database cannot do the work.
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
            if fault is CONNECTION:
                database.engine.dispose()  # Idle connections are lost or stalled as well.
            if fault.passes:
                database.note_retry(fault.cause)
            wait = next(waits, None) if fault.passes and time.monotonic() - begun < LAST_TRY_S else None
            if wait is None:
                raise given_up(database, fault, kind=kind, words=first_line(error)) from error
            time.sleep(wait)


def given_up(database: Database, fault: DatabaseFault, *, kind: str, words: str = "") -> DatabaseFailed:
    """Note a fault and return the error for the client."""
    database.note_fault(fault.cause, words, kind=kind)
    would_fail_again = fault is TOO_LONG and kind == READ
    return DatabaseFailed(fault, retry_after_s=None if would_fail_again else fault.retry_after_s)
