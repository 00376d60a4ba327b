"""How providers lie that requests asked for before: cached from request to request, and exact in each.

A request reads which trees have changed since, as its own snapshot shows it, and looks at these alone. How many
providers are wanted does not matter, nor what is best.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping

from placement.candidates.bounds import PlaceSizes
from placement.services.tree_history import Moment, TreeHistories, TreeHistory
from placement.store.connection.unit_of_work import Transaction

MOST_TREES = 500_000
"""Of so many trees it is kept in all, some fifty megabytes; then what was not asked for longest is forgotten."""

MOST_NAMES = 256

MOST_LISTED = 1000
"""Where more trees have changed, all are read again."""

SizesByDemand = tuple[PlaceSizes, ...]
"""How the providers of one tree lie, for each of some demands."""

SizesByRoot = Mapping[int, SizesByDemand]
"""The same for trees that have a provider for each demand."""

ReadSizes = Callable[[Collection[int] | None], SizesByRoot]
"""Reads it of the trees with some roots; of all if given None."""


class PlaceSizeCache:
    """How providers lie, by the names of what they can serve; threads share it.

    Args:
        histories: which trees have changed.
        most_trees: of how many trees it is kept in all.
    """

    def __init__(self, histories: TreeHistories, *, most_trees: int = MOST_TREES) -> None:
        self._histories = histories
        self._most_trees = most_trees
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _CachedSizes] = OrderedDict()

    @property
    def cached_trees(self) -> int:
        """Of how many trees it is kept."""
        return sum([len(of) for of in self._kept.values()])

    def in_snapshot(self, tx: Transaction, name: Hashable, read: ReadSizes) -> SizesByRoot | None:
        """Return how providers lie, as this snapshot shows it; None where nothing tells what has changed.

        Args:
            tx: the snapshot.
            name: tells what the providers can serve, and the levels, from all others.
            read: reads it in this snapshot.
        """
        history = self._histories.of(tx.database)
        moment = history.moment(tx)
        if moment is None:
            return None
        full_name = id(tx.database), name
        with self._lock:
            kept = self._kept.setdefault(full_name, _CachedSizes())
            self._kept.move_to_end(full_name)
        found = kept.at(moment, history, read)
        with self._lock:
            while len(self._kept) > MOST_NAMES or (self.cached_trees > self._most_trees and len(self._kept) > 1):
                self._kept.popitem(last=False)
        return found


class _CachedSizes:
    """How providers lie in all trees, in the state that it was last brought up to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sizes: SizesByRoot = {}
        """It is replaced, not changed: others may be going through it."""
        self._number = 0

    def __len__(self) -> int:
        return len(self._sizes)

    def at(self, moment: Moment, history: TreeHistory, read: ReadSizes) -> SizesByRoot:
        """Return it as a snapshot shows it. Only what is not older than what is kept replaces that."""
        with self._lock:
            is_older = moment.number < self._number or bool(moment.apart)
            changed = history.changed(self._number, moment.number)
            if changed is None or len(changed | moment.apart) > MOST_LISTED:
                found = read(None)
            else:
                found = self._with(changed | moment.apart, read)
            if not is_older:
                self._sizes, self._number = found, moment.number
            return found

    def _with(self, changed: Collection[int], read: ReadSizes) -> SizesByRoot:
        """Return it with some trees read again."""
        if not changed:
            return self._sizes
        others = {root: of for root, of in self._sizes.items() if root not in changed}
        return {**others, **read(changed)}
