"""What the tenants of one place may give back so that a claim fits in there; only an oracle can tell whether it does.

Taking more never makes it fit less. Needs expressed as sums filter first: a choice that misses them is never tried.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from itertools import accumulate
from operator import attrgetter, itemgetter
from typing import NamedTuple

from placement.allocators.budget import Budget
from placement.allocators.entries import Number
from placement.allocators.fair_share.basket import Basket, Cost, Kind, cheapest, most_of
from placement.allocators.fair_share.entitlement import ClaimRights, queue_of
from placement.allocators.fair_share.reclaim import Held
from placement.allocators.fair_share.tree import way

_Sort = tuple[str, tuple[int, ...], bool, tuple[int, ...], "Freed"]
"""What tenants of a kind have in common: the leaf, what each takes, whether it is bound by its owner's entitlement,
what it gives towards what is missing, and what it frees where."""

Need = str | tuple[int, str]
"""A class that has to be free in the place as a whole, or in a numbered part of it."""

Freed = tuple[tuple[int, str, int], ...]
"""What becomes free, sorted: the number of a provider, a class, and the amount."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """Something that can only be given back whole.

    Args:
        held: its name, owner and value, and those of its amounts that count.
        freed: everything it frees, and where.
        inside: how much it frees of what may be needed in the place itself.
    """

    held: Held
    freed: Freed
    inside: Mapping[Need, int]


class Tenants:
    """What the tenants of a place can give.

    Args:
        rights: who is entitled to what.
        tenants: those who may be asked.
        missing: how much more has to become free in the place, judged by sums.
        values: value -> the value scaled to an integer.
        is_free: whether something may go regardless of its owner's entitlement.
    """

    def __init__(
        self,
        rights: ClaimRights,
        tenants: Sequence[Tenant],
        *,
        missing: Mapping[Need, int],
        values: Mapping[Number, int],
        is_free: Callable[[ClaimRights, Held], bool],
    ) -> None:
        self._rights = rights
        self._tenants = tenants
        self._missing = missing
        self._values = values
        self._is_free = is_free
        self._limits = {need: amount for need, amount in rights.needs.items() if need[0] != rights.root}

    @property
    def bound(self) -> Cost | None:
        """A lower bound, by sums, on the cost if somebody has to go; None if all together are not enough."""
        return least_cost(self._tenants, self._missing, self._values)

    def could_free(self, missing: Mapping[Need, int]) -> bool:
        """Tell whether this much can become free: by sums, and without taking what the forced owners must keep."""
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
        """Tell whether all owners keep what they are entitled to if exactly these go."""
        rights = self._rights
        spent, bound = defaultdict[tuple[str, str], int](int), set[tuple[str, str]]()
        for one in tenants:
            amounts, is_free, keepers = one.held.amounts, self._is_free(rights, one.held), rights.keepers(one.held.leaf)
            for name in rights.classes:
                much = amounts.get(name, 0)
                for path in keepers if much else ():
                    spent[path, name] += much
                    if not is_free:
                        bound.add((path, name))
                    if (path, name) in bound and spent[path, name] > rights.surplus(path)[name]:
                        return False
        return True

    @property
    def least_value(self) -> Number | None:
        """The lowest value up to which all tenants together are enough, by sums; None if they never are."""
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
        """Return a copy with only the tenants worth no more than this."""
        return self._like([one for one in self._tenants if one.held.value <= highest], self._missing)

    def with_more_missing(self, missing: Mapping[Need, int]) -> "Tenants":
        """Return a copy in which more has to become free."""
        return self._like(self._tenants, {**self._missing, **missing}) if missing else self

    def in_detail(self, read: Callable[[Sequence[Tenant]], Iterable[Tenant]]) -> "Tenants":
        """Return a copy in which ``read`` has filled in what each tenant frees."""
        return self._like([*read(self._tenants)], self._missing)

    def _like(self, tenants: Sequence[Tenant], missing: Mapping[Need, int]) -> "Tenants":
        return Tenants(self._rights, tenants, missing=missing, values=self._values, is_free=self._is_free)

    @property
    def useful(self) -> "Tenants":
        """A copy with only those tenants that free some of what is needed, by sums; with all if none does."""
        needed = [need for need, amount in self._missing.items() if amount > 0]
        useful = [
            one
            for one in self._tenants
            if any([one.inside.get(need) for need in needed]) or any(self._towards_limits(one.held))
        ]
        return self._like(useful, self._missing) if useful else self

    def nothing(self) -> Basket:
        """Return the empty choice among the tenants, grouped into kinds that differ in value and name alone."""
        purses = {path: number for number, path in enumerate(dict.fromkeys(self._keepers()))}
        kinds = [self._kind(sort, of, purses) for sort, of in self._alike]
        needed = (*self._missing.values(), *self._limits.values())
        return Basket(kinds, needed, [tuple(self._rights.surplus(path).values()) for path in purses])

    def chosen(self, counts: Sequence[int]) -> list[Tenant]:
        """Return this many tenants of each kind, the least valuable first."""
        alike = zip(counts, self._alike, strict=True)
        return [one for count, (_sort, of) in alike for _value, _name, one in of[:count]]

    @cached_property
    def _alike(self) -> list[tuple[_Sort, list[tuple[int, str, Tenant]]]]:
        alike = defaultdict[_Sort, list[tuple[int, str, Tenant]]](list)
        for one in self._tenants:
            held = one.held
            takes = tuple([held.amounts.get(name, 0) for name in self._rights.classes])
            gives = tuple([one.inside.get(need, 0) for need in self._missing])
            sort = held.leaf, takes, not self._is_free(self._rights, held), gives, one.freed
            alike[sort].append((self._values[held.value], held.name, one))
        return [(sort, sorted(of)) for sort, of in sorted(alike.items(), key=itemgetter(0))]

    def _keepers(self) -> Iterator[str]:
        for (leaf, *_rest), _of in self._alike:
            yield from self._rights.keepers(leaf)

    def _kind(self, sort: _Sort, alike: Sequence[tuple[int, str, Tenant]], purses: Mapping[str, int]) -> Kind:
        leaf, takes, is_bound, gives, _freed = sort
        return Kind(
            gives=(*gives, *self._towards_limits(alike[0][-1].held)),
            takes=takes,
            values=tuple([value for value, _name, _one in alike]),
            purses=tuple([purses[path] for path in self._rights.keepers(leaf)]),
            is_bound=is_bound,
        )

    def _towards_limits(self, held: Held) -> list[int]:
        """Return how much something gives towards each limit in the way."""
        around = way(queue_of(held.leaf)) if self._limits else ()
        return [held.amounts.get(name, 0) * (path in around) for path, name in self._limits]


def least_cost(tenants: Sequence[Tenant], missing: Mapping[Need, int], values: Mapping[Number, int]) -> Cost | None:
    """Return a lower bound on the cost of giving back at least one of these; None if all are not enough.

    Args:
        tenants: who may go.
        missing: how much more has to become free.
        values: value -> the value scaled to an integer.
    """
    needs = [(need, amount) for need, amount in missing.items() if amount > 0]
    gives = [[one.inside.get(need, 0) for one in tenants] for need, _amount in needs]
    most = [[0, *accumulate(sorted(of, reverse=True))] for of in gives]
    least = max([1, *[bisect_left(sums, amount) for sums, (_need, amount) in zip(most, needs, strict=True)]])
    if least > len(tenants):
        return None
    # With only so few, each has to make up for what the others cannot give.
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
    """Return provider -> class -> the amount freed if all these go."""
    freed: dict[int, Counter[str]] = defaultdict(Counter)
    for one in tenants:
        for provider, name, amount in one.freed:
            freed[provider][name] += amount
    return freed


QUESTION = 50
"""The usual cost, in steps, of asking whether something fits."""

FittingChoice = tuple[Cost, tuple[int, ...]]
"""The cost of a choice, and how many of each kind it takes."""

Fits = Callable[[Sequence[int]], bool]
"""The oracle: whether it fits once this many of each kind are taken."""


class _Rest(NamedTuple):
    """Bounds by the number of things: the most of each need they can give, and the least they can be worth."""

    most: Sequence[Sequence[int]]
    cheapest: Sequence[int]


class FittingSearch:
    """A search among the things in one place.

    Args:
        nothing: the empty choice, with the kinds to choose from and the needs as sums. It is empty again afterwards.
        fits: the oracle.
        budget: one step per choice looked at.
        question: the steps that one call of ``fits`` counts for.
    """

    def __init__(self, nothing: Basket, fits: Fits, budget: Budget, *, question: int = QUESTION) -> None:
        self._basket = nothing
        self._fits = fits
        self._budget = budget
        self._question = question
        kinds = nothing.kinds
        self._order = sorted(range(len(kinds)), key=lambda number: (kinds[number].values[0], number))
        self._rests: dict[int, _Rest] = {}
        self._found: tuple[int, tuple[int, ...]] | None = None

    def _rest(self, start: int) -> "_Rest":
        """Return the bounds for the kinds from this position on."""
        if start not in self._rests:
            kinds = [self._basket.kinds[number] for number in self._order[start:]]
            most = [most_of(kinds, need) for need in range(len(self._basket.needed))]
            self._rests[start] = _Rest(most, cheapest(kinds))
        return self._rests[start]

    @property
    def bound(self) -> Cost | None:
        """A lower bound on the cost; None if, by the sums, even everything is not enough."""
        most, worth = self._rest(0)
        least = max([bisect_left(of, need) for of, need in zip(most, self._basket.needed, strict=True)], default=0)
        return (least, worth[least]) if least < len(worth) else None

    def best(self, below: Cost | None) -> FittingChoice | None:
        """Return the fewest things, among those the least valuable; a greedy answer by value if the budget runs out.

        Args:
            below: an upper bound; only cheaper choices count.
        """
        if self.bound is None or not self._asked([len(kind.values) for kind in self._basket.kinds]):
            return None
        best = self._in_order()
        if best is not None and below is not None and best[0] >= below:
            best = None
        return self.least(best[0] if best else below) or best

    def least(self, below: Cost | None) -> FittingChoice | None:
        """Return the same without a greedy answer to fall back on: None if the budget runs out."""
        if self.bound is None:
            return None
        worth = self._rest(0).cheapest
        for count in range(self.bound[0], len(worth)):
            if (below is not None and (count, worth[count]) >= below) or not self._budget.take():
                break
            self._found = (below[1], ()) if below is not None and count == below[0] else None
            self._extend(0, count)
            if self._found is not None and self._found[1]:
                return (count, self._found[0]), self._found[1]
        return None

    def _asked(self, counts: Sequence[int]) -> bool:
        return self._budget.take(self._question) and self._fits(counts)

    def _in_order(self) -> FittingChoice | None:
        """Take in ascending order of value until it fits, then put back what is not needed, the most valuable first."""
        taken = self._affordable()
        if not self._is_enough(taken):
            return self._emptied(None)
        # More never fits less, so bisection finds the shortest prefix that is enough.
        number = 1 + bisect_left(range(1, len(taken)), 1, key=lambda length: self._is_enough(taken[:length]))
        self._take(taken[:number])
        for one in reversed(taken[:number]):
            self._basket.take(one, -1)
            if not (self._basket.is_enough() and self._asked(self._basket.counts)):
                self._basket.take(one, 1)
        return self._emptied((self._basket.cost, tuple(self._basket.counts)))

    def _affordable(self) -> list[int]:
        """Take everything the purses have room for, in ascending order of value, and return the kind of each."""
        basket, taken = self._basket, []
        for _value, number in sorted(
            [(one, number) for number, kind in enumerate(basket.kinds) for one in kind.values]
        ):
            if basket.room(number, 1):
                basket.take(number, 1)
                taken.append(number)
        return taken

    def _is_enough(self, taken: Sequence[int]) -> bool:
        self._take(taken)
        return self._basket.is_enough() and self._asked(self._basket.counts)

    def _take(self, taken: Sequence[int]) -> None:
        """Take exactly these."""
        self._emptied(None)
        for number in taken:
            self._basket.take(number, 1)

    def _emptied(self, found: FittingChoice | None) -> FittingChoice | None:
        for number, count in enumerate(self._basket.counts):
            self._basket.take(number, -count)
        return found

    def _extend(self, start: int, left: int) -> None:
        """Try all ways to add exactly this many things of the kinds from this position on."""
        basket = self._basket
        if not self._budget.take() or not self._may_succeed(start, left):
            return
        if not left:
            if self._asked(basket.counts):
                self._found = basket.cost[1], tuple(basket.counts)
            return
        number = self._order[start]
        for more in range(basket.room(number, min(left, len(basket.kinds[number].values))), -1, -1):
            basket.take(number, more)
            self._extend(start + 1, left - more)
            basket.take(number, -more)

    def _may_succeed(self, start: int, left: int) -> bool:
        """Tell whether this many more can meet the sums and be worth less than the best choice found."""
        most, worth = self._rest(start)
        if left >= len(worth):
            return False
        if self._found is not None and self._basket.cost[1] + worth[left] >= self._found[0]:
            return False
        return all([need <= of[left] for need, of in zip(self._basket.needed, most, strict=True)])
