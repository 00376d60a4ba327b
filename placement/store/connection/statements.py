"""Statements: how many this thread has sent, how long lists are split, and which compiled ones are kept.

The cost of a request is the difference of two counts. A statement takes only so many parameters (SQLite 32,766,
PostgreSQL 65,535).
"""

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import sqlalchemy
from sqlalchemy import Engine, event

T = TypeVar("T")

MAX_PARAMETERS = 10_000


Key = TypeVar("Key")

Value = TypeVar("Value")

MAX_CHARACTERS = 150_000
"""The limit for all compiled statements together, in characters: about 14 MB."""


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


class Memory(dict[Key, Value]):
    """A dictionary that clears itself when it gets too heavy; entries in use come back on their next miss.

    A statement is as long as the request it serves and takes a hundred times its text in memory. A cache that counts
    entries would hold gigabytes once somebody asks for many combinations of many groups.

    Args:
        weigh: returns the weight of an entry.
        most: the limit on the total weight.

    >>> words = Memory(lambda _key, word: len(word), most=8)
    >>> for word in ("one", "three", "seven"):
    ...     words[word[0]] = word
    >>> words
    {'s': 'seven'}
    """

    def __init__(self, weigh: Callable[[Key, Value], int], *, most: int) -> None:
        super().__init__()
        self._weigh = weigh
        self._most = most
        self._weight = 0

    def __setitem__(self, key: Key, value: Value) -> None:
        """Store an entry, dropping all others if it does not fit beside them."""
        weight = self._weigh(key, value)
        # A race between two threads may miscount slightly: the bound on memory need not be exact.
        self._weight += weight
        if self._weight > self._most:
            self.clear()
            self._weight = weight
            # Statements contain reference cycles, and the server's collector rarely gets to old objects.
            gc.collect()
        super().__setitem__(key, value)


def compiled_statements() -> Memory[Any, Any]:
    """Return the cache for SQLAlchemy's compiled statements."""
    return Memory(lambda _key, compiled: len(compiled.string), most=MAX_CHARACTERS)
