"""Caches what trees contribute to repeated requests, and makes it exact in each request's snapshot.

An entry is the text of a tree's candidates and providers, as it is sent. It depends only on the tree's own rows, on the
ids of the names in the request, and on the names of classes and traits in the text. The journal tells which rows have
changed; ids and names are looked up in each request.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import NamedTuple

from placement.allocators.compactness import Counts
from placement.domain.search_plan import NamedIds
from placement.services.tree_history import MAX_AGE_S, Moment, TreeHistory
from placement.store.connection.unit_of_work import Transaction

MAX_BYTES = 32 << 20
"""The most text to cache; beyond it, the least recently used request is evicted."""

WITHOUT_LIMIT = 4
"""A request without a limit, which looks at all trees, may take up to one part in this many of that."""

MAX_REQUESTS = 1024
"""The most requests to remember as asked before."""

BYTES_OF_TREE = 400
"""The memory of a tree without its text."""

SPARE = 16
"""How many times as many trees to cache as a request looks at: where chance decides, each looks at others."""


class WrittenTree(NamedTuple):
    """What a tree contributes to an answer.

    Args:
        counts: how many places of each level its best candidate touches.
        candidates: the text of each candidate, best first.
        providers: the text of all its providers.
    """

    counts: Counts
    candidates: tuple[str, ...]
    providers: str

    @property
    def size(self) -> int:
        """The memory it takes, in bytes."""
        return BYTES_OF_TREE + len(self.providers) + sum([BYTES_OF_TREE // 4 + len(text) for text in self.candidates])


Trees = Mapping[int, WrittenTree | None]
"""What trees contribute, by root; None for nothing."""


class NamesInText(NamedTuple):
    """The names of classes and traits that occur in texts, by id."""

    classes: Mapping[int, str] = {}
    traits: Mapping[int, str] = {}

    def are_those_of(self, tx: Transaction) -> bool:
        """Tell whether the ids still have these names; standard ones always do, at no cost."""
        known = tx.names
        return (
            known.classes.names(tx.connection, self.classes) == self.classes
            and known.traits.names(tx.connection, self.traits) == self.traits
        )

    def agree_with(self, other: "NamesInText") -> bool:
        """Tell whether no id has two names in them."""
        return all(
            mine.get(id_, name) == name
            for mine, theirs in zip(self, other, strict=True)
            for id_, name in theirs.items()
        )

    def together_with(self, other: "NamesInText") -> "NamesInText":
        """Return their union."""
        return NamesInText({**self.classes, **other.classes}, {**self.traits, **other.traits})


class CachedTexts:
    """What trees contribute to one request, as of the newest state in which it was asked; shared by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._history: TreeHistory | None = None
        self._number = 0
        self._ids: NamedIds | None = None
        self._names = NamesInText()
        self._trees: dict[int, WrittenTree | None] = {}
        self.size = 0
        """The memory that the trees take, in bytes."""

    def in_snapshot(self, tx: Transaction, moment: Moment, ids: NamedIds, history: TreeHistory) -> Trees:
        """Return the cached trees that are current in a snapshot.

        Args:
            tx: the snapshot.
            moment: where it stands in the history.
            ids: the ids of the names in the request, in the snapshot.
            history: the database's history.
        """
        with self._lock:
            if history is not self._history:
                self._history, self._number = history, 0
            changes = history.changed(self._number, moment.number)
            changed = None if changes is None else changes.roots
            if moment.number >= self._number:
                self._number = moment.number
                self._forget(self._trees.keys() if changed is None else changed)
                changed = frozenset()
            if changed is None:
                return {}
            if ids != self._ids or not self._names.are_those_of(tx):
                self._forget(self._trees.keys())
                self._ids, self._names = ids, NamesInText()
            apart = changed | moment.apart.roots
            return {root: tree for root, tree in self._trees.items() if root not in apart} if apart else {**self._trees}

    def keep(
        self, found: Trees, names: NamesInText, *, seen: Moment, ids: NamedIds, history: TreeHistory, used: Trees
    ) -> None:
        """Cache what was found in a snapshot, unless it may have changed since.

        Args:
            found: what trees contribute.
            names: the names in their texts.
            seen: where the snapshot stands in the history.
            ids: the ids of the names in the request.
            history: the database's history.
            used: all trees that the request has looked at.
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
            apart = changed.roots | seen.apart.roots
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
    """What trees contribute, by the name of the request; shared by threads.

    Args:
        most_bytes: how much to cache in all.
        clock: the time in seconds, from any moment on.
    """

    def __init__(self, *, most_bytes: int = MAX_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_bytes = most_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._requests: OrderedDict[Hashable, CachedTexts] = OrderedDict()
        self._refused: dict[Hashable, float] = {}

    @property
    def most_without_limit(self) -> int:
        """How much one request without a limit may take, in bytes."""
        return self._most_bytes // WITHOUT_LIMIT

    @property
    def size(self) -> int:
        """The memory that the trees take, in bytes."""
        return sum([request.size for request in [*self._requests.values()]])

    def of(self, name: Hashable) -> CachedTexts | None:
        """Return what is cached for a request; None if it is asked for the first time, or was refused."""
        with self._lock:
            if self._clock() - self._refused.get(name, -MAX_AGE_S) < MAX_AGE_S:
                return None
            known = self._requests.get(name)
            if known is None:
                self._requests[name] = CachedTexts()
            self._requests.move_to_end(name)
            while len(self._requests) > MAX_REQUESTS:
                self._requests.popitem(last=False)
            return known

    def refuse(self, name: Hashable) -> None:
        """Cache nothing for a request for some minutes: its answer is not the sum of its trees, or too large."""
        with self._lock:
            self._requests.pop(name, None)
            self._refuse(name)

    def trim(self) -> None:
        """Evict the least recently used requests until the rest fits."""
        with self._lock:
            while self.size > self._most_bytes:
                name, forgotten = self._requests.popitem(last=False)
                if forgotten.size > self._most_bytes:
                    self._refuse(name)

    def _refuse(self, name: Hashable) -> None:
        if len(self._refused) >= MAX_REQUESTS:
            self._refused.clear()
        self._refused[name] = self._clock()
