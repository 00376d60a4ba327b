"""What trees give to requests that were asked before: cached from request to request, and exact in each.

Cached is the text of each tree's candidates and providers, as it is sent. It says no more than the tree's own rows, the
ids of the names in the request, and the names of classes and traits of those ids. The first are known to be the same by
the journal, the others are looked up in each request.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import NamedTuple

from placement.allocators.compactness import Counts
from placement.services.tree_history import LONGEST_KEPT_S, Moment, TreeHistory
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.names import NamedIds

MOST_BYTES = 32 << 20
"""So much text is kept in all; then what was given to the request that was not asked for longest is forgotten."""

WITHOUT_LIMIT = 4
"""One of so many parts of that is the most that is kept for a request without a limit, which looks at all trees."""

MOST_REQUESTS = 1024
"""So many requests are remembered as asked before."""

BYTES_OF_TREE = 400
"""What a tree takes besides its text."""

SPARE = 16
"""So many times as many trees are kept as a request looks at: where chance decides, each looks at others."""


class WrittenTree(NamedTuple):
    """What a tree gives to a request.

    Args:
        counts: how many places of each level its best candidate touches.
        candidates: the text of each candidate, the best first.
        providers: the text of all its providers.
    """

    counts: Counts
    candidates: tuple[str, ...]
    providers: str

    @property
    def size(self) -> int:
        """How much memory it takes, in bytes."""
        return BYTES_OF_TREE + len(self.providers) + sum([BYTES_OF_TREE // 4 + len(text) for text in self.candidates])


Trees = Mapping[int, WrittenTree | None]
"""What trees give by root; None is nothing."""


class NamesInText(NamedTuple):
    """The names of classes and of traits that texts have in them, by id."""

    classes: Mapping[int, str] = {}
    traits: Mapping[int, str] = {}

    def are_those_of(self, tx: Transaction) -> bool:
        """Tell whether these are the names of these ids; standard ones always are, and cost nothing."""
        known = tx.names
        return (
            known.classes.names(tx.connection, self.classes) == self.classes
            and known.traits.names(tx.connection, self.traits) == self.traits
        )

    def agree_with(self, other: "NamesInText") -> bool:
        """Tell whether no id has two names."""
        return all(
            mine.get(id_, name) == name
            for mine, theirs in zip(self, other, strict=True)
            for id_, name in theirs.items()
        )

    def together_with(self, other: "NamesInText") -> "NamesInText":
        """Return both."""
        return NamesInText({**self.classes, **other.classes}, {**self.traits, **other.traits})


class CachedTexts:
    """What trees give to one request, as of the newest state of the trees in which it was asked; threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._history: TreeHistory | None = None
        self._number = 0
        self._ids: NamedIds | None = None
        self._names = NamesInText()
        self._trees: dict[int, WrittenTree | None] = {}
        self.size = 0
        """How much memory the trees take, in bytes."""

    def in_snapshot(self, tx: Transaction, moment: Moment, ids: NamedIds, history: TreeHistory) -> Trees:
        """Return those trees of which nothing has changed in a snapshot.

        Args:
            tx: the snapshot.
            moment: where it stands in the history.
            ids: the ids of the names in the request, as the snapshot has them.
            history: that of the database.
        """
        with self._lock:
            if history is not self._history:
                self._history, self._number = history, 0
            changed = history.changed(self._number, moment.number)
            if moment.number >= self._number:
                self._number = moment.number
                self._forget(self._trees.keys() if changed is None else changed)
                changed = frozenset()
            if changed is None:
                return {}
            if ids != self._ids or not self._names.are_those_of(tx):
                self._forget(self._trees.keys())
                self._ids, self._names = ids, NamesInText()
            apart = changed | moment.apart
            return {root: tree for root, tree in self._trees.items() if root not in apart} if apart else {**self._trees}

    def keep(
        self, found: Trees, names: NamesInText, *, seen: Moment, ids: NamedIds, history: TreeHistory, used: Trees
    ) -> None:
        """Keep what was found in a snapshot, as far as it is so in the newest, too.

        Args:
            found: what trees give.
            names: the names in their texts.
            seen: where the snapshot stands in the history.
            ids: the ids of the names in the request.
            history: that of the database.
            used: all that the request has looked at.
        """
        with self._lock:
            if history is not self._history:
                return
            changed = history.changed(self._number, seen.number)
            if changed is None or ids != self._ids or not names.agree_with(self._names):
                return
            self._names = self._names.together_with(names)
            if len(self._trees) > SPARE * len(used):
                self._forget(self._trees.keys() - used.keys())
            apart = changed | seen.apart
            for root, tree in found.items():
                if root not in apart:
                    self._forget([root])
                    self._trees[root] = tree
                    self.size += _size(tree)

    def _forget(self, roots: Collection[int]) -> None:
        for root in [root for root in roots if root in self._trees]:
            self.size -= _size(self._trees.pop(root))


def _size(tree: WrittenTree | None) -> int:
    return BYTES_OF_TREE if tree is None else tree.size


class TextCache:
    """What trees give to requests, by the names of these; threads share it.

    Args:
        most_bytes: how much is kept in all.
        clock: the time in seconds, from any moment on.
    """

    def __init__(self, *, most_bytes: int = MOST_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_bytes = most_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._requests: OrderedDict[Hashable, CachedTexts] = OrderedDict()
        self._refused: dict[Hashable, float] = {}

    @property
    def most_without_limit(self) -> int:
        """How much is kept for one request without a limit, in bytes."""
        return self._most_bytes // WITHOUT_LIMIT

    @property
    def size(self) -> int:
        """How much memory the trees take, in bytes."""
        return sum([request.size for request in [*self._requests.values()]])

    def of(self, name: Hashable) -> CachedTexts | None:
        """Return what is kept for a request; None where it is asked for the first time, or was refused."""
        with self._lock:
            if self._clock() - self._refused.get(name, -LONGEST_KEPT_S) < LONGEST_KEPT_S:
                return None
            known = self._requests.get(name)
            if known is None:
                self._requests[name] = CachedTexts()
            self._requests.move_to_end(name)
            while len(self._requests) > MOST_REQUESTS:
                self._requests.popitem(last=False)
            return known

    def refuse(self, name: Hashable) -> None:
        """Keep nothing for a request for some minutes: it is one whose answer is more than the sum of its trees."""
        with self._lock:
            self._requests.pop(name, None)
            self._refuse(name)

    def trim(self) -> None:
        """Forget what was given to those requests that were not asked for longest, until the rest is small enough."""
        with self._lock:
            while self.size > self._most_bytes:
                name, forgotten = self._requests.popitem(last=False)
                if forgotten.size > self._most_bytes:
                    self._refuse(name)

    def _refuse(self, name: Hashable) -> None:
        if len(self._refused) >= MOST_REQUESTS:
            self._refused.clear()
        self._refused[name] = self._clock()
