"""Those who hold something in one place, and what they may give back there so that a claim fits in."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from itertools import accumulate
from operator import attrgetter, itemgetter

from placement.allocators.entries import Number
from placement.allocators.fair_share.basket import Basket, Cost, Kind
from placement.allocators.fair_share.court import Court, queue_of
from placement.allocators.fair_share.offers import Held
from placement.allocators.fair_share.tree import way

_Sort = tuple[str, tuple[int, ...], bool, tuple[int, ...], "Freed"]
"""What makes tenants alike: the leaf, what each takes, whether its owner has to keep what is theirs, what it gives of
what is missing, and what it frees where."""

Need = str | tuple[int, str]
"""What has to be free: of a class in the place as a whole, or of a class in a part of it."""

Freed = tuple[tuple[int, str, int], ...]
"""What becomes free, sorted: the number of a provider, a class, and how much."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """Something that may be given back as a whole.

    Args:
        held: what it is, and what of it counts.
        freed: all that becomes free by it, and where.
        inside: how much of what may be needed lies in the place itself.
    """

    held: Held
    freed: Freed
    inside: Mapping[Need, int]


class Tenants:
    """What the tenants of a place can give.

    Args:
        court: who is entitled to what.
        tenants: those who may be asked.
        missing: how much more has to be free in the place, as far as sums tell.
        values: value -> the same as a whole number.
        is_free: whether something may go whatever its owner is entitled to.
    """

    def __init__(
        self,
        court: Court,
        tenants: Sequence[Tenant],
        *,
        missing: Mapping[Need, int],
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
        return least_cost(self._tenants, self._missing, self._values)

    def could_free(self, missing: Mapping[Need, int]) -> bool:
        """Tell whether so much could become free, by the sums and by what has to be kept of those who all must go."""
        forced: dict[str, Tenant] = {}
        for need, amount in missing.items():
            if amount > 0:
                gives = [one.inside.get(need, 0) for one in self._tenants]
                spare = sum(gives) - amount
                if spare < 0:
                    return False
                too_much = zip(gives, self._tenants, strict=True)
                forced.update({one.held.name: one for much, one in too_much if much > spare})
        return self._is_theirs(forced.values())

    def _is_theirs(self, tenants: Iterable[Tenant]) -> bool:
        """Tell whether owners keep what is theirs if just these go."""
        court = self._court
        spent, bound = defaultdict[tuple[str, str], int](int), set[tuple[str, str]]()
        for one in tenants:
            amounts, is_free, keepers = one.held.amounts, self._is_free(court, one.held), court.keepers(one.held.leaf)
            for name in court.classes:
                much = amounts.get(name, 0)
                for path in keepers if much else ():
                    spent[path, name] += much
                    if not is_free:
                        bound.add((path, name))
                    if (path, name) in bound and spent[path, name] > court.surplus(path)[name]:
                        return False
        return True

    @property
    def least_value(self) -> Number | None:
        """The least value up to which all together are enough, as far as sums tell; None if they never are."""
        needed = {need: amount for need, amount in self._missing.items() if amount > 0}
        for one in sorted(self._tenants, key=attrgetter("held.value")):
            for need in needed.keys() & one.inside.keys():
                needed[need] -= one.inside[need]
                if needed[need] <= 0:
                    del needed[need]
            if not needed:
                return one.held.value
        return None

    def up_to(self, highest: Number) -> "Tenants":
        """Return the same with those alone that are worth no more than that."""
        return self._like([one for one in self._tenants if one.held.value <= highest], self._missing)

    def with_more_missing(self, missing: Mapping[Need, int]) -> "Tenants":
        """Return the same where more has to be free."""
        return self._like(self._tenants, {**self._missing, **missing}) if missing else self

    def in_detail(self, read: Callable[[Sequence[Tenant]], Iterable[Tenant]]) -> "Tenants":
        """Return the same with what becomes free by each."""
        return self._like([*read(self._tenants)], self._missing)

    def _like(self, tenants: Sequence[Tenant], missing: Mapping[Need, int]) -> "Tenants":
        return Tenants(self._court, tenants, missing=missing, values=self._values, is_free=self._is_free)

    @property
    def useful(self) -> "Tenants":
        """Those without whom less would be free of what is needed, as far as sums tell; all if nothing is missing."""
        needed = [need for need, amount in self._missing.items() if amount > 0]
        useful = [
            one
            for one in self._tenants
            if any([one.inside.get(need) for need in needed]) or any(self._towards_limits(one.held))
        ]
        return self._like(useful, self._missing) if useful else self

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
            gives = tuple([one.inside.get(need, 0) for need in self._missing])
            sort = held.leaf, takes, not self._is_free(self._court, held), gives, one.freed
            alike[sort].append((self._values[held.value], held.name, one))
        return [(sort, sorted(of)) for sort, of in sorted(alike.items(), key=itemgetter(0))]

    def _keepers(self) -> Iterator[str]:
        for (leaf, *_rest), _of in self._alike:
            yield from self._court.keepers(leaf)

    def _kind(self, sort: _Sort, alike: Sequence[tuple[int, str, Tenant]], purses: Mapping[str, int]) -> Kind:
        leaf, takes, is_bound, gives, _freed = sort
        return Kind(
            gives=(*gives, *self._towards_limits(alike[0][-1].held)),
            takes=takes,
            values=tuple([value for value, _name, _one in alike]),
            purses=tuple([purses[path] for path in self._court.keepers(leaf)]),
            is_bound=is_bound,
        )

    def _towards_limits(self, held: Held) -> list[int]:
        """Return how much something gives towards the limits that are in the way."""
        around = way(queue_of(held.leaf)) if self._limits else ()
        return [held.amounts.get(name, 0) * (path in around) for path, name in self._limits]


def least_cost(tenants: Sequence[Tenant], missing: Mapping[Need, int], values: Mapping[Number, int]) -> Cost | None:
    """Return what it costs at least if some of these go, and at least one; None if all are not enough.

    Args:
        tenants: who may go.
        missing: how much more has to be free.
        values: value -> the same as a whole number.
    """
    needs = [(need, amount) for need, amount in missing.items() if amount > 0]
    gives = [[one.inside.get(need, 0) for one in tenants] for need, _amount in needs]
    most = [[0, *accumulate(sorted(of, reverse=True))] for of in gives]
    least = max([1, *[bisect_left(sums, amount) for sums, (_need, amount) in zip(most, needs, strict=True)]])
    if least > len(tenants):
        return None
    # Of so few, each has to give what is more than the others can.
    able: Sequence[Tenant] = tenants
    for of, sums, (_need, amount) in zip(gives, most, needs, strict=True):
        each = amount - sums[least - 1]
        if each > 0:
            giving = {one.held.name for one, gives_it in zip(tenants, of, strict=True) if gives_it >= each}
            able = [one for one in able if one.held.name in giving]
    if len(able) < least:
        return least + 1, 0
    return least, sum(nsmallest(least, [values[one.held.value] for one in able]))


def all_freed(tenants: Iterable[Tenant]) -> dict[int, Counter[str]]:
    """Return provider -> class -> how much becomes free if all these go."""
    freed: dict[int, Counter[str]] = defaultdict(Counter)
    for one in tenants:
        for provider, name, amount in one.freed:
            freed[provider][name] += amount
    return freed
