"""The bounded cache of compiled statements, however varied the requests are.

A statement is as long as the request it serves and takes a hundred times its text in memory. Caches that count entries
would hold gigabytes of them once somebody asks for many combinations of many groups.
"""

import gc
from collections.abc import Callable
from typing import Any, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

MAX_CHARACTERS = 150_000
"""The limit for all compiled statements together, in characters: about 14 MB."""


class Memory(dict[Key, Value]):
    """A dictionary that clears itself when it gets too heavy; entries in use come back on their next miss.

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
