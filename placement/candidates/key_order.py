"""A sorted sequence of the keys of all trees. Replacing some costs what these cost, however many there are in all.

It is persistent: a replacement returns a new order, which shares most blocks with the old one that others may be in.
"""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, repeat
from operator import itemgetter

from placement.candidates.frontier import ROOT, Key

BLOCK = 512
"""The size of the first block when it is made. Each later block is as large as all before it: whoever reads that far
has read as many keys anyway, and with few blocks the one a key belongs to is found quickly.
"""

MAX_BLOCK = 16 * BLOCK
"""The largest to make."""

MAX_NOTED = 4
"""A block is sorted once its notes list more than this many times as many keys as it has: notes cost memory."""

MAX_ONE_BY_ONE = 32
"""Up to this many keys are inserted or deleted one by one, which costs less than sorting a block."""


class KeyOrder:
    """Keys in ascending order.

    Args:
        keys: the keys, in any order. No root has two.
    """

    __slots__ = ("_blocks", "_bounds", "_length")

    def __init__(self, keys: Iterable[Key]) -> None:
        in_order = sorted(keys)
        self._length = len(in_order)
        parts = _parts(in_order, 0)
        self._blocks = [_KeyBlock(part) for part in parts]
        self._bounds = [part[0] for part in parts[1:]]
        """The least key that belongs in each block but the first."""

    def __len__(self) -> int:
        """Return how many keys there are."""
        return self._length

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys in order."""
        return chain.from_iterable(block.keys() for block in self._blocks)

    def between(self, start: int, end: int) -> list[Key]:
        """Return the keys from one index up to another, as a list's slice does."""
        found: list[Key] = []
        for block in self._blocks:
            if end <= 0:
                break
            if start < block.count:
                found += block.keys()[max(start, 0) : end]
            start, end = start - block.count, end - block.count
        return found

    def count_below(self, bound: tuple[object, ...]) -> int:
        """Return how many keys sort before a bound, which may be part of a key."""
        at = bisect_left(self._bounds, bound)
        return sum([block.count for block in self._blocks[:at]]) + bisect_left(self._blocks[at].keys(), bound)

    def replaced(self, gone: Collection[Key], new: Collection[Key]) -> "KeyOrder":
        """Return an order without some of these keys, and with others.

        Args:
            gone: the keys to leave out.
            new: the keys to add, of roots that have no other.
        """
        made = KeyOrder.__new__(KeyOrder)
        made._blocks, made._bounds = self._blocks.copy(), self._bounds.copy()
        made._length = self._length + len(new) - len(gone)
        notes: dict[int, Note] = defaultdict(lambda: ([], []))
        for side, keys in enumerate((gone, new)):
            for key, at in zip(keys, map(bisect_right, repeat(self._bounds), keys), strict=False):
                notes[at][side].append(key)
        for at, note in notes.items():
            made._blocks[at] = made._blocks[at].with_note(note)
        made._split()
        return made

    def _split(self) -> None:
        """Split each block that is too large for its place."""
        before = 0
        for block in self._blocks.copy():
            if block.count > 2 * _size_after(before):
                at = self._blocks.index(block)
                parts = _parts(block.keys(), before)
                self._blocks[at : at + 1] = [_KeyBlock(part) for part in parts]
                self._bounds[at:at] = [part[0] for part in parts[1:]]
            before += block.count


def _size_after(keys: int) -> int:
    """Return how many keys to put into a new block that comes after this many."""
    return min(max(BLOCK, keys), MAX_BLOCK)


def _parts(keys: list[Key], before: int) -> list[list[Key]]:
    """Split keys into parts of the size of a block; into one empty part if there are none.

    Args:
        keys: the keys in order.
        before: how many others precede them.
    """
    parts, start = [keys[: _size_after(before)]], _size_after(before)
    while start < len(keys):
        size = _size_after(before + start)
        parts.append(keys[start : start + size])
        start += size
    return parts


Note = tuple[list[Key], list[Key]]
"""The keys that a change removes, then those it adds."""


class _KeyBlock:
    """Consecutive keys, with notes of the changes since they were last sorted."""

    __slots__ = ("_noted", "_state", "count")

    def __init__(self, keys: list[Key], notes: tuple[Note, ...] = (), noted: int = 0) -> None:
        self._state = keys, notes
        self._noted = noted
        self.count = len(keys)
        """How many keys it has."""

    def with_note(self, note: Note) -> "_KeyBlock":
        """Return a block with one more change, which is applied when it is read."""
        keys, notes = self._state
        gone, new = note
        noted = self._noted + len(gone) + len(new)
        if noted > MAX_NOTED * max(len(keys), BLOCK):
            return _KeyBlock(_replaced(keys, (*notes, note)))
        made = _KeyBlock(keys, (*notes, note), noted)
        made.count = self.count + len(new) - len(gone)
        return made

    def keys(self) -> list[Key]:
        """Return the keys in order."""
        keys, notes = self._state
        if notes:
            keys = _replaced(keys, notes)
            # One assignment: threads share it.
            self._state = keys, ()
        return keys


def _replaced(keys: list[Key], notes: Sequence[Note]) -> list[Key]:
    """Return sorted keys after successive changes."""
    gone, new = notes[0]
    if len(notes) == 1 and len(gone) + len(new) <= MAX_ONE_BY_ONE:
        keys = keys.copy()
        for key in gone:
            del keys[bisect_left(keys, key)]
        for key in new:
            insort(keys, key)
        return keys
    changed = dict[int, Key | None]()
    for gone, new in notes:
        changed.update(zip(map(itemgetter(ROOT), gone), repeat(None)))
        changed.update(zip(map(itemgetter(ROOT), new), new, strict=True))
    return sorted([*[key for key in keys if key[ROOT] not in changed], *filter(None, changed.values())])
