"""Caches the order of trees from request to request, and makes it exact in each request's snapshot.

A request reads which trees its own snapshot shows changed since the order was last brought up to date, and rescores
only these. The result is the order that the sums of all trees would give in that snapshot.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import compress
from operator import itemgetter, ne
from typing import TYPE_CHECKING, Any

from placement.candidates.bounds import SizesByDemand
from placement.candidates.frontier import ROOT, Key
from placement.candidates.key_order import KeyOrder
from placement.candidates.ranking import TreeScores
from placement.services.in_vain import InVain
from placement.services.tree_fact_cache import TreeFactCache
from placement.services.tree_history import Moment, Roots, TreeHistories, TreeHistory
from placement.services.tree_sums import AskedSums, reading_all_pays
from placement.store.connection.prepared import PreparedScalars, Values
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.scores import ABSENT

if TYPE_CHECKING:
    from placement.services.allocation_candidates import Answer
    from placement.services.explain import Explained
    from placement.services.planner.candidates import PlannerAnswer

MAX_KEYS = 500_000
"""The most keys to cache, some hundred megabytes; beyond it, the least recently used order is evicted."""

MAX_ORDERS = 256

ReadKeys = Callable[[Collection[int] | None], list[Key]]
"""Returns the keys of the trees with the given roots in a snapshot; of all if given None."""


class TreeOrders:
    """The cached orders of trees, one for each way to score them, shared by threads.

    Args:
        most_keys: how many keys to cache in all.
        most_orders: how many orders to cache.
        clock: the time in seconds, from any moment on.
        histories: which trees have changed; new ones by that clock by default.
    """

    def __init__(
        self,
        *,
        most_keys: int = MAX_KEYS,
        most_orders: int = MAX_ORDERS,
        clock: Callable[[], float] = time.monotonic,
        histories: TreeHistories | None = None,
    ) -> None:
        self.histories = histories or TreeHistories(clock)
        self.sizes = TreeFactCache[SizesByDemand](self.histories)
        """How providers spread over places, which tightens the keys of trees."""
        self.roomy = TreeFactCache[bool](self.histories)
        """Which trees have enough left, for those requests whose best trees are full."""
        self.no_candidates: InVain[Answer] = InVain(self.histories)
        """The requests without candidates."""
        self.no_place: InVain[Explained] = InVain(self.histories)
        """What claims asked for that has no place even alone."""
        self.nothing_planned: InVain[PlannerAnswer] = InVain(self.histories)
        """The planner's requests without candidates."""
        self._most_keys = most_keys
        self._most_orders = most_orders
        self._lock = threading.Lock()
        self._orders: OrderedDict[Hashable, _CachedKeys] = OrderedDict()

    @property
    def cached_keys(self) -> int:
        """How many keys are cached."""
        return sum([len(order) for order in self._orders.values()])

    def read_along(self, tx: Transaction, scalars: PreparedScalars, values: Values) -> Sequence[Any] | None:
        """Return scalars, read in the statement that orders need anyway; None if they must be read alone."""
        return self.histories.of(tx.database).read_along(tx, scalars, values)

    def in_snapshot(self, tx: Transaction, scores: TreeScores, found_by: Sequence[str]) -> KeyOrder | None:
        """Return the keys of all trees in ascending order in this snapshot; None if they cannot be cached.

        Args:
            tx: the snapshot.
            scores: what trees can score.
            found_by: further classes whose owners to include.
        """
        if scores.signature is None or not scores.classes:
            return None
        moment = self.histories.of(tx.database).moment(tx)
        return None if moment is None else self.at(tx, moment, scores, found_by)

    def at(self, tx: Transaction, moment: Moment, scores: TreeScores, found_by: Sequence[str]) -> KeyOrder | None:
        """Return the same for a snapshot whose moment is known."""
        if scores.signature is None or not scores.classes:
            return None
        # A class may take the name of another, which the journal does not record.
        ids = tx.names.classes.ids(tx.connection, {*scores.classes, *found_by})
        name = (id(tx.database), scores.signature, tuple(found_by), frozenset(ids.items()))
        with self._lock:
            if name not in self._orders:
                self._orders[name] = _CachedKeys(scores, ids, found_by)
            order = self._orders[name]
            self._orders.move_to_end(name)
        length = len(order)
        keys = order.at(tx, moment, self.histories.of(tx.database))
        if len(order) > length:
            self._evict()
        return keys

    def _evict(self) -> None:
        """Drop the least recently used orders until no more are cached than may be."""
        with self._lock:
            while len(self._orders) > self._most_orders or (
                self.cached_keys > self._most_keys and len(self._orders) > 1
            ):
                self._orders.popitem(last=False)


class _CachedKeys:
    """The keys of all trees for some scores, as of the state they were last brought up to.

    Args:
        scores: what trees can score.
        ids: the ids of the classes that exist.
        found_by: further classes.
    """

    def __init__(self, scores: TreeScores, ids: Mapping[str, int], found_by: Sequence[str]) -> None:
        self._scores = scores
        self._asked = AskedSums([ids.get(name, ABSENT) for name in scores.classes], [ids[name] for name in found_by])
        self._lock = threading.Lock()
        self._order = KeyOrder(())
        self._by_root: dict[int, Key] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._order)

    def at(self, tx: Transaction, moment: Moment, history: TreeHistory) -> KeyOrder:
        """Return the keys in a snapshot. They replace the cached ones unless the snapshot is older."""
        read = partial(self._keys, tx, moment, history)
        with self._lock:
            changed = history.changed(self._number, moment.number)
            if moment.number < self._number or moment.apart:
                return self._aside(read, None if changed is None else changed | moment.apart)
            if changed is None or reading_all_pays(len(changed), len(self)):
                keys = read(None)
                self._order = KeyOrder(keys)
                self._by_root = {key[ROOT]: key for key in keys}
            elif changed:
                now = read(changed)
                lost = self._without_key(changed, now)
                gone, new = self._difference(now, lost)
                self._order = self._order.replaced(gone, new)
                for root in lost:
                    del self._by_root[root]
                self._by_root.update(zip(map(itemgetter(ROOT), new), new, strict=True))
            self._number = moment.number
            return self._order

    def _aside(self, read: ReadKeys, changed: Roots | None) -> KeyOrder:
        """Return the keys in a snapshot that is older than the cached state."""
        if changed is None or reading_all_pays(len(changed), len(self)):
            return KeyOrder(read(None))
        now = read(changed)
        return self._order.replaced(*self._difference(now, self._without_key(changed, now)))

    def _keys(self, tx: Transaction, moment: Moment, history: TreeHistory, roots: Collection[int] | None) -> list[Key]:
        return self._scores.keys(history.sums(tx, moment, self._asked, roots))

    def _difference(self, now: Collection[Key], lost: Iterable[int]) -> tuple[list[Key], list[Key]]:
        """Return the keys that changed trees no longer have, and those that are new.

        Args:
            now: the keys that they have now.
            lost: the roots of those that have none any more.
        """
        before = [*map(self._by_root.get, map(itemgetter(ROOT), now))]
        differ = [*map(ne, before, now)]
        gone = [*filter(None, compress(before, differ)), *[self._by_root[root] for root in lost]]
        return gone, [*compress(now, differ)]

    def _without_key(self, changed: Roots, now: Collection[Key]) -> list[int]:
        """Return the roots of the changed trees that had a key and have none now."""
        if len(now) == len(changed):
            return []
        return [root for root in changed.difference([root for _fails, _negated, root in now]) if root in self._by_root]
