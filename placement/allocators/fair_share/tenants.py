"""What the tenants of one place may give back so that a claim fits in; only an oracle can tell whether it does."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter, itemgetter

from placement.allocators.budget import Budget
from placement.allocators.entries import Number
from placement.allocators.fair_share.fewest import Basket, Cost, FewestSearch, Kind
from placement.allocators.fair_share.reclaim import Held, Judgement, queue_of
from placement.allocators.fair_share.rights import ClaimRights
from placement.allocators.fair_share.tree import way

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
        purses: dict[str, int] = {}
        kinds = [self._kind(sort, alike, purses) for sort, alike in self._alike]
        needed = (*self.missing.values(), *self._limits.values())
        return Basket(kinds, needed, [tuple(self.rights.surplus(path).values()) for path in purses])

    def chosen(self, counts: Sequence[int]) -> list[Tenant]:
        """Return this many tenants of each kind, the least valuable first."""
        alike = zip(counts, self._alike, strict=True)
        return [tenant for count, (_sort, of) in alike for _value, _name, tenant in of[:count]]

    @cached_property
    def _limits(self) -> dict[tuple[str, str], int]:
        """What has to become free below limits, wherever it is."""
        return {need: amount for need, amount in self.rights.needs.items() if need[0] != self.rights.root}

    @cached_property
    def _alike(self) -> list[tuple[_Sort, list[tuple[int, str, Tenant]]]]:
        alike = defaultdict[_Sort, list[tuple[int, str, Tenant]]](list)
        for tenant in self.tenants:
            held = tenant.held
            takes = tuple([held.amounts.get(name, 0) for name in self.rights.classes])
            gives = tuple([tenant.inside.get(need, 0) for need in self.missing])
            sort = held.leaf, takes, not self.is_free(self.rights, held), gives, tenant.freed
            alike[sort].append((self.values[held.value], held.name, tenant))
        return [(sort, sorted(of, key=itemgetter(0, 1))) for sort, of in sorted(alike.items(), key=itemgetter(0))]

    def _kind(self, sort: _Sort, alike: Sequence[tuple[int, str, Tenant]], purses: dict[str, int]) -> Kind:
        leaf, takes, is_bound, gives, _freed = sort
        around, amounts = way(queue_of(leaf)), alike[0][-1].held.amounts
        return Kind(
            gives=(*gives, *[amounts.get(name, 0) if path in around else 0 for path, name in self._limits]),
            takes=takes,
            values=tuple([value for value, _name, _tenant in alike]),
            purses=tuple([purses.setdefault(path, len(purses)) for path in self.rights.keepers(leaf)]),
            is_bound=is_bound,
        )


def all_freed(tenants: Iterable[Tenant]) -> dict[int, Counter[str]]:
    """Return provider -> class -> the amount freed if all these go."""
    freed: dict[int, Counter[str]] = defaultdict(Counter)
    for tenant in tenants:
        for provider, name, amount in tenant.freed:
            freed[provider][name] += amount
    return freed
