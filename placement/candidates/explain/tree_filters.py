"""Conditions on whole trees that need no search, as sets of the trees that meet them."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import reduce
from typing import NamedTuple

from placement.candidates.explain.conditions import Condition, ConditionKind, any_of_value
from placement.candidates.explain.provider_filters import forbidden_aggregates
from placement.domain.candidate_request import UNSUFFIXED
from placement.domain.facts import Facts
from placement.domain.search_plan import Plan

LOOSE = (UNSUFFIXED,)


class TreeFilter(NamedTuple):
    """A condition and the roots of the trees that meet it."""

    condition: Condition
    trees: AbstractSet[int]


def tree_filters(plan: Plan, facts: Facts) -> Iterator[TreeFilter]:
    """Yield filters on the root, then on traits that some provider in the tree or sharing with it must have.

    Whether the providers that serve have these traits is left to the search.
    """
    every = _every_tree(plan, facts)
    for name in sorted(plan.request.root_required):
        yield TreeFilter(Condition(ConditionKind.ROOT_REQUIRED, (), name), every & facts.owners.get(name, frozenset()))
    for name in sorted(plan.request.root_forbidden):
        yield TreeFilter(
            Condition(ConditionKind.ROOT_FORBIDDEN, (), f"!{name}"), every - facts.owners.get(name, frozenset())
        )
    if plan.forbidden_root_aggregates:
        members = facts.members_of_any(plan.forbidden_root_aggregates)
        yield TreeFilter(forbidden_aggregates(plan.forbidden_root_aggregates, LOOSE), every - members)
    for any_of in plan.trait_sets:
        owners = facts.owners_of_any(any_of)
        trees = facts.trees_with(owners, owners & facts.shares.keys())
        yield TreeFilter(Condition(ConditionKind.REQUIRED, LOOSE, any_of_value(any_of)), trees)


def _every_tree(plan: Plan, facts: Facts) -> AbstractSet[int]:
    """Return the roots of all trees, if a filter needs them."""
    if not (plan.request.root_required or plan.request.root_forbidden or plan.forbidden_root_aggregates):
        return frozenset()
    return set(facts.root_of.values()).union(*facts.shares.values())


class Intersections:
    """Intersects sets, with or without one or a few of them."""

    def __init__(self, sets: Sequence[AbstractSet[int]]) -> None:
        self._sets = sets
        self._before: list[AbstractSet[int] | None] = [None]
        for found in sets:
            self._before.append(_both(self._before[-1], found))
        self._behind: list[AbstractSet[int] | None] = [None]
        for found in reversed(sets):
            self._behind.append(_both(self._behind[-1], found))
        self._behind.reverse()

    def without(self, indices: AbstractSet[int]) -> AbstractSet[int] | None:
        """Return the intersection of the other sets; None if there are no others."""
        if not indices:
            return self._before[-1]
        if len(indices) == 1:
            (index,) = indices
            return _both(self._before[index], self._behind[index + 1])
        return common([found for index, found in enumerate(self._sets) if index not in indices])


def common(sets: Sequence[AbstractSet[int] | None]) -> AbstractSet[int] | None:
    """Intersect sets; None stands for everything."""
    return reduce(_both, sets, None)


def _both(one: AbstractSet[int] | None, other: AbstractSet[int] | None) -> AbstractSet[int] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other
