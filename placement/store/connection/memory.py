"""Memories of statements that have an end, however many different and however long the requests are.

A statement is as long as the request it serves, and takes a hundred times its text in memory. Caches that count their
entries would hold gigabytes of them once somebody asks for many combinations of many groups.
"""

import gc
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")
Arguments = ParamSpec("Arguments")

MOST_CHARACTERS = 150_000
"""Of compiled statements together: some 14 MB."""

MOST_CONDITIONS = 250
"""Of the statements for all shapes of a kind together: some 15 MB, or a seventh where their text alone is needed.

With twice as much of both, 2,000 random requests on SQLite made a worker 54 MB larger, not 30, for 3 to 4 % less CPU
time. Requests that are more alike cost the same.
"""


class Memory(dict[Key, Value]):
    """A dictionary that is emptied when it has become too heavy. What is in use comes back by itself.

    Args:
        weigh: the weight of a key and a value.
        most: the weight that all may have together.

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
        """Remember a value, and forget all others if it does not fit beside them."""
        weight = self._weigh(key, value)
        # Two threads at once may count a little wrong; it is a bound of memory, not an account.
        self._weight += weight
        if self._weight > self._most:
            self.clear()
            self._weight = weight
            # Statements refer to themselves in circles, and the server's collector looks at old ones very seldom.
            gc.collect()
        super().__setitem__(key, value)


def compiled_statements() -> Memory[Any, Any]:
    """Return where SQLAlchemy is to keep the statements that it has compiled."""
    return Memory(lambda _key, compiled: len(compiled.string), most=MOST_CHARACTERS)


def remembered(
    weigh: Callable[Arguments, int], *, most: int = MOST_CONDITIONS
) -> Callable[[Callable[Arguments, Value]], Callable[Arguments, Value]]:
    """Make a function remember its results as long as their weight, told from its arguments, allows."""

    def decorate(make: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
        memory: Memory[Any, Value] = Memory(lambda key, _value: weigh(*key[0], **dict(key[1])), most=most)

        @wraps(make)
        def found(*args: Arguments.args, **named: Arguments.kwargs) -> Value:
            key = (args, tuple(named.items()))
            value = memory.get(key)
            if value is None:
                value = memory[key] = make(*args, **named)
            return value

        return found

    return decorate
