"""Statements: how many this thread has sent, and how long lists are split.

The cost of a request is the difference of two counts. A statement takes only so many parameters (SQLite 32,766,
PostgreSQL 65,535).
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import sqlalchemy
from sqlalchemy import Engine, event

T = TypeVar("T")

MAX_PARAMETERS = 10_000


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


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the values in chunks that fit into one statement."""
    for start in range(0, len(values), MAX_PARAMETERS):
        yield values[start : start + MAX_PARAMETERS]
