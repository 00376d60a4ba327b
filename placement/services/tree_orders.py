"""In which order trees come for requests that were seen before: kept from request to request, and exact in each.

A request reads which trees have changed since the order was brought up to date, as its own snapshot shows it, and sums
up these trees alone. What comes out is what the sums of all trees would have given in this snapshot.
"""

import threading
import time
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import TYPE_CHECKING

from placement.candidates.frontier import Key
from placement.candidates.ranking import TreeScores
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.changes import trees_changed
from placement.store.search.scores import sums_by_name

if TYPE_CHECKING:
    from placement.store.journal.cursor import Cursor

MOST_KEYS = 500_000
"""So many keys are kept in all, some hundred megabytes; then the order that was not asked for longest is forgotten."""


MOST_ORDERS = 256

LONGEST_KEPT_S = 300.0
"""After so long an order is made anew: whoever removes the triggers of the journal while servers run leaves no row."""


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
        self._clock = clock
        self._most_keys = most_keys
        self._most_orders = most_orders
        self._lock = threading.Lock()
        self._orders: OrderedDict[Hashable, _KeptKeys] = OrderedDict()

    @property
    def kept_keys(self) -> int:
        """How many keys are kept."""
        return sum([len(order) for order in self._orders.values()])

    def in_snapshot(self, tx: Transaction, scores: TreeScores, found_by: Sequence[str]) -> Sequence[Key] | None:
        """Return the keys of all trees in ascending order, as this snapshot shows them; None if they are not kept.

        Args:
            tx: the snapshot.
            scores: what trees can score.
            found_by: further classes: trees that have any of these come, too.
        """
        if scores.signature is None or not scores.classes:
            return None
        name = (id(tx.database), scores.signature, tuple(found_by))
        with self._lock:
            if name not in self._orders:
                self._orders[name] = _KeptKeys(scores, found_by, self._clock)
            order = self._orders[name]
            self._orders.move_to_end(name)
        keys = order.in_snapshot(tx)
        with self._lock:
            while len(self._orders) > self._most_orders or (self.kept_keys > self._most_keys and len(self._orders) > 1):
                self._orders.popitem(last=False)
        return keys


class _KeptKeys:
    """The keys of all trees for some scores, and where in the journal whoever reads on has to begin."""

    def __init__(self, scores: TreeScores, found_by: Sequence[str], clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept_since = clock()
        self._scores = scores
        self._found_by = found_by
        self._lock = threading.Lock()
        self._order: list[Key] = []
        """It is replaced, not changed: others may be going through it."""
        self._by_root: dict[int, Key] = {}
        self._place: Cursor | None = None

    def __len__(self) -> int:
        return len(self._order)

    def in_snapshot(self, tx: Transaction) -> Sequence[Key] | None:
        with self._lock:
            is_old = self._clock() - self._kept_since > LONGEST_KEPT_S
            changed = trees_changed(tx, None if is_old else self._place)
            if changed is None:
                return None
            if changed.roots is None:
                self._read_all(tx)
            elif changed.roots:
                self._update(changed.roots, self._keys(tx, changed.roots))
            self._place = changed.place
            return self._order

    def _keys(self, tx: Transaction, roots: Collection[int] | None = None) -> list[Key]:
        return self._scores.keys(sums_by_name(tx, self._scores.classes, self._found_by, roots))

    def _read_all(self, tx: Transaction) -> None:
        self._kept_since = self._clock()
        self._order = sorted(self._keys(tx))
        self._by_root = {key[2]: key for key in self._order}

    def _update(self, changed: Collection[int], keys: Sequence[Key]) -> None:
        order = self._order.copy()
        for root in changed:
            if (key := self._by_root.pop(root, None)) is not None:
                del order[bisect_left(order, key)]
        for key in keys:
            self._by_root[key[2]] = key
            insort(order, key)
        self._order = order
