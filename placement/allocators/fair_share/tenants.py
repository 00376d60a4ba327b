"""What holders of resources may give back so that a claim fits, anywhere or in one place."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm
from operator import attrgetter

from placement.allocators.budget import Budget
from placement.allocators.entries import Number, exact
from placement.allocators.fair_share.fewest import Basket, Cost, FewestSearch, Kind, in_order_of_value
from placement.allocators.fair_share.rights import ClaimRights
from placement.allocators.fair_share.tree import SEPARATOR, Amounts, way
from placement.allocators.natural_order import natural_key


@dataclass(frozen=True, slots=True)
class Held:
    """Something that can only be given back whole.

    Args:
        name: its name.
        leaf: who uses it.
        amounts: what it frees.
        value: its worth; the least valuable goes first.
    """

    name: str
    leaf: str
    amounts: Amounts
    value: Number = 0


Judgement = Callable[[ClaimRights, Held], bool]
"""Decides about something held whether it may be asked for, or whether it may go freely."""


def never(_rights: ClaimRights, _held: Held) -> bool:
    """Judge that nothing may go freely."""
    return False


Need = str | tuple[int, str]
"""A class that has to be free in the place as a whole, or in a numbered part of it."""

Freed = tuple[tuple[int, str, int], ...]
"""What becomes free, sorted: the number of a provider, a class, and the amount."""

_Sort = tuple[str, tuple[int, ...], bool, tuple[int, ...], Freed]
"""What tenants of a kind have in common: the leaf, what each takes, whether it is bound by its owner's entitlement,
what it gives towards what is missing, and what it frees where."""


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


@dataclass(frozen=True)
class Tenants:
    """What the tenants of a place can give.

    Args:
        rights: who is entitled to what.
        tenants: those who may be asked.
        missing: how much more has to become free in the place, judged by sums.
        values: value -> the value scaled to an integer.
        is_free: whether something may go regardless of its owner's entitlement.
    """

    rights: ClaimRights
    tenants: Sequence[Tenant]
    missing: Mapping[Need, int]
    values: Mapping[Number, int]
    is_free: Judgement

    @cached_property
    def bound(self) -> Cost | None:
        """A lower bound, by sums, on the cost; None if all together are not enough."""
        return FewestSearch(self.nothing, Budget(0)).bound

    def could_free(self, missing: Mapping[Need, int]) -> bool:
        """Tell whether all together free this much, by sums."""
        return all(
            [sum([tenant.inside.get(need, 0) for tenant in self.tenants]) >= amount for need, amount in missing.items()]
        )

    def bound_with_what_is_kept(self, budget: Budget, below: Cost | None) -> Cost | None:
        """Return the same, given what owners have to keep; None if there is none, or none that is below a cost."""
        found = FewestSearch(self.nothing, budget).least(below)
        return self.bound if budget.was_hit else found and found[0]

    @property
    def least_value(self) -> Number | None:
        """The lowest value up to which all tenants together are enough, by sums; None if they never are."""
        needed = {need: amount for need, amount in self.missing.items() if amount > 0}
        for tenant in sorted(self.tenants, key=attrgetter("held.value")):
            needed = {
                need: left for need, amount in needed.items() if (left := amount - tenant.inside.get(need, 0)) > 0
            }
            if not needed:
                return tenant.held.value
        return None

    def up_to(self, highest: Number) -> "Tenants":
        """Return a copy with only the tenants worth no more than this."""
        return replace(self, tenants=[tenant for tenant in self.tenants if tenant.held.value <= highest])

    def with_more_missing(self, missing: Mapping[Need, int]) -> "Tenants":
        """Return a copy in which more has to become free."""
        return replace(self, missing={**self.missing, **missing}) if missing else self

    def in_detail(self, read: Callable[[Sequence[Tenant]], Iterable[Tenant]]) -> "Tenants":
        """Return a copy in which ``read`` has filled in what each tenant frees."""
        return replace(self, tenants=[*read(self.tenants)])

    @cached_property
    def nothing(self) -> Basket:
        """The empty choice among the tenants, grouped into kinds that differ in value and name alone."""
        leaves = dict.fromkeys([sort[0] for sort, _alike in self._alike])
        kept = dict.fromkeys([path for leaf in leaves for path in self.rights.keepers(leaf)])
        numbers = {path: number for number, path in enumerate(kept)}
        purses = {leaf: tuple([numbers[path] for path in self.rights.keepers(leaf)]) for leaf in leaves}
        limits = {leaf: self._limits_around(leaf) for leaf in leaves}
        kinds = []
        for (leaf, takes, is_bound, gives, _freed), alike in self._alike:
            amounts, values = alike[0].held.amounts, tuple(map(self._worth, alike))
            towards_limits = [amounts.get(name, 0) * is_around for name, is_around in limits[leaf]]
            kinds.append(Kind((*gives, *towards_limits), takes, values, purses[leaf], is_bound))
        needed = (*self.missing.values(), *self._limits.values())
        return Basket(kinds, needed, [tuple(self.rights.surplus(path).values()) for path in kept])

    def _limits_around(self, leaf: str) -> list[tuple[str, bool]]:
        """Return the class of each limit in the way, and whether it is around a leaf too."""
        around = way(queue_of(leaf))
        return [(name, path in around) for path, name in self._limits]

    def chosen(self, counts: Sequence[int]) -> list[Tenant]:
        """Return this many tenants of each kind, the least valuable first; of equals, those that come first by name."""
        chosen: list[Tenant] = []
        for count, (_sort, alike) in zip(counts, self._alike, strict=False):
            if count:
                last = alike[count - 1].held.value
                cheapest = [tenant for tenant in alike if tenant.held.value <= last]
                chosen += sorted(cheapest, key=lambda tenant: dearness(tenant.held))[:count]
        return chosen

    def least_valuable(self) -> list[Held] | None:
        """Return what giving back in ascending order of value would take; None if even everything is not enough."""
        choice = in_order_of_value(self.nothing)
        return None if choice is None else [tenant.held for tenant in self.chosen(choice[1])]

    @cached_property
    def _limits(self) -> dict[tuple[str, str], int]:
        """What has to become free below limits, wherever it is."""
        return {need: amount for need, amount in self.rights.needs.items() if need[0] != self.rights.root}

    @cached_property
    def _alike(self) -> list[tuple[_Sort, list[Tenant]]]:
        alike = defaultdict[_Sort, list[Tenant]](list)
        for tenant in self.tenants:
            held = tenant.held
            takes = tuple([held.amounts.get(name, 0) for name in self.rights.classes])
            gives = tuple([tenant.inside.get(need, 0) for need in self.missing])
            alike[held.leaf, takes, not self.is_free(self.rights, held), gives, tenant.freed].append(tenant)
        leaves = sorted({sort[0] for sort in alike}, key=self._preference)
        ranks = {leaf: rank for rank, leaf in enumerate(leaves)}
        for tenants in alike.values():
            if len(tenants) > 1:
                tenants.sort(key=self._worth)
        return sorted(alike.items(), key=lambda kind: (ranks[kind[0][0]], kind[0][1:]))

    def _preference(self, leaf: str) -> tuple[object, ...]:
        """Return the sort key of an owner: the larger the surplus over its entitlement, the earlier."""
        surplus = [-sum(self.rights.surplus(path).values()) for path in self.rights.keepers(leaf)] or [0]
        return surplus[0], surplus[-1], natural_key(leaf)

    def _worth(self, tenant: Tenant) -> int:
        return self.values[tenant.held.value]


def queue_of(leaf: str) -> str:
    """Return the path of a leaf's branch."""
    return leaf.rpartition(SEPARATOR)[0]


def whole_values(held: Iterable[Held]) -> dict[Number, int]:
    """Map each value to an integer, all scaled by one common factor."""
    values = {value: exact(value) for value in {each.value for each in held}}
    unit = lcm(*[value.denominator for value in values.values()])
    return {value: int(as_written * unit) for value, as_written in values.items()}


def dearness(held: Held) -> tuple[object, ...]:
    """Return the sort key of a thing: value, then name."""
    return exact(held.value), natural_key(held.leaf), natural_key(held.name)


def wherever_they_are(rights: ClaimRights, held: Iterable[Held], *, is_free: Judgement) -> Tenants:
    """Return those who may give for a claim that fits wherever amounts become free."""
    givers = [
        Tenant(each, (), dict(each.amounts.items())) for each in held if any(map(each.amounts.get, rights.classes))
    ]
    missing: dict[Need, int] = dict(rights.lacking.items())
    values = whole_values(tenant.held for tenant in givers)
    return Tenants(rights, givers, missing=missing, values=values, is_free=is_free)


def all_freed(tenants: Iterable[Tenant]) -> dict[int, Counter[str]]:
    """Return provider -> class -> the amount freed if all these go."""
    freed: dict[int, Counter[str]] = defaultdict(Counter)
    for tenant in tenants:
        for provider, name, amount in tenant.freed:
            freed[provider][name] += amount
    return freed
