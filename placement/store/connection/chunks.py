"""Split long lists of values: a statement takes only so many parameters (SQLite 32,766, PostgreSQL 65,535)."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

MAX_PARAMETERS = 10_000


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the values in chunks that fit into one statement."""
    for start in range(0, len(values), MAX_PARAMETERS):
        yield values[start : start + MAX_PARAMETERS]
