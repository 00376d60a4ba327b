"""Rules out trees with too little for all groups together: a few sums, before the details of a tree are read.

A search in one host says nothing about others if no two are alike. Sums tell of any host. For two groups of 4 VCPU and
one of 8, for example, the providers of a tree need room for three portions of 4, and for 16 VCPU in all. A tree that
has both may still have no place for the groups.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from placement.candidates.compose.device_parts import Part
from placement.domain.tree import Tree


class _Portions(NamedTuple):
    """What a tree needs: a number of portions of a class, each of them of at least some amount.

    Args:
        resource_class: the class.
        amount: the amount.
        number: how many portions.
        providers: how many providers serve them, those of different parts counted separately.
        loose: demand -> how many of the portions one provider can be asked for, besides those of other demands.
        apart: the same for the demands of isolated groups, of which a provider serves only one.
    """

    resource_class: str
    amount: int
    number: int
    providers: int
    loose: Mapping[int, int]
    apart: Mapping[int, int]

    def available(self, tree: Tree, members: int = 1) -> dict[int, float]:
        """Return how many portions each provider of a tree can give that many members at most."""
        most: dict[int, int] = {}
        for demand, number in self.apart.items():
            for provider in tree.options[demand]:
                most[provider] = max(most.get(provider, 0), number)
        for demand, number in self.loose.items():
            for provider in tree.options[demand]:
                most[provider] = most.get(provider, 0) + number
        room, name, amount = tree.room, self.resource_class, self.amount
        unit = amount * members
        return {one: min(number * unit, room.get((one, name), inf)) // amount for one, number in most.items()}


# Without it, eight members that want a GPU and its switch each are refused by 400 hosts in 800 ms of CPU, not 310.
class DeviceRoom:
    """What the parts of one request need in all.

    Args:
        parts: the parts.
        isolate: whether no two granular parts may be on one provider.
    """

    def __init__(self, parts: Sequence[Part], *, isolate: bool) -> None:
        self._isolate = isolate
        names = dict.fromkeys([name for part in parts for name, _amount in part.slot.resources])
        self._every = [one for name in names for one in self._portions_of(name, parts)]
        # A provider that has room for all of one member's is an option for it.
        self._of_several = [one for one in self._every if one.providers > 1]

    def is_lacking(self, tree: Tree, *, members: int = 1) -> bool:
        """Tell whether a tree certainly has too little for all parts together, each of them once for each member."""
        needed = self._of_several if members == 1 else self._every
        return any(sum(one.available(tree, members).values()) < one.number * members for one in needed)

    def _portions_of(self, name: str, parts: Sequence[Part]) -> Iterator[_Portions]:
        """Yield the portions needed of a class: for each amount asked for, those of at least it; and the sum of all."""
        asking = [part for part in parts if name in dict(part.slot.resources)]
        amounts = {dict(part.slot.resources)[name] for part in asking}
        for amount in sorted(amounts):
            no_less = [part for part in asking if dict(part.slot.resources)[name] >= amount]
            yield self._together(name, amount, [(part, 1) for part in no_less])
        if len(amounts) > 1:
            yield self._together(name, 1, [(part, dict(part.slot.resources)[name]) for part in asking])

    def _together(self, name: str, amount: int, asking: Sequence[tuple[Part, int]]) -> _Portions:
        """Return the portions that some parts need together.

        Args:
            name: the class.
            amount: the least amount of a portion.
            asking: the parts, each with the number of portions that it takes of each of its providers.
        """
        apart: dict[int, int] = {}
        loose: dict[int, int] = defaultdict(int)
        for part, number in asking:
            demand = part.slot.demand
            if self._isolate and part.slot.is_granular:
                apart[demand] = max(apart.get(demand, 0), number)
            else:
                loose[demand] += number
        counts = [1 if part.every is not None else part.group.count for part, _number in asking]
        total = sum([count * number for count, (_part, number) in zip(counts, asking, strict=True)])
        return _Portions(name, amount, number=total, providers=sum(counts), loose=loose, apart=apart)
