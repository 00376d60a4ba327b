"""Detects what newcomers to Placement get wrong in a request without candidates."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from os_traits import MISC_SHARES_VIA_AGGREGATE as SHARES

from placement.candidates.explain.cloud import FilteredCloud
from placement.candidates.explain.conditions import Condition, ConditionKind, any_of_value
from placement.candidates.explain.demands import FilteredDemand
from placement.candidates.explain.explanation import Hint, HintKind
from placement.candidates.explain.provider_kinds import KindSet, ProviderKinds
from placement.candidates.explain.tree_filters import LOOSE
from placement.domain.candidate_request import RequestGroup
from placement.domain.facts import Facts, owners_in
from placement.domain.search_plan import Demand


def hints(cloud: FilteredCloud) -> Iterator[Hint]:
    """Yield hints on what no provider has, what the wrong provider of a tree has, and pools that share with none."""
    yield from dict.fromkeys(_nobody(cloud))
    for demand in cloud.demands:
        yield from _elsewhere(cloud, demand)
    yield from _apart(cloud)
    for index, demand in enumerate(cloud.demands):
        yield from _sharing_with_nobody(cloud, index, demand)


def _nobody(cloud: FilteredCloud) -> Iterator[Hint]:
    facts = cloud.facts
    for demand in cloud.demands:
        for name, _amount in demand.asked.resources:
            if not facts.stocks.get(name):
                yield Hint(HintKind.NO_INVENTORY, Condition(ConditionKind.INVENTORY, demand.groups, name))
        yield from _without_holder(facts, demand)
    for filter_ in cloud.filters:
        if filter_.condition.kind == ConditionKind.ROOT_REQUIRED and not facts.owners.get(filter_.condition.value):
            yield Hint(HintKind.NO_OWNER, filter_.condition)


def _without_holder(facts: Facts, demand: FilteredDemand) -> Iterator[Hint]:
    group = demand.asked.group
    for kind, any_of, havers in _wanted(facts, group):
        if not havers:
            hint = HintKind.NO_OWNER if kind == ConditionKind.REQUIRED else HintKind.NO_MEMBER
            yield Hint(hint, Condition(kind, demand.groups, any_of_value(any_of)))
    if group.in_tree is not None and group.in_tree not in facts.roots:
        yield Hint(HintKind.NO_TREE, Condition(ConditionKind.IN_TREE, demand.groups, group.in_tree))


def _wanted(facts: Facts, group: RequestGroup) -> list[tuple[ConditionKind, frozenset[str], AbstractSet[int]]]:
    """Return the traits and aggregates that a group wants, each with the providers that have it."""
    required = [(ConditionKind.REQUIRED, any_of, facts.owners_of_any(any_of)) for any_of in group.required]
    return required + [(ConditionKind.MEMBER_OF, any_of, facts.members_of_any(any_of)) for any_of in group.member_of]


def _elsewhere(cloud: FilteredCloud, demand: FilteredDemand) -> Iterator[Hint]:
    """Yield a hint for each trait and aggregate that is all a provider lacks, and that another of its tree has.

    Not if that other one has what is asked for as well: then it is merely too small or full, nothing is misplaced.
    """
    stocked = _stocked(cloud.kinds.sample, demand.asked)
    for kind, any_of, havers in _wanted(cloud.kinds.sample, demand.asked.group):
        condition = Condition(kind, demand.groups, any_of_value(any_of))
        hint = HintKind.TRAIT_ELSEWHERE if kind == ConditionKind.REQUIRED else HintKind.AGGREGATE_DOES_NOT_SPAN
        # The unsuffixed group has no filter for its traits: ``_apart`` looks at them together.
        lacking = demand.own.failing_only.get(condition, frozenset())
        helped = cloud.kinds.trees(stocked & havers)
        yield from _told(cloud.kinds, hint, condition, lacking=lacking, havers=havers, helped=helped)
        if kind == ConditionKind.MEMBER_OF:
            yield from _sharers(cloud, condition, demand, any_of)


def _stocked(facts: Facts, asked: Demand) -> AbstractSet[int]:
    """Return the providers that have inventory of every class of a demand."""
    owners = [owners_in(facts.stocks.get(name, ())) for name, _amount in asked.resources]
    return frozenset.intersection(*owners) if owners else facts.root_of.keys()


def _apart(cloud: FilteredCloud) -> Iterator[Hint]:
    """Yield a hint for each trait of the unsuffixed group that no provider with its resources has, but others have."""
    loose = [demand for demand in cloud.demands if demand.groups == LOOSE]
    serving = frozenset[int]().union(*[demand.own.fitting | demand.shared.fitting for demand in loose])
    for any_of in cloud.plan.trait_sets:
        havers = cloud.kinds.sample.owners_of_any(any_of)
        helped = cloud.kinds.trees(serving & havers)
        condition = Condition(ConditionKind.REQUIRED, LOOSE, any_of_value(any_of))
        yield from _told(
            cloud.kinds, HintKind.TRAIT_ELSEWHERE, condition, lacking=serving, havers=havers, helped=helped
        )


def _sharers(
    cloud: FilteredCloud, condition: Condition, demand: FilteredDemand, any_of: AbstractSet[str]
) -> Iterator[Hint]:
    """Yield a hint if a provider that could share with a tree lacks an aggregate that the tree has."""
    facts = cloud.facts
    pools = [*cloud.kinds.providers(demand.shared.failing_only.get(condition, frozenset()))]
    members = facts.members_of_any(any_of) if pools else ()
    member_in = {facts.root_of[member]: member for member in sorted(members, reverse=True)}
    spoilt = [(root, pool) for pool in pools for root in facts.shares[pool] if root in member_in and root != pool]
    if spoilt:
        first, pool = min(spoilt)
        trees = len({root for root, _pool in spoilt})
        yield Hint(HintKind.SHARER_NOT_MEMBER, condition, trees, pool, member_in[first])


def _sharing_with_nobody(cloud: FilteredCloud, index: int, demand: FilteredDemand) -> Iterator[Hint]:
    """Yield a hint if trees lack only what a sharing provider has that is in no aggregate with any other tree."""
    facts = cloud.facts
    sharing = cloud.kinds.providers(demand.own.fitting & cloud.kinds.sample.owners.get(SHARES, frozenset()))
    pools = [pool for pool in sharing if _is_alone(facts, pool)]
    trees = (cloud.trees_but_for(index) or frozenset()) - demand.reached
    if pools and trees and demand.asked.resources:
        classes = ",".join([name for name, _amount in demand.asked.resources])
        condition = Condition(ConditionKind.INVENTORY, demand.groups, classes)
        yield Hint(HintKind.SHARER_ALONE, condition, len(trees), min(trees), min(pools))


def _is_alone(facts: Facts, pool: int) -> bool:
    """Tell whether a sharing provider is in no aggregate with another tree."""
    return {facts.root_of[pool]}.issuperset(facts.shares.get(pool, ()))


def _told(
    kinds: ProviderKinds,
    hint: HintKind,
    condition: Condition,
    *,
    lacking: KindSet,
    havers: KindSet,
    helped: AbstractSet[int] = frozenset(),
) -> Iterator[Hint]:
    """Yield a hint if some tree has both a provider that fails only a condition and another that meets it.

    Trees that are ``helped`` meet it all the same.
    """
    trees = (kinds.trees(lacking) & kinds.trees(havers)) - helped
    if trees:
        first = min(trees)
        yield Hint(hint, condition, len(trees), kinds.first_in(first, lacking), kinds.first_in(first, havers))
