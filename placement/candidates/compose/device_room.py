"""Whether a tree has enough for all groups together, wherever in it: told by few numbers before its details are read.

Where hosts are all different no search in one of them says anything about the next. What each provider has room for
alone does: so many devices of so much are there at most. A host that passes may still have no place for the groups.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from placement.allocators.compactness import Counts
from placement.candidates.bounds import fewest
from placement.candidates.compose.device_parts import Part
from placement.domain.planner_tree import PlannerTree
from placement.domain.tree import Tree

if TYPE_CHECKING:
    from placement.domain.places import Position


class _Portions(NamedTuple):
    """So many portions of a class, none of them less than an amount.

    Args:
        resource_class: the class.
        amount: the least of them.
        number: how many there are.
        loose: for each demand how many of them a provider can be asked for, besides those of other demands.
        apart: likewise, but of all these demands a provider serves one part.
    """

    resource_class: str
    amount: int
    number: int
    loose: Mapping[int, int]
    apart: Mapping[int, int]

    def there(self, tree: Tree) -> dict[int, float]:
        """Return how many each provider of a tree can give at most."""
        most: dict[int, int] = {}
        for demand, number in self.apart.items():
            for provider in tree.options[demand]:
                most[provider] = max(most.get(provider, 0), number)
        for demand, number in self.loose.items():
            for provider in tree.options[demand]:
                most[provider] = most.get(provider, 0) + number
        room, name, amount = tree.room, self.resource_class, self.amount
        return {provider: min(number, room.get((provider, name), inf) // amount) for provider, number in most.items()}


class DeviceRoom:
    """What the parts of one request take in all.

    Args:
        parts: the parts.
        isolate: whether those that are granular share no provider.
    """

    def __init__(self, parts: Sequence[Part], *, isolate: bool) -> None:
        self._isolate = isolate
        names = dict.fromkeys([name for part in parts for name, _amount in part.slot.resources])
        self._portions = [one for name in names for one in self._portions_of(name, parts)]

    def is_lacking(self, tree: Tree) -> bool:
        """Tell whether a tree certainly has too little for all parts together."""
        return any(sum(portions.there(tree).values()) < portions.number for portions in self._portions)

    def least_places(self, tree: Tree, details: PlannerTree, *, levels: int) -> Counts:
        """Return in how few places of each level a tree can serve all parts at least, by the room of its places."""
        found, positions, foreign = [1] * levels, details.positions, details.foreign_providers
        nowhere: Position = (None,) * levels
        for portions in self._portions:
            at: dict[Position, float] = defaultdict(float)
            for provider, number in portions.there(tree).items():
                at[nowhere if provider in foreign else positions[provider]] += number
            for level in range(levels):
                of_place: dict[int | None, float] = defaultdict(float)
                for position, number in at.items():
                    of_place[position[level]] += number
                free = of_place.pop(None, 0)
                sizes = sorted(of_place.values(), reverse=True)
                found[level] = max(found[level], fewest(sizes, portions.number - free))
        return tuple(found)

    def _portions_of(self, name: str, parts: Sequence[Part]) -> Iterator[_Portions]:
        """Yield for each amount that is asked for of a class all portions that are not less, and the sum of all."""
        asking = [part for part in parts if name in dict(part.slot.resources)]
        amounts = {dict(part.slot.resources)[name] for part in asking}
        for amount in sorted(amounts):
            no_less = [part for part in asking if dict(part.slot.resources)[name] >= amount]
            yield from self._together(name, amount, [(part, 1) for part in no_less])
        if len(amounts) > 1:
            yield from self._together(name, 1, [(part, dict(part.slot.resources)[name]) for part in asking])

    def _together(self, name: str, amount: int, asking: Sequence[tuple[Part, int]]) -> Iterator[_Portions]:
        """Yield the portions of parts that ask each of their providers for so many, if there are several."""
        apart: dict[int, int] = {}
        loose: dict[int, int] = defaultdict(int)
        for part, number in asking:
            demand = part.slot.demand
            if self._isolate and part.slot.is_granular:
                apart[demand] = max(apart.get(demand, 0), number)
            else:
                loose[demand] += number
        counts = [1 if part.every is not None else part.group.count for part, _number in asking]
        if sum(counts) > 1:
            total = sum([count * number for count, (_part, number) in zip(counts, asking, strict=True)])
            yield _Portions(name, amount, total, loose, apart)
