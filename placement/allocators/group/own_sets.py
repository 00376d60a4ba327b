"""The sets of requirements that a location can serve itself."""

from collections.abc import Sequence
from typing import NamedTuple

from placement.allocators.group.judges import Judge, judge_of
from placement.allocators.group.locations import Locations
from placement.allocators.group.sets import PartKind, Sets


class OwnSet(NamedTuple):
    """Requirements that a location serves.

    Args:
        own: the set of them, without their parts.
        parts: the set of their parts.
        gain: the increase in the sum of scores.
        order: their sum in the encoding of natural order.
    """

    own: int
    parts: int
    gain: int
    order: int


class OwnSets:
    """Enumerates the sets that locations can serve.

    Args:
        locations: the locations.
        sets: the encoding of sets.
        orders: for each kind, what one of it adds to the encoding of natural order.
        distinct: whether sibling requirements of one level must not share a location.
    """

    def __init__(self, locations: Locations, sets: Sets, orders: Sequence[int], *, distinct: bool) -> None:
        self._locations = locations
        self._kinds = list(zip(sets.kinds, orders, strict=True))
        self._distinct = distinct
        self._known: dict[object, list[OwnSet]] = {}

    def of(self, location: int) -> list[OwnSet]:
        """Return all sets that a location can serve, except the empty one."""
        node = self._locations.all[location]
        kinds = [one for one in self._kinds if location in one[0].nodes[0].viable]
        if not kinds:
            return []
        key = (tuple([order for _kind, order in kinds]), tuple(node.capacities.items()))
        if key not in self._known:
            judge = judge_of(node, [(kind.container, kind.nodes[0]) for kind, _order in kinds], self._locations)
            self._known[key] = self._find(judge, kinds)
        return self._known[key]

    def _find(self, judge: Judge, kinds: Sequence[tuple[PartKind, int]]) -> list[OwnSet]:
        nobody: frozenset[int] = frozenset()
        found = [(OwnSet(0, 0, 0, 0), judge.empty, nobody)]
        for index, (kind, order) in enumerate(kinds):
            most = 1 if self._distinct else len(kind.nodes)
            for (own, parts, _gain, orders), load, around in list(found):
                if kind.around in around:
                    continue
                after = judge.with_one(load, index)
                apart = around | {kind.around} if self._distinct else nobody
                for count in range(1, most + 1):
                    if after is None:
                        break
                    both = OwnSet(own + kind.one * count, parts + kind.parts * count, after[0], orders + order * count)
                    found.append((both, after, apart))
                    after = judge.with_one(after, index)
        return [own for own, _load, _around in found[1:]]
