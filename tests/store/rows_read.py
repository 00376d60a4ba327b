"""How much a database reads: rows on PostgreSQL and MariaDB, instructions of its machine on SQLite."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import text

from placement.store.connection.database import Transaction

_COUNTED = {
    "postgresql": "SELECT CAST(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) AS bigint) FROM pg_stat_xact_user_tables",
    "mysql": "SELECT CAST(sum(variable_value) AS SIGNED) FROM information_schema.session_status "
    "WHERE variable_name LIKE 'handler_read%'",
}


@contextmanager
def reading(tx: Transaction) -> Iterator[Callable[[], int]]:
    """Yield a function that returns how much has been read since."""
    if tx.dialect != "sqlite":
        before = _counted(tx)
        yield lambda: _counted(tx) - before
        return
    done = 0

    def count() -> None:
        nonlocal done
        done += 1

    connection = tx.connection.connection.driver_connection
    assert connection is not None
    connection.set_progress_handler(count, 1)
    yield lambda: done
    connection.set_progress_handler(None, 1)


def _counted(tx: Transaction) -> int:
    return int(tx.execute(text(_COUNTED[tx.dialect])).scalar_one())
