"""Which trees have enough left for all of a plan: one statement, however many groups there are.

It rules out most trees where there is little hope. Units, traits and aggregates are not looked at, nor which providers
are left to whom, so a tree with enough left may still not serve.
"""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from sqlalchemy import BigInteger, Double, Integer, and_, bindparam, case, cast, func, select

from placement.domain.search_plan import Plan
from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import is_of_roots
from placement.store.stock import stock_by_tree

MOST = 2**63 - 1
"""No tree has more, and databases compare no larger numbers."""


class RoomNeeded(NamedTuple):
    """What must be left of a class in a tree: so much in all, and so much at one of its providers."""

    in_all: int = 0
    at_one: int = 0


def room_needed(plan: Plan, demands: Collection[int]) -> dict[str, RoomNeeded]:
    """Return what a tree must have left of each class if its own providers serve these demands at the same time."""
    rooms: dict[str, RoomNeeded] = {}
    for slot in plan.slots:
        if slot.demand in demands:
            for name, amount in slot.resources:
                in_all, at_one = rooms.get(name, RoomNeeded())
                rooms[name] = RoomNeeded(min(in_all + amount, MOST), max(at_one, amount))
    return rooms


class RoomyTrees(Protocol):
    """Finds the trees that have enough left, given what is needed of some classes, at least one, by their ids."""

    def known(self, rooms: Mapping[int, RoomNeeded]) -> bool:
        """Whether it costs little to find them, because it was done before."""

    def roots(self, rooms: Mapping[int, RoomNeeded]) -> AbstractSet[int]:
        """Return the roots of all of them."""


class RoomyTreesAsRead:
    """Finds them by summing up the whole cloud.

    Args:
        tx: the transaction.
    """

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx

    def known(self, rooms: Mapping[int, RoomNeeded]) -> bool:  # noqa: ARG002 - nothing is kept
        """Whether it costs little to find them, which it does not."""
        return False

    def roots(self, rooms: Mapping[int, RoomNeeded]) -> AbstractSet[int]:
        """Return the roots of all of them."""
        return roots_with_room(self._tx, rooms)


def roots_with_room(
    tx: Transaction, rooms: Mapping[int, RoomNeeded], roots: Collection[int] | None = None
) -> frozenset[int]:
    """Return the roots of the trees that have enough left.

    Args:
        tx: the transaction.
        rooms: what is needed of some classes, at least one, by their ids.
        roots: the trees to look at; None for all.
    """
    values: dict[str, Any] = {"classes": sorted(rooms)} | ({} if roots is None else {"roots": sorted(roots)})
    for index, (class_id, room) in enumerate(sorted(rooms.items())):
        values |= {f"class_{index}": class_id, f"in_all_{index}": room.in_all, f"at_one_{index}": room.at_one}
    statement = _with_room(len(rooms), keeps_usage=tx.database.keeps_usage, listed=roots is not None)
    return frozenset([root for (root,) in tx.tuples(statement, values)])


@lru_cache(maxsize=32)
def _with_room(classes: int, *, keeps_usage: bool, listed: bool) -> PreparedStatement:
    has = stock_by_tree(keeps_usage=keeps_usage).c
    left = cast(has.capacity, Double) - cast(has.used, Double)  # Sums of floats are cheap.
    conditions = []
    for index in range(classes):
        is_of_class = has.resource_class_id == bindparam(f"class_{index}", type_=Integer, literal_execute=True)
        of_class = case((is_of_class, left))
        conditions += [
            func.sum(of_class) >= bindparam(f"in_all_{index}", type_=BigInteger),
            func.max(of_class) >= bindparam(f"at_one_{index}", type_=BigInteger),
        ]
    of_classes = has.resource_class_id.in_(bindparam("classes", type_=Integer, expanding=True, literal_execute=True))
    return PreparedStatement(
        select(has.root_provider_id)
        .where(of_classes, has.capacity > has.used, *([is_of_roots(has.resource_provider_id)] if listed else []))
        .group_by(has.root_provider_id)
        .having(and_(*conditions))
    )
