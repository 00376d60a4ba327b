"""What holders of resources may give back so that a claim fits, anywhere or in one place.

Nobody keeps less than its entitlement, nor gets more. Where the paths to the claimant and to a giver part, there are
two sibling nodes. From there down, each node on the claimant's side must be entitled to what it holds plus the task,
and each node on the giver's side keeps what it is entitled to, down to the leaves.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm
from operator import attrgetter

from placement.allocators.budget import Budget
from placement.allocators.entries import Number, exact
from placement.allocators.fair_share.fewest import Choices, Cost, FewestSearch, Kind
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import SEPARATOR, Amounts, way
from placement.allocators.natural_order import natural_key


@dataclass(frozen=True, slots=True)
class Parting:
    """Where the paths to a claimant and to a giver part: the level that decides.

    Args:
        claimant, giver: the two sibling nodes.
        claims: class -> what the claimant's node would hold with the claim.
        claimant_entitled: class -> what that node is entitled to.
        holds: class -> what the giver's node holds.
        giver_entitled: class -> what that node is entitled to.
    """

    claimant: str
    giver: str
    claims: Amounts
    claimant_entitled: Mapping[str, float]
    holds: Amounts
    giver_entitled: Mapping[str, float]


class ClaimRights:
    """The needs of a claim, and what everybody is entitled to, given that the claimant wants more.

    ``needs`` is what has to become free: (branch, class) -> amount, for the root and every limit in the way.

    Entitlements are protected in ``classes``, by default the lacking ones.
    """

    def __init__(
        self, shares: FairShares, claimant: str, task: Amounts, *, classes: Iterable[str] | None = None
    ) -> None:
        self.root = shares.root.name
        self.claimant = claimant
        self.task = task
        self.needs = {
            (path, name): task[name] - left[name]
            for path, left in shares.bounds(claimant)
            for name in task
            if task[name] and task[name] > left[name]
        }
        self.lacking = {name: amount for (path, name), amount in self.needs.items() if path == self.root}
        needed = [name for _path, name in self.needs] if classes is None else classes
        self.classes = tuple(dict.fromkeys(needed))
        self.used = shares.holdings()
        self.entitlements = shares.entitlements(self.classes, more={claimant: task})
        self._surplus: dict[str, dict[str, int]] = {}
        self._keepers: dict[str, tuple[str, ...]] = {}

    def keepers(self, leaf: str) -> tuple[str, ...]:
        """Return the nodes that keep their entitlement when a leaf gives: from the parting down to the leaf."""
        if leaf not in self._keepers:
            ours = {self.root, *way(self.claimant)}
            self._keepers[leaf] = tuple([path for path in way(leaf) if path not in ours])
        return self._keepers[leaf]

    def may_give(self, leaf: str) -> bool:
        """Tell whether the claimant is entitled to its claim, from the parting from a leaf's path down to itself."""
        keepers = self.keepers(leaf)
        return bool(keepers) and keepers[0].count(SEPARATOR) > self._first_entitled

    @cached_property
    def _first_entitled(self) -> int:
        """The first of the claimant's nodes from which on all are entitled to what they would hold."""
        nodes = way(self.claimant)
        beyond = [
            number
            for number, path in enumerate(nodes, start=1)
            for name in self.classes
            if self.used[path][name] + self.task.get(name, 0) > self.entitlements.of(path)[name]
        ]
        return max(beyond, default=0)

    def surplus(self, path: str) -> dict[str, int]:
        """Return class -> how many whole units a node may give."""
        if path not in self._surplus:
            entitled, used = self.entitlements.of(path), self.used[path]
            self._surplus[path] = {name: max(0, int(used[name] - entitled[name])) for name in self.classes}
        return self._surplus[path]

    def partings(self, leaves: Iterable[str]) -> tuple[Parting, ...]:
        """Return the levels that decide about these leaves, with their figures."""
        givers = {self.keepers(leaf)[0] for leaf in dict.fromkeys(leaves) if self.keepers(leaf)}
        entitled, partings = self.entitlements.of, []
        for theirs in sorted(givers):
            ours = way(self.claimant)[len(way(theirs)) - 1]
            parting = Parting(
                claimant=ours,
                giver=theirs,
                claims={name: self.used[ours][name] + self.task.get(name, 0) for name in self.classes},
                claimant_entitled={name: float(amount) for name, amount in entitled(ours).items()},
                holds={name: self.used[theirs][name] for name in self.classes},
                giver_entitled={name: float(amount) for name, amount in entitled(theirs).items()},
            )
            partings.append(parting)
        return tuple(partings)


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
        return FewestSearch(self.choices, Budget(0)).bound

    def could_free(self, missing: Mapping[Need, int]) -> bool:
        """Tell whether all together free this much, by sums."""
        return all(
            [sum([tenant.inside.get(need, 0) for tenant in self.tenants]) >= amount for need, amount in missing.items()]
        )

    def bound_with_what_is_kept(self, budget: Budget, below: Cost | None) -> Cost | None:
        """Return the same, given what owners have to keep; None if there is none, or none that is below a cost."""
        choice = FewestSearch(self.choices, budget).least(below)
        return self.bound if budget.was_hit else choice and choice[0]

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
    def choices(self) -> Choices:
        """The tenants, grouped into kinds that differ in value and name alone."""
        leaves = dict.fromkeys([sort[0] for sort, _alike in self._alike])
        kept = dict.fromkeys([path for leaf in leaves for path in self.rights.keepers(leaf)])
        numbers = {path: number for number, path in enumerate(kept)}
        purses = {leaf: tuple([numbers[path] for path in self.rights.keepers(leaf)]) for leaf in leaves}
        limits = {need: amount for need, amount in self.rights.needs.items() if need[0] != self.rights.root}
        inside = {leaf: [(name, path in way(queue_of(leaf))) for path, name in limits] for leaf in leaves}
        kinds = []
        for (leaf, takes, is_bound, gives, _freed), alike in self._alike:
            towards_limits = [alike[0].held.amounts.get(name, 0) * is_inside for name, is_inside in inside[leaf]]
            kinds.append(Kind((*gives, *towards_limits), takes, tuple(map(self._worth, alike)), purses[leaf], is_bound))
        needed = (*self.missing.values(), *limits.values())
        return Choices(kinds, needed, [tuple(self.rights.surplus(path).values()) for path in kept])

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
        choice = FewestSearch(self.choices, Budget(0)).in_order_of_value()
        return None if choice is None else [tenant.held for tenant in self.chosen(choice[1])]

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
