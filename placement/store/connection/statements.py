"""How many SQL statements this thread has sent: what a request costs is the difference of two counts."""

import threading
from typing import Any

import sqlalchemy
from sqlalchemy import Engine, event


class _Counted(threading.local):
    sent = 0


_COUNTED = _Counted()


def statements_so_far() -> int:
    """Return how many statements this thread has sent to databases that are counted."""
    return _COUNTED.sent


def count_statements(engine: Engine) -> None:
    """Count what is sent to a database from now on."""
    event.listen(engine, "before_cursor_execute", _count)


def _count(*_statement: Any) -> None:
    _COUNTED.sent += 1


def record_statements(engine: Engine, tracer: Any) -> None:
    """Let ``osprofiler.sqlalchemy`` record what is sent to a database from now on, and how long it takes."""
    tracer.add_tracing(sqlalchemy, engine, "db")
