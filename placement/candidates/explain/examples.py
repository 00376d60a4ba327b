"""Providers that illustrate a near miss, with the numbers and names that show how near it is."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any

from placement.candidates.explain.cloud import FilteredCloud
from placement.candidates.explain.conditions import (
    NUMERIC,
    OF_AMOUNTS,
    Condition,
    ConditionKind,
    any_of_value,
    resources_value,
)
from placement.candidates.explain.explanation import Example, Largest
from placement.candidates.explain.provider_kinds import KindSet, ProviderKinds
from placement.candidates.explain.tree_filters import LOOSE
from placement.candidates.explain.tree_search import SearchedTrees
from placement.domain.facts import EqualStocks, Facts

MAX_EXAMPLES = 5

WORDS = {
    ConditionKind.REQUIRED: "lacks",
    ConditionKind.ROOT_REQUIRED: "lacks",
    ConditionKind.FORBIDDEN: "has",
    ConditionKind.ROOT_FORBIDDEN: "has",
    ConditionKind.MEMBER_OF: "not_in",
    ConditionKind.FORBIDDEN_AGGREGATES: "in",
    ConditionKind.IN_TREE: "not_in_tree",
}
"""How a provider fails a condition on its traits, aggregates or tree."""

NUMBERS = dict(zip(NUMERIC, ("free", "min_unit", "max_unit", "step_size"), strict=True))
"""Which number shows how a provider fails a condition on an amount."""


def examples(cloud: FilteredCloud, condition: Condition, served: SearchedTrees) -> Iterator[Example]:
    """Yield a few providers, each in a different tree, that would serve but for a condition."""
    chosen = list(islice(_failing(cloud, condition, served), MAX_EXAMPLES)) or sorted(served.trees)[:MAX_EXAMPLES]
    numbers = _numbers(cloud.facts, condition, frozenset(chosen)) if condition.kind in OF_AMOUNTS else {}
    word = WORDS.get(condition.kind)
    for provider in chosen:
        if word is not None:
            yield Example(provider, {word: condition.value.removeprefix("!")})
        else:
            yield Example(provider, numbers.get(provider, {}))


def shortages(cloud: FilteredCloud, condition: Condition, served: SearchedTrees) -> Iterator[Example]:
    """Yield the providers with the most left of a class, in trees that would serve without it."""
    name = condition.value
    amounts = (dict(demand.asked.resources).get(name) for demand in cloud.demands if demand.groups == condition.groups)
    asked = next(amount for amount in amounts if amount is not None)
    root_of, stocks = cloud.facts.root_of, cloud.facts.stocks.get(name, ())
    by_left = [(-equal.left, provider, equal) for equal in stocks for provider in equal.providers]
    best: dict[int, Example] = {}
    for _left, provider, equal in sorted([one for one in by_left if root_of[one[1]] in served.trees]):
        best.setdefault(root_of[provider], Example(provider, {"asked": asked, **_shown(equal)}))
        if len(best) == MAX_EXAMPLES:
            break
    yield from best.values()


def largest(cloud: FilteredCloud, condition: Condition, served: SearchedTrees) -> Largest | None:
    """Return the largest amount available of a class whose amount is the only obstacle.

    This is what a single provider can give, ignoring what else the request takes from it; None if nothing.
    """
    found: dict[int, int] = {}
    for demand in cloud.demands:
        amounts = [asked for asked in demand.asked.resources if resources_value([asked]) == condition.value]
        if demand.groups == condition.groups and amounts:
            amount = Condition(ConditionKind.AMOUNT, demand.groups, condition.value)
            providers = {*cloud.kinds.providers(demand.own.options(amount) | demand.shared.options(amount))}
            found |= _usable(cloud.facts, condition.resource_class, providers, served)
    counted = Counter(found.values())
    most = max(counted, default=0)
    return Largest(most, counted[most]) if most else None


def _usable(facts: Facts, name: str, providers: AbstractSet[int], served: SearchedTrees) -> dict[int, int]:
    """Return, for providers of these trees or sharing with them, the largest amount that can be taken at once."""
    serving = {
        provider
        for provider in providers
        if not served.trees.keys().isdisjoint((facts.root_of[provider], *facts.shares.get(provider, ())))
    }
    usable: dict[int, int] = {}
    for equal in facts.stocks.get(name, ()):
        if most := equal.most:
            usable |= dict.fromkeys(serving.intersection(equal.providers), most)
    return usable


def _failing(cloud: FilteredCloud, condition: Condition, served: SearchedTrees) -> Iterator[int]:
    """Yield for each tree a provider that fails a condition, if a single one can be named."""
    if condition.kind == ConditionKind.REQUIRED and condition.groups == LOOSE:
        return _without_trait(cloud, condition, served)
    failing = frozenset[int]()
    for demand in cloud.demands:
        for options in (demand.own, demand.shared):
            failing |= options.failing_only.get(condition, frozenset())
    return _one_of_each(cloud.kinds, failing, served)


def _without_trait(cloud: FilteredCloud, condition: Condition, served: SearchedTrees) -> Iterator[int]:
    """Yield for each tree a provider that would serve the unsuffixed group but, like all others, lacks a trait."""
    owners = frozenset[int]().union(
        *[cloud.facts.owners_of_any(one) for one in cloud.plan.trait_sets if any_of_value(one) == condition.value]
    )
    loose = [demand.by_tree() for demand in cloud.demands if demand.groups == LOOSE]
    for root, choice in served.trees.items():
        serving: Iterable[int] = [provider for of_tree in loose for provider in of_tree[root]]
        if choice is not None:
            serving = [one for slot, one in zip(cloud.plan.slots, choice, strict=True) if not slot.is_granular]
        yield from islice((provider for provider in serving if provider not in owners), 1)


def _one_of_each(kinds: ProviderKinds, failing: KindSet, served: SearchedTrees) -> Iterator[int]:
    """Yield for each tree a failing provider, preferring the one in the candidate found, if one was composed."""
    by_root: dict[int, int] = {}
    for provider in sorted(kinds.providers(failing), reverse=True):
        for root in (kinds.facts.root_of[provider], *kinds.facts.shares.get(provider, ())):
            by_root[root] = provider
    shown: set[int] = set()
    for root, choice in served.trees.items():
        chosen = [provider for provider in choice or () if kinds.kind_of[provider] in failing]
        shows = chosen[0] if chosen else by_root.get(root)
        if shows is not None and shows not in shown:
            shown.add(shows)
            yield shows


def _numbers(facts: Facts, condition: Condition, providers: frozenset[int]) -> Mapping[int, Mapping[str, Any]]:
    name, _, amount = condition.value.partition(":")
    of_condition = [NUMBERS[kind] for kind in NUMERIC if condition.kind in {kind, ConditionKind.AMOUNT}]
    found = {}
    for equal in facts.stocks.get(name, ()):
        for provider in providers.intersection(equal.providers):
            shown = _shown(equal)
            found[provider] = {"asked": int(amount), **{key: shown[key] for key in of_condition}}
    return found


def _shown(stocks: EqualStocks) -> dict[str, float]:
    """Name the numbers of stocks, writing whole capacities as integers."""
    named = dict(zip(NUMBERS.values(), stocks.numbers, strict=True))
    return {name: int(number) if number == int(number) else number for name, number in named.items()}
