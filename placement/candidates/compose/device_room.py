"""Whether a tree has enough for all groups together, wherever in it: told by few numbers before its details are read.

Where hosts are all different no search in one of them says anything about the next. What each provider has room for
alone does: so many devices of so much are there at most. A host that passes may still have no place for the groups.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from placement.candidates.compose.device_parts import Part
from placement.domain.tree import Tree


class _Portions(NamedTuple):
    """So many portions of a class, none of them less than an amount.

    Args:
        resource_class: the class.
        amount: the least of them.
        number: how many there are.
        loose: for each demand how many parts ask for it, each of which takes any provider once at most.
        apart: the demands of parts that share no provider with each other.
    """

    resource_class: str
    amount: int
    number: int
    loose: Mapping[int, int]
    apart: Collection[int]

    def are_too_many(self, tree: Tree) -> bool:
        """Tell whether the providers of a tree cannot give as many."""
        most: dict[int, int] = defaultdict(int)
        for demand in self.apart:
            most.update(dict.fromkeys(tree.options[demand], 1))
        for demand, parts in self.loose.items():
            for provider in tree.options[demand]:
                most[provider] += parts
        room, name, amount = tree.room, self.resource_class, self.amount
        there = [min(number, room.get((provider, name), inf) // amount) for provider, number in most.items()]
        return sum(there) < self.number


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
        return any([portions.are_too_many(tree) for portions in self._portions])

    def _portions_of(self, name: str, parts: Sequence[Part]) -> Iterator[_Portions]:
        """Yield for each amount that is asked for of a class all portions that are not less."""
        asking = [part for part in parts if name in dict(part.slot.resources)]
        for amount in sorted({dict(part.slot.resources)[name] for part in asking}):
            no_less = [part for part in asking if dict(part.slot.resources)[name] >= amount]
            apart = {part.slot.demand for part in no_less if self._isolate and part.slot.is_granular}
            loose: dict[int, int] = defaultdict(int)
            for part in no_less:
                loose[part.slot.demand] += part.slot.demand not in apart
            counts = [1 if part.every is not None else part.group.count for part in no_less]
            if sum(counts) > 1:
                yield _Portions(name, amount, sum(counts), {d: n for d, n in loose.items() if n}, apart)
