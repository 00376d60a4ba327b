"""The keys of all trees in ascending order, where replacing some of them costs what these cost, however many there are.

An order is not changed: others may be going through it while a newer one is made of it, with which it shares most.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from placement.candidates.frontier import Key

BLOCK = 512
"""So many keys lie in a block when it is made; with twice as many it is split."""

MOST_NOTED = 2048
"""A block of which more keys have come or gone is put in order, though nobody reads it: longer notes cost memory, and
much of whoever reads it first."""


class KeyOrder:
    """Keys in ascending order.

    Args:
        keys: the keys, in any order. No root has two.
    """

    __slots__ = ("_blocks", "_bounds", "_length")

    def __init__(self, keys: Iterable[Key]) -> None:
        in_order = sorted(keys)
        self._length = len(in_order)
        parts = _parts(in_order)
        self._blocks = [_KeyBlock(part, number * 37 % MOST_NOTED) for number, part in enumerate(parts)]
        self._bounds = [part[0] for part in parts[1:]]
        """The least key that belongs into each block but the first."""

    def __len__(self) -> int:
        """Return how many keys there are."""
        return self._length

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys in order."""
        return chain.from_iterable(block.keys() for block in self._blocks)

    def between(self, start: int, end: int) -> list[Key]:
        """Return the keys from one place in the order up to another, as a list's slice does."""
        found: list[Key] = []
        for block in self._blocks:
            if end <= 0:
                break
            if start < block.count:
                found += block.keys()[max(start, 0) : end]
            start, end = start - block.count, end - block.count
        return found

    def count_below(self, bound: tuple[object, ...]) -> int:
        """Return how many keys come before something that keys can be compared with."""
        at = bisect_left(self._bounds, bound)
        return sum([block.count for block in self._blocks[:at]]) + bisect_left(self._blocks[at].keys(), bound)

    def replaced(self, gone: Collection[Key], new: Collection[Key]) -> "KeyOrder":
        """Return an order without some of these keys, and with others.

        Args:
            gone: the keys that are left out.
            new: the keys that come in, of roots that have no other.
        """
        made = KeyOrder.__new__(KeyOrder)
        made._blocks, made._bounds = self._blocks.copy(), self._bounds.copy()
        made._length = self._length + len(new) - len(gone)
        changes = made._by_block(gone, new)
        for at, (less, more) in changes.items():
            made._blocks[at] = made._blocks[at].with_note(less, more)
        for at in sorted([at for at in changes if made._blocks[at].is_due], reverse=True):
            made._put_in_order(at)
        return made

    def _by_block(self, gone: Iterable[Key], new: Iterable[Key]) -> dict[int, "Note"]:
        """Return which keys go and come by where the blocks are that they belong into."""
        bounds = self._bounds
        found: dict[int, Note] = defaultdict(lambda: ([], []))
        for key in gone:
            found[bisect_right(bounds, key)][0].append(key)
        for key in new:
            found[bisect_right(bounds, key)][1].append(key)
        return found

    def _put_in_order(self, at: int) -> None:
        parts = _parts(self._blocks[at].keys())
        self._blocks[at : at + 1] = [_KeyBlock(part) for part in parts]
        self._bounds[at:at] = [part[0] for part in parts[1:]]


def _parts(keys: list[Key]) -> list[list[Key]]:
    """Return keys in parts of which each can be a block; one that is empty if there are none."""
    if len(keys) < 2 * BLOCK:
        return [keys]
    return [keys[start : start + BLOCK] for start in range(0, len(keys), BLOCK)]


Note = tuple[list[Key], list[Key]]
"""Keys that have gone, and keys that have come since."""


class _KeyBlock:
    """Keys that follow each other, with notes of what has happened to them since they were put in order."""

    __slots__ = ("_noted", "_state", "count")

    def __init__(self, keys: list[Key], noted: int = 0) -> None:
        self._state: tuple[list[Key], tuple[Note, ...]] = keys, ()
        self._noted = noted
        self.count = len(keys)
        """How many keys it has."""

    @property
    def is_due(self) -> bool:
        """Whether so much has happened that it had better be put in order."""
        return self._noted > MOST_NOTED

    def with_note(self, gone: list[Key], new: list[Key]) -> "_KeyBlock":
        """Return a block of which keys have gone, and to which others have come."""
        known, notes = self._state
        made = _KeyBlock(known, self._noted + len(gone) + len(new))
        made._state = known, (*notes, (gone, new))
        made.count = self.count + len(new) - len(gone)
        return made

    def keys(self) -> list[Key]:
        """Return the keys in order."""
        keys, notes = self._state
        if notes:
            left: set[int] = set()
            come: dict[int, Key] = {}
            for gone, new in notes:
                left.update([key[2] for key in gone if come.pop(key[2], None) is None])
                come.update([(key[2], key) for key in new])
            keys = sorted(chain([key for key in keys if key[2] not in left], come.values()))
            # Both at once, for threads share it.
            self._state = keys, ()
        return keys
