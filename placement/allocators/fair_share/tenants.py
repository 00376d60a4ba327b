"""Those who hold something in one place, and what they may give back there so that a claim fits in."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from itertools import accumulate
from operator import itemgetter

from placement.allocators.entries import Number
from placement.allocators.fair_share.basket import Basket, Cost, Kind
from placement.allocators.fair_share.court import Court, queue_of
from placement.allocators.fair_share.offers import Held
from placement.allocators.fair_share.tree import way

_Sort = tuple[str, tuple[int, ...], bool, "Freed"]
"""What makes tenants alike: the leaf, what each takes, whether its owner has to keep what is theirs, what it frees."""

Freed = tuple[tuple[int, str, int], ...]
"""What becomes free, sorted: the number of a provider, a class, and how much."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """Something that may be given back as a whole.

    Args:
        held: what it is, and what of it counts.
        freed: all that becomes free by it, and where.
        inside: class -> how much of that lies in the place itself.
    """

    held: Held
    freed: Freed
    inside: Mapping[str, int]


class Tenants:
    """What the tenants of a place can give.

    Args:
        court: who is entitled to what.
        tenants: those who may be asked.
        missing: class -> how much more of it has to be free in the place, as far as sums tell.
        values: value -> the same as a whole number.
        is_free: whether something may go whatever its owner is entitled to.
    """

    def __init__(
        self,
        court: Court,
        tenants: Sequence[Tenant],
        *,
        missing: Mapping[str, int],
        values: Mapping[Number, int],
        is_free: Callable[[Court, Held], bool],
    ) -> None:
        self._court = court
        self._tenants = tenants
        self._missing = missing
        self._values = values
        self._is_free = is_free
        self._limits = {need: amount for need, amount in court.needs.items() if need[0] != court.root}

    @property
    def bound(self) -> Cost | None:
        """What it costs at least by the sums, if somebody has to go; None if all together are not enough."""
        gives = [[one.inside.get(name, 0) for one in self._tenants] for name in self._missing]
        most = [[0, *accumulate(sorted(of, reverse=True))] for of in gives]
        needed = list(self._missing.values())
        least = max([1, *map(bisect_left, most, needed)])
        if least > len(self._tenants):
            return None
        # Of so few, each has to give what is more than the others can.
        each = [need - sums[least - 1] for need, sums in zip(needed, most, strict=True)]
        able = [
            self._values[one.held.value]
            for number, one in enumerate(self._tenants)
            if all([of[number] >= own for of, own in zip(gives, each, strict=True)])
        ]
        return (least, sum(nsmallest(least, able))) if len(able) >= least else (least + 1, 0)

    def nothing(self) -> Basket:
        """Return the empty choice among them in kinds: what is alike but for value and name."""
        purses = {path: number for number, path in enumerate(dict.fromkeys(self._keepers()))}
        kinds = [self._kind(sort, of, purses) for sort, of in self._alike]
        needed = (*self._missing.values(), *self._limits.values())
        return Basket(kinds, needed, [tuple(self._court.surplus(path).values()) for path in purses])

    def chosen(self, counts: Sequence[int]) -> list[Tenant]:
        """Return so many of each kind, the least valuable."""
        alike = zip(counts, self._alike, strict=True)
        return [one for count, (_sort, of) in alike for _value, _name, one in of[:count]]

    @cached_property
    def _alike(self) -> list[tuple[_Sort, list[tuple[int, str, Tenant]]]]:
        alike = defaultdict[_Sort, list[tuple[int, str, Tenant]]](list)
        for one in self._tenants:
            held = one.held
            takes = tuple([held.amounts.get(name, 0) for name in self._court.classes])
            sort = held.leaf, takes, not self._is_free(self._court, held), one.freed
            alike[sort].append((self._values[held.value], held.name, one))
        return [(sort, sorted(of)) for sort, of in sorted(alike.items(), key=itemgetter(0))]

    def _keepers(self) -> Iterator[str]:
        for (leaf, *_rest), _of in self._alike:
            yield from self._court.keepers(leaf)

    def _kind(self, sort: _Sort, alike: Sequence[tuple[int, str, Tenant]], purses: Mapping[str, int]) -> Kind:
        leaf, takes, is_bound, _freed = sort
        first = alike[0][-1]
        return Kind(
            gives=(*[first.inside.get(name, 0) for name in self._missing], *self._towards_limits(first.held)),
            takes=takes,
            values=tuple([value for value, _name, _one in alike]),
            purses=tuple([purses[path] for path in self._court.keepers(leaf)]),
            is_bound=is_bound,
        )

    def _towards_limits(self, held: Held) -> list[int]:
        """Return how much something gives towards the limits that are in the way."""
        around = way(queue_of(held.leaf)) if self._limits else ()
        return [held.amounts.get(name, 0) * (path in around) for path, name in self._limits]


def all_freed(tenants: Iterable[Tenant]) -> dict[int, Counter[str]]:
    """Return provider -> class -> how much becomes free if all these go."""
    freed: dict[int, Counter[str]] = defaultdict(Counter)
    for one in tenants:
        for provider, name, amount in one.freed:
            freed[provider][name] += amount
    return freed
