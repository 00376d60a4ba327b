"""Providers that show a near miss, with the numbers and names that tell how near it is."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any

from placement.candidates.explain.cloud import FilteredCloud
from placement.candidates.explain.conditions import NUMERIC, Condition, ConditionKind
from placement.candidates.explain.explanation import Example
from placement.candidates.explain.tree_search import SearchedTrees
from placement.domain.facts import Facts

MOST_EXAMPLES = 5

WORDS = {
    ConditionKind.REQUIRED: "lacks",
    ConditionKind.ROOT_REQUIRED: "lacks",
    ConditionKind.FORBIDDEN: "has",
    ConditionKind.ROOT_FORBIDDEN: "has",
    ConditionKind.MEMBER_OF: "not_in",
    ConditionKind.FORBIDDEN_AGGREGATES: "in",
    ConditionKind.IN_TREE: "not_in_tree",
}
"""How a provider fails a condition on what it is or where it is."""


def examples(cloud: FilteredCloud, condition: Condition, served: SearchedTrees) -> Iterator[Example]:
    """Yield a few providers that would serve if it were not for a condition, each of another tree."""
    failing = frozenset[int]()
    for demand in cloud.demands:
        for options in (demand.own, demand.shared):
            failing |= options.failing_only.get(condition, frozenset())
    providers = islice(_one_of_each(cloud.facts, failing, served), MOST_EXAMPLES) if failing else iter(())
    chosen = list(providers) or sorted(served.trees)[:MOST_EXAMPLES]
    numbers = _numbers(cloud.facts, condition, frozenset(chosen)) if condition.kind in NUMERIC else {}
    word = WORDS.get(condition.kind)
    for provider in chosen:
        if word is not None:
            yield Example(provider, {word: condition.value.removeprefix("!")})
        else:
            yield Example(provider, numbers.get(provider, {}))


def shortages(cloud: FilteredCloud, condition: Condition, served: SearchedTrees) -> Iterator[Example]:
    """Yield the providers that have most left of a resource class without which so many trees would serve."""
    name = condition.value
    amounts = (dict(demand.asked.resources).get(name) for demand in cloud.demands if demand.groups == condition.groups)
    asked = next(amount for amount in amounts if amount is not None)
    rows = [row for row in cloud.facts.stocks.get(name, ()) if row[2] in served.trees]
    best: dict[int, Example] = {}
    for _class, provider, root, left, min_unit, max_unit, step_size in sorted(rows, key=lambda row: (-row[3], row[1])):
        units = {"min_unit": min_unit, "max_unit": max_unit, "step_size": step_size}
        best.setdefault(root, Example(provider, {"asked": asked, "free": _whole(left), **units}))
        if len(best) == MOST_EXAMPLES:
            break
    yield from best.values()


def _one_of_each(facts: Facts, failing: AbstractSet[int], served: SearchedTrees) -> Iterator[int]:
    """Yield for each tree a failing provider: the one in the candidate that was found, where one was composed."""
    by_root: dict[int, int] = {}
    for provider in sorted(failing, reverse=True):
        for root in (facts.home[provider], *facts.shares.get(provider, ())):
            by_root[root] = provider
    shown: set[int] = set()
    for root, choice in served.trees.items():
        chosen = [provider for provider in choice or () if provider in failing]
        shows = chosen[0] if chosen else by_root.get(root)
        if shows is not None and shows not in shown:
            shown.add(shows)
            yield shows


def _numbers(facts: Facts, condition: Condition, providers: AbstractSet[int]) -> Mapping[int, Mapping[str, Any]]:
    name, _, amount = condition.value.partition(":")
    found = {}
    for _class, provider, _root, left, *units in facts.stocks.get(name, ()):
        if provider in providers:
            values = (left, *units)
            key = "free" if condition.kind == ConditionKind.CAPACITY else condition.kind.value
            found[provider] = {"asked": int(amount), key: _whole(values[NUMERIC.index(condition.kind)])}
    return found


def _whole(number: float) -> float:
    """Return an integer where a capacity is one."""
    return int(number) if number == int(number) else number
