"""The kinds of providers that a request tells apart: explanations filter one provider of each kind instead of all.

A cloud of five thousand hosts has tens of thousands of providers, but all that a request sees of one is which of its
conditions the provider meets. That makes a hundred kinds or so, even if no two hosts have the same in use.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import chain

from placement.domain.facts import Facts, Stocks, owners_in
from placement.domain.search_plan import Plan

KindSet = AbstractSet[int]
"""Some kinds of providers, each represented by its first provider."""

ByTree = Mapping[int, Sequence[int]]
"""The root of a tree -> providers that may serve there, ascending."""


class ProviderKinds:
    """The providers of a cloud, by kind.

    Args:
        facts: the cloud.
        plan: tells which providers differ. Plans with fewer conditions tell fewer apart.
    """

    def __init__(self, facts: Facts, plan: Plan) -> None:
        self.facts = facts
        met = dict.fromkeys(sorted(facts.root_of), 0)
        for number, alike in enumerate(_told_apart(facts, plan)):
            bit = 1 << number
            for provider in alike:
                met[provider] |= bit
        first: dict[int, int] = {}
        self.kind_of: Mapping[int, int] = {provider: first.setdefault(bits, provider) for provider, bits in met.items()}
        self._providers: dict[int, list[int]] = {kind: [] for kind in first.values()}
        for provider, kind in self.kind_of.items():
            self._providers[kind].append(provider)
        self.sample = facts.of_providers(self._providers.keys())
        """The facts about the first provider of each kind."""
        self._plan = plan
        self._roots_of: dict[int, AbstractSet[int]] = {}

    def count(self, kinds: KindSet) -> int:
        """Return the number of providers of some kinds."""
        return sum([len(self._providers[kind]) for kind in kinds])

    def providers(self, kinds: KindSet) -> Iterator[int]:
        """Yield the providers of some kinds."""
        return chain.from_iterable([self._providers[kind] for kind in kinds])

    def trees(self, own: KindSet, shared: KindSet = frozenset()) -> AbstractSet[int]:
        """Return the roots of the trees with a provider of some kinds, and of those that some kinds share with."""
        pools = self.providers(shared)
        return frozenset[int]().union(*map(self._roots, own), *[self.facts.shares[pool] for pool in pools])

    def first_in(self, root: int, kinds: KindSet) -> int:
        """Return the first provider of a tree that is of some kinds; there has to be one."""
        root_of = self.facts.root_of
        return min([provider for provider in self.providers(kinds) if root_of[provider] == root])

    def _roots(self, kind: int) -> AbstractSet[int]:
        if kind not in self._roots_of:
            self._roots_of[kind] = set(map(self.facts.root_of.__getitem__, self._providers[kind]))
        return self._roots_of[kind]

    @cached_property
    def own_by_tree(self) -> ByTree:
        """The providers of each tree that may serve there."""
        found: dict[int, list[int]] = defaultdict(list)
        serving, root_of = self._serving, self.facts.root_of
        for provider, kind in self.kind_of.items():
            if kind in serving:
                found[root_of[provider]].append(provider)
        return found

    @cached_property
    def shared_by_tree(self) -> ByTree:
        """The providers that share with each tree and may serve there; some may be of the tree itself."""
        found: dict[int, list[int]] = defaultdict(list)
        for pool in sorted(self.providers(self._serving & self.sample.shares.keys())):
            for root in self.facts.shares[pool]:
                found[root].append(pool)
        return found

    @cached_property
    def _serving(self) -> KindSet:
        """The kinds with anything that a demand asks for; all, if one asks for no resources."""
        if not all([demand.resources for demand in self._plan.demands]):
            return self._providers.keys()
        return frozenset[int]().union(*map(owners_in, self.sample.stocks.values()))


def _told_apart(facts: Facts, plan: Plan) -> Iterator[Iterable[int]]:
    """Yield sets of providers that a plan tells from all others; it does not look at anything else."""
    for name, stocks in facts.stocks.items():
        asked = {amount for demand in plan.demands for of, amount in demand.resources if of == name}
        yield from _by_amounts(stocks, sorted(asked))
    groups = [demand.group for demand in plan.demands]
    for any_of in {any_of for group in groups for any_of in group.required}.union(plan.trait_sets):
        yield facts.owners_of_any(any_of)
    for name in {name for group in groups for name in group.forbidden}:
        yield facts.owners.get(name, ())
    for any_of in {any_of for group in groups for any_of in (*group.member_of, group.forbidden_aggregates)}:
        yield facts.members_of_any(any_of)
    for any_of in {any_of for group in groups for any_of in group.member_of if not group.is_granular}:
        yield facts.inside(facts.members_of_any(any_of))
    for root in {*facts.roots.values()}:
        yield facts.inside({root})
    yield facts.shares
    yield facts.held & facts.root_of.keys()


def _by_amounts(stocks: Stocks, amounts: Sequence[int]) -> Collection[Sequence[int]]:
    """Divide the providers of a class by the amounts of it that they can give, and by why not the others."""
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for left, min_unit, max_unit, step_size, providers in stocks:
        bounds = bisect_right(amounts, left), bisect_left(amounts, min_unit), bisect_right(amounts, max_unit)
        alike[*bounds, step_size] += providers
    return alike.values()
