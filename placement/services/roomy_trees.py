"""Which trees have enough left for a request, as cached from request to request."""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet

from placement.services.tree_orders import TreeOrders
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.tree_room import RoomNeeded, RoomyTrees, RoomyTreesAsRead, roots_with_room


def roomy_trees(tx: Transaction, orders: TreeOrders | None) -> RoomyTrees:
    """Return what finds the trees with room in a snapshot: from the cache of the orders, if there is one."""
    return RoomyTreesAsRead(tx) if orders is None else _CachedRoomyTrees(tx, orders)


class _CachedRoomyTrees:
    """Finds trees with room by reading only those that have changed.

    Where the best hosts are the fullest, as when work is packed, a search passes by the full ones first. Summing up the
    whole cloud to recognise them would make each request dearer the larger the cloud is.
    """

    def __init__(self, tx: Transaction, orders: TreeOrders) -> None:
        self._tx = tx
        self._cache = orders.roomy

    def known(self, rooms: Mapping[int, RoomNeeded]) -> bool:
        """Whether it costs little to find them, because it was done before."""
        return self._cache.knows(self._tx, _name(rooms))

    def roots(self, rooms: Mapping[int, RoomNeeded]) -> AbstractSet[int]:
        """Return the roots of all of them."""

        def read(roots: Collection[int] | None) -> dict[int, bool]:
            return dict.fromkeys(roots_with_room(self._tx, rooms, roots), True)

        cached = self._cache.in_snapshot(self._tx, _name(rooms), read)
        return roots_with_room(self._tx, rooms) if cached is None else cached.keys()


def _name(rooms: Mapping[int, RoomNeeded]) -> frozenset[tuple[int, RoomNeeded]]:
    return frozenset(rooms.items())
