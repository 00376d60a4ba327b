"""Count the SQL statements that this thread has sent: the cost of a request is the difference of two counts."""

import threading
from typing import Any

import sqlalchemy
from sqlalchemy import Engine, event


class _Counted(threading.local):
    sent = 0


_COUNTED = _Counted()


def statements_so_far() -> int:
    """Return how many statements this thread has sent to counted databases."""
    return _COUNTED.sent


def count_statements(engine: Engine) -> None:
    """Count an engine's statements from now on."""
    event.listen(engine, "before_cursor_execute", _count)


def _count(*_statement: Any) -> None:
    _COUNTED.sent += 1


def record_statements(engine: Engine, tracer: Any) -> None:
    """Let ``osprofiler.sqlalchemy`` trace an engine's statements and their durations from now on."""
    tracer.add_tracing(sqlalchemy, engine, "db")
