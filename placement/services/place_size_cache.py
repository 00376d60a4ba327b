"""Caches how providers spread over places from request to request, and makes it exact in each request's snapshot.

A request reads which trees its own snapshot shows changed, and reads only these again. Sizes depend neither on how
many providers are wanted nor on what is best.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping

from placement.candidates.bounds import PlaceSizes
from placement.services.tree_history import Moment, TreeHistories, TreeHistory
from placement.store.connection.unit_of_work import Transaction

MAX_TREES = 500_000
"""The most trees to cache, some fifty megabytes; beyond it, the least recently used entry is evicted."""

MAX_NAMES = 256

MAX_LISTED = 1000
"""If more trees have changed, all are read again."""

SizesByDemand = tuple[PlaceSizes, ...]
"""How one tree's providers spread, for each of some demands."""

SizesByRoot = Mapping[int, SizesByDemand]
"""The same for trees that have a provider for each demand."""

ReadSizes = Callable[[Collection[int] | None], SizesByRoot]
"""Reads the trees with the given roots; all if given None."""


class PlaceSizeCache:
    """How providers spread, by a name for what they can serve; shared by threads.

    Args:
        histories: which trees have changed.
        most_trees: how many trees to cache in all.
    """

    def __init__(self, histories: TreeHistories, *, most_trees: int = MAX_TREES) -> None:
        self._histories = histories
        self._most_trees = most_trees
        self._lock = threading.Lock()
        self._by_name: OrderedDict[Hashable, _CachedSizes] = OrderedDict()

    @property
    def cached_trees(self) -> int:
        """How many trees are cached."""
        return sum([len(of) for of in self._by_name.values()])

    def in_snapshot(self, tx: Transaction, name: Hashable, read: ReadSizes) -> SizesByRoot | None:
        """Return how providers spread in this snapshot; None if the changed trees are unknown.

        Args:
            tx: the snapshot.
            name: identifies what the providers can serve, and the levels.
            read: reads sizes in this snapshot.
        """
        history = self._histories.of(tx.database)
        moment = history.moment(tx)
        if moment is None:
            return None
        full_name = id(tx.database), name
        with self._lock:
            cached = self._by_name.setdefault(full_name, _CachedSizes())
            self._by_name.move_to_end(full_name)
        found = cached.at(moment, history, read)
        with self._lock:
            while len(self._by_name) > MAX_NAMES or (self.cached_trees > self._most_trees and len(self._by_name) > 1):
                self._by_name.popitem(last=False)
        return found


class _CachedSizes:
    """The sizes of all trees, as of the state they were last brought up to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sizes: SizesByRoot = {}
        """Replaced, never mutated: other threads may be reading it."""
        self._number = 0

    def __len__(self) -> int:
        return len(self._sizes)

    def at(self, moment: Moment, history: TreeHistory, read: ReadSizes) -> SizesByRoot:
        """Return the sizes in a snapshot. They replace the cached ones unless the snapshot is older."""
        with self._lock:
            is_older = moment.number < self._number or bool(moment.apart)
            changed = history.changed(self._number, moment.number)
            if changed is None or len(changed | moment.apart) > MAX_LISTED:
                found = read(None)
            else:
                found = self._with(changed | moment.apart, read)
            if not is_older:
                self._sizes, self._number = found, moment.number
            return found

    def _with(self, changed: Collection[int], read: ReadSizes) -> SizesByRoot:
        """Return the sizes, changed trees read again."""
        if not changed:
            return self._sizes
        others = {root: of for root, of in self._sizes.items() if root not in changed}
        return {**others, **read(changed)}
