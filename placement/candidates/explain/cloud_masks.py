"""A cloud under the conditions of a plan: which trees are left, with all of them or with one left out."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from placement.candidates.explain.conditions import (
    LOOSE,
    Condition,
    ConditionKind,
    any_of_value,
    groups_of,
    is_searched,
    traits_condition,
)
from placement.candidates.explain.explanation import Remainder
from placement.candidates.explain.provider_masks import ConditionMasks, MaskedDemand
from placement.cloud.providers import Flags
from placement.domain.search_plan import Plan

KnownDemands = dict[tuple[object, ...], MaskedDemand]


class TreeMask(NamedTuple):
    """A condition and the trees that meet it."""

    condition: Condition
    trees: Flags


class CloudMasks:
    """A cloud under the conditions of a plan that need no search.

    Args:
        plan: the plan.
        masks: the conditions on single providers.
        known: the demands of other plans, to reuse and add to.
    """

    def __init__(self, plan: Plan, masks: ConditionMasks, known: KnownDemands | None = None) -> None:
        self.plan = plan
        self.masks = masks
        self.providers = masks.providers
        self._known: KnownDemands = {} if known is None else known
        every = [self._demand(index) for index in range(len(plan.demands))]
        self.demands = [demand for demand in every if not demand.asked.ignores_usage]
        self.options = every
        """All demands, with those for whatever could serve a group that wants all."""
        self.filters: Sequence[TreeMask] = list(self._tree_masks())
        self._fails = np.sum([~trees for trees in self._sets], axis=0)
        """How many of the conditions each tree fails, a provider for each demand among them."""

    def other(self, plan: Plan) -> "CloudMasks":
        """Return the same cloud under the conditions of another plan."""
        return CloudMasks(plan, self.masks, self._known)

    @property
    def trees(self) -> Flags:
        """The trees that have a provider for each demand and meet all conditions on trees."""
        left: Flags = self._fails == 0
        return left

    def trees_but_for(self, demand: MaskedDemand) -> Flags:
        """Return the trees that fail only for want of a provider for a demand, if anything else is asked for."""
        left: Flags = ~demand.reached & (self._fails == 1)
        return left & (len(self._sets) > 1)

    def trees_without(self, condition: Condition) -> Flags:
        """Return the trees that may have candidates only if a condition is left out.

        For a condition that the search checks, these are all trees that pass the others; otherwise those that fail
        because of it.
        """
        fails = self._fails.copy()
        affected = np.zeros(len(fails), dtype=bool)
        for demand in self.demands:
            if condition.groups == demand.groups:
                more = demand.trees_failing_only(condition)
                fails -= more & ~demand.reached
                affected |= more
        for mask in self.filters:
            if mask.condition == condition:
                fails -= ~mask.trees
                affected |= ~mask.trees
        left: Flags = fails == 0
        return left if is_searched(self.plan, condition) else left & affected

    def trees_left(self) -> Iterator[Remainder]:
        """Yield how many trees are left after each condition on trees."""
        left: Flags = np.logical_and.reduce([demand.reached for demand in self.demands])
        yield Remainder(Condition(ConditionKind.EVERY_GROUP), None, int(left.sum()))
        for mask in self.filters:
            left = left & mask.trees
            yield Remainder(mask.condition, None, int(left.sum()))

    @property
    def _sets(self) -> list[Flags]:
        return [*[demand.reached for demand in self.demands], *[mask.trees for mask in self.filters]]

    def _demand(self, index: int) -> MaskedDemand:
        demand = self.plan.demands[index]
        groups = groups_of(self.plan, index)
        key = groups, demand.ignores_usage, demand.identity
        if key not in self._known:
            self._known[key] = MaskedDemand(self.masks, demand, groups)
        return self._known[key]

    def _tree_masks(self) -> Iterator[TreeMask]:
        """Yield the conditions on the root, then on traits that some provider in the tree or sharing with it must have.

        Whether the providers that serve have these traits is left to the search.
        """
        request, serving = self.plan.request, self.masks.serving
        for name in sorted(request.root_required):
            condition = Condition(ConditionKind.ROOT_REQUIRED, (), name)
            yield TreeMask(condition, serving.of_roots(serving.with_any_trait([name])))
        for name in sorted(request.root_forbidden):
            condition = Condition(ConditionKind.ROOT_FORBIDDEN, (), f"!{name}")
            yield TreeMask(condition, ~serving.of_roots(serving.with_any_trait([name])))
        if of_root := self.plan.forbidden_root_aggregates:
            # For the unsuffixed group the condition covers the root, too.
            condition = Condition(ConditionKind.FORBIDDEN_AGGREGATES, LOOSE, any_of_value(of_root, forbidden=True))
            yield TreeMask(condition, ~serving.of_roots(serving.in_any_aggregate(of_root)))
        for any_of in self.plan.trait_sets:
            owners = serving.with_any_trait(any_of)
            trees = self.masks.trees_of(self.masks.owners_here(owners), self.masks.sharing[owners[self.masks.sharing]])
            yield TreeMask(traits_condition(any_of), trees)


def first_emptied(cloud: CloudMasks) -> Condition | None:
    """Return the first condition that leaves nothing; None if trees are left."""
    for demand in cloud.demands:
        for step in demand.steps:
            if not step.providers:
                return step.condition
    return next((step.condition for step in cloud.trees_left() if not step.trees), None)
