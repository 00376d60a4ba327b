"""In which order trees come for requests that were seen before: kept from request to request, and exact in each.

A request reads which trees have changed since the order was brought up to date, as its own snapshot shows it, and sums
up these trees alone. What comes out is what the sums of all trees would have given in this snapshot.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Sequence

from placement.candidates.frontier import Key
from placement.candidates.key_order import KeyOrder
from placement.candidates.ranking import TreeScores
from placement.services.place_size_cache import PlaceSizeCache
from placement.services.tree_history import Moment, TreeHistories, TreeHistory
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.changes import MOST_CHANGED
from placement.store.search.scores import sums_by_name

MOST_KEYS = 500_000
"""So many keys are kept in all, some hundred megabytes; then the order that was not asked for longest is forgotten."""

MOST_ORDERS = 256

MUCH = 5
"""Where more than one of so many trees have changed, all are summed up, which costs less then: docs/scaling.md."""

LITTLE = 500
"""So few are always summed up alone."""


class TreeOrders:
    """The orders of trees by the scores that they were asked for; threads share them.

    Args:
        most_keys: how many keys are kept in all.
        most_orders: how many orders are kept.
        clock: the time in seconds, from any moment on.
    """

    def __init__(
        self,
        *,
        most_keys: int = MOST_KEYS,
        most_orders: int = MOST_ORDERS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.histories = TreeHistories(clock)
        self.sizes = PlaceSizeCache(self.histories)
        """How providers lie, which decides among trees that score alike otherwise."""
        self._most_keys = most_keys
        self._most_orders = most_orders
        self._lock = threading.Lock()
        self._orders: OrderedDict[Hashable, _CachedKeys] = OrderedDict()

    @property
    def cached_keys(self) -> int:
        """How many keys are kept."""
        return sum([len(order) for order in self._orders.values()])

    def in_snapshot(self, tx: Transaction, scores: TreeScores, found_by: Sequence[str]) -> KeyOrder | None:
        """Return the keys of all trees in ascending order, as this snapshot shows them; None if they are not kept.

        Args:
            tx: the snapshot.
            scores: what trees can score.
            found_by: further classes: trees that have any of these come, too.
        """
        if scores.signature is None or not scores.classes:
            return None
        moment = self.histories.of(tx.database).moment(tx)
        return None if moment is None else self.at(tx, moment, scores, found_by)

    def at(self, tx: Transaction, moment: Moment, scores: TreeScores, found_by: Sequence[str]) -> KeyOrder | None:
        """Return the same to who has asked where the snapshot stands."""
        if scores.signature is None or not scores.classes:
            return None
        # A class may take the name of another, of which no row of a tree tells.
        ids = tx.names.classes.ids(tx.connection, {*scores.classes, *found_by})
        name = (id(tx.database), scores.signature, tuple(found_by), frozenset(ids.items()))
        with self._lock:
            if name not in self._orders:
                self._orders[name] = _CachedKeys(scores, found_by)
            order = self._orders[name]
            self._orders.move_to_end(name)
        keys = order.at(tx, moment, self.histories.of(tx.database))
        with self._lock:
            while len(self._orders) > self._most_orders or (
                self.cached_keys > self._most_keys and len(self._orders) > 1
            ):
                self._orders.popitem(last=False)
        return keys


class _CachedKeys:
    """The keys of all trees for some scores, in the state that they were last brought up to."""

    def __init__(self, scores: TreeScores, found_by: Sequence[str]) -> None:
        self._scores = scores
        self._found_by = found_by
        self._lock = threading.Lock()
        self._order = KeyOrder(())
        self._by_root: dict[int, Key] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._order)

    def at(self, tx: Transaction, moment: Moment, history: TreeHistory) -> KeyOrder:
        """Return the keys as a snapshot shows them. Only what is not older than what is kept replaces that."""
        with self._lock:
            changed = history.changed(self._number, moment.number)
            if moment.number < self._number or moment.apart:
                return self._aside(tx, None if changed is None else changed | moment.apart)
            if changed is None or self._is_much(changed):
                keys = self._keys(tx)
                self._order = KeyOrder(keys)
                self._by_root = {key[2]: key for key in keys}
            elif changed:
                gone, new = self._differences(tx, changed)
                self._order = self._order.replaced(gone, new)
                for key in gone:
                    del self._by_root[key[2]]
                self._by_root.update([(key[2], key) for key in new])
            self._number = moment.number
            return self._order

    def _aside(self, tx: Transaction, changed: Collection[int] | None) -> KeyOrder:
        """Return the keys as a snapshot shows them that is older than what is kept."""
        if changed is None or self._is_much(changed):
            return KeyOrder(self._keys(tx))
        return self._order.replaced(*self._differences(tx, changed)) if changed else self._order

    def _is_much(self, changed: Collection[int]) -> bool:
        """Tell whether to sum up all trees costs less than to sum up these and to put them into the order."""
        return len(changed) > min(MOST_CHANGED, max(LITTLE, len(self) // MUCH))

    def _keys(self, tx: Transaction, roots: Collection[int] | None = None) -> list[Key]:
        return self._scores.keys(sums_by_name(tx, self._scores.classes, self._found_by, roots))

    def _differences(self, tx: Transaction, changed: Collection[int]) -> tuple[list[Key], list[Key]]:
        """Return the keys of some trees that are gone, and those that have come."""
        known, now = self._by_root.get, {key[2]: key for key in self._keys(tx, changed)}
        gone = [key for root in changed if (key := known(root)) is not None and key != now.get(root)]
        return gone, [key for root, key in now.items() if key != known(root)]
