"""Caches facts about trees from request to request, and makes them exact in each request's snapshot.

A request reads which trees its own snapshot shows changed, and reads the facts of only these again. Two kinds are
cached: how providers spread over places, and which trees have enough left for a request.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Generic, TypeVar

from placement.services.tree_history import Moment, TreeHistories, TreeHistory
from placement.store.connection.unit_of_work import Transaction

MAX_TREES = 500_000
"""The most trees to cache, some fifty megabytes; beyond it, the least recently used entry is evicted."""

MAX_NAMES = 256

MAX_LISTED = 1000
"""If more trees have changed, all are read again."""

Fact = TypeVar("Fact")

FactByRoot = Mapping[int, Fact]
"""A fact about trees, by root; trees that it is not true of are missing."""

ReadFacts = Callable[[Collection[int] | None], FactByRoot[Fact]]
"""Reads the facts of the trees with the given roots; of all if given None."""


class TreeFactCache(Generic[Fact]):
    """Facts of one kind, by name; shared by threads.

    Args:
        histories: which trees have changed.
        most_trees: how many trees to cache in all.
    """

    def __init__(self, histories: TreeHistories, *, most_trees: int = MAX_TREES) -> None:
        self._histories = histories
        self._most_trees = most_trees
        self._lock = threading.Lock()
        self._by_name: OrderedDict[Hashable, _CachedFacts[Fact]] = OrderedDict()

    @property
    def cached_trees(self) -> int:
        """How many trees are cached."""
        return sum([len(of) for of in self._by_name.values()])

    def knows(self, tx: Transaction, name: Hashable) -> bool:
        """Whether facts of this name are cached."""
        return (id(tx.database), name) in self._by_name

    def in_snapshot(self, tx: Transaction, name: Hashable, read: ReadFacts[Fact]) -> FactByRoot[Fact] | None:
        """Return the facts in this snapshot; None if the changed trees are unknown.

        Args:
            tx: the snapshot.
            name: identifies the facts: whatever they depend on besides the trees.
            read: reads them in this snapshot.
        """
        history = self._histories.of(tx.database)
        moment = history.moment(tx)
        if moment is None:
            return None
        full_name = id(tx.database), name
        with self._lock:
            cached = self._by_name.setdefault(full_name, _CachedFacts())
            self._by_name.move_to_end(full_name)
        found = cached.at(moment, history, read)
        with self._lock:
            while len(self._by_name) > MAX_NAMES or (self.cached_trees > self._most_trees and len(self._by_name) > 1):
                self._by_name.popitem(last=False)
        return found


class _CachedFacts(Generic[Fact]):
    """The facts of all trees, as of the state they were last brought up to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._facts: FactByRoot[Fact] = {}
        """Replaced, never mutated: other threads may be reading it."""
        self._number = 0

    def __len__(self) -> int:
        return len(self._facts)

    def at(self, moment: Moment, history: TreeHistory, read: ReadFacts[Fact]) -> FactByRoot[Fact]:
        """Return the facts in a snapshot. They replace the cached ones unless the snapshot is older."""
        with self._lock:
            is_older = moment.number < self._number or bool(moment.apart)
            changed = history.changed(self._number, moment.number)
            if changed is None or len(changed | moment.apart) > MAX_LISTED:
                found = read(None)
            else:
                found = self._with(changed | moment.apart, read)
            if not is_older:
                self._facts, self._number = found, moment.number
            return found

    def _with(self, changed: Collection[int], read: ReadFacts[Fact]) -> FactByRoot[Fact]:
        """Return the facts, those of changed trees read again."""
        if not changed:
            return self._facts
        facts = {**self._facts}
        for root in changed:
            facts.pop(root, None)
        facts.update(read(changed))
        return facts
