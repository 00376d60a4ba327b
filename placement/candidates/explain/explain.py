"""Turns a plan and a cloud into an explanation: what each condition leaves, and which one leaves nothing.

``hints`` detects what newcomers to Placement get wrong in a request without candidates.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from placement.candidates.compose.slots import RequestBudget
from placement.candidates.explain.alike_trees import AlikeTrees, SlotSearch, serving_trees
from placement.candidates.explain.conditions import (
    LOOSE,
    Condition,
    ConditionKind,
    any_of_value,
    stages,
    traits_condition,
    with_traits_apart,
)
from placement.candidates.explain.explanation import DemandCounts, Explanation, Hint, HintKind, Remainder
from placement.candidates.explain.masks import NOBODY, CloudMasks, ConditionMasks, MaskedDemand
from placement.candidates.explain.near_misses import near_misses
from placement.candidates.single_providers import split_amounts
from placement.cloud.providers import Flags, Ints
from placement.domain.search_plan import Plan

STEPS_PER_TREE = 50_000
STEPS_FOR_CAUSE = 1_000_000
STEPS_FOR_NEAR_MISSES = 500_000


def explain(plan: Plan, masks: ConditionMasks) -> Explanation:
    """Explain why a request has no candidates, or say in how many trees it has some."""
    alike = AlikeTrees(CloudMasks(with_traits_apart(plan), masks))
    explanation, _left = counted(alike)
    return explanation if explanation.cause is None else explained(alike, explanation)


def counted(alike: AlikeTrees) -> tuple[Explanation, Flags]:
    """Return what each condition leaves, and which one leaves nothing; and the trees that are left after all."""
    cloud, left = alike.cloud, alike.cloud.trees
    budget = RequestBudget(per_tree=STEPS_PER_TREE, per_request=STEPS_FOR_CAUSE)
    steps = [*cloud.trees_left()]
    for stage in stages(cloud.plan):
        # Trees where the steps ran out before that was known count as left.
        served = serving_trees(alike, SlotSearch(stage.plan, budget), left)
        left = np.zeros(len(left), dtype=bool)
        left[np.concatenate(served)] = True
        steps.append(Remainder(stage.condition, None, int(left.sum())))
    cause = cloud.first_emptied() or next((step.condition for step in steps if not step.trees), None)
    demands = tuple([DemandCounts(demand.groups, demand.asked.resources, demand.steps) for demand in cloud.demands])
    return Explanation(cause, demands, tuple(steps), complete=not budget.was_hit), left


def explained(alike: AlikeTrees, explanation: Explanation) -> Explanation:
    """Add near misses and hints to an explanation of a request without candidates."""
    # Near misses get a budget of their own, because they are searched for in more trees than the cause.
    budget = RequestBudget(per_tree=STEPS_PER_TREE, per_request=STEPS_FOR_NEAR_MISSES)
    missed = near_misses(alike, budget)
    complete = explanation.complete and not budget.was_hit
    return replace(explanation, near_misses=missed, hints=tuple(hints(alike.cloud)), complete=complete)


def quick_cause(plan: Plan, masks: ConditionMasks) -> Condition:
    """Return why a search found nothing, for a log line and a counter, as precisely as it can without a search."""
    plan = with_traits_apart(plan)
    if (emptied := CloudMasks(plan, masks).first_emptied()) is not None:
        return emptied
    searched = [stage.condition for stage in stages(plan)]
    return searched[0] if len(searched) == 1 else Condition(ConditionKind.TOGETHER)


class _WantedCondition(NamedTuple):
    """A condition that a provider has to have something, and the positions of those that have it."""

    condition: Condition
    havers: Ints


def hints(cloud: CloudMasks) -> Iterator[Hint]:
    """Yield hints on what no single provider has, what none has or the wrong one, and pools that share with none."""
    yield from _split(cloud)
    yield from dict.fromkeys(_nobody(cloud))
    for demand in cloud.demands:
        yield from _elsewhere(cloud, demand)
    yield from _apart(cloud)
    for demand in cloud.demands:
        yield from _sharing_with_nobody(cloud, demand)


def _split(cloud: CloudMasks) -> Iterator[Hint]:
    """Yield a hint for each amount that no provider could give even if it were empty."""
    masks = cloud.masks
    for split in split_amounts(cloud.plan, masks.columns, masks.serving.ids.classes, sharing=masks.sharing):
        condition = Condition(ConditionKind.AMOUNT, value=f"{split.resource_class}:{split.amount}")
        yield Hint(HintKind.NO_SINGLE_PROVIDER, condition, split.trees, split=split)


def _nobody(cloud: CloudMasks) -> Iterator[Hint]:
    masks = cloud.masks
    for demand in cloud.demands:
        for name, _amount in demand.asked.resources:
            if not np.isin(masks.with_stock(name), masks.around).any():
                yield Hint(HintKind.NO_INVENTORY, Condition(ConditionKind.INVENTORY, demand.groups, name))
        for condition in [wanted.condition for wanted in _wanted(cloud, demand) if not len(wanted.havers)]:
            is_trait = condition.kind == ConditionKind.REQUIRED
            yield Hint(HintKind.NO_OWNER if is_trait else HintKind.NO_MEMBER, condition)
        tree = demand.asked.group.in_tree
        if tree is not None and tree not in masks.serving.ids.roots:
            yield Hint(HintKind.NO_TREE, Condition(ConditionKind.IN_TREE, demand.groups, tree))
    for condition, _trees in cloud.filters:
        is_of_root = condition.kind == ConditionKind.ROOT_REQUIRED
        if is_of_root and not masks.serving.with_any_trait([condition.value])[masks.around].any():
            yield Hint(HintKind.NO_OWNER, condition)


def _wanted(cloud: CloudMasks, demand: MaskedDemand) -> list[_WantedCondition]:
    """Return the traits and aggregates that a demand wants."""
    masks, serving, group = cloud.masks, cloud.masks.serving, demand.asked.group
    flags = [(ConditionKind.REQUIRED, any_of, serving.with_any_trait(any_of)) for any_of in group.required]
    flags += [(ConditionKind.MEMBER_OF, any_of, serving.in_any_aggregate(any_of)) for any_of in group.member_of]
    return [
        _WantedCondition(Condition(kind, demand.groups, any_of_value(any_of)), masks.around[has[masks.around]])
        for kind, any_of, has in flags
    ]


def _elsewhere(cloud: CloudMasks, demand: MaskedDemand) -> Iterator[Hint]:
    """Yield a hint for each trait and aggregate that is all a provider lacks, and that another of its tree has.

    Not if that other one has what is asked for as well: then it is merely too small or full, nothing is misplaced.
    """
    if not (every_wanted := _wanted(cloud, demand)):
        return
    stocked = cloud.masks.around
    for name, _amount in demand.asked.resources:
        stocked = np.intersect1d(stocked, cloud.masks.with_stock(name), assume_unique=True)
    for wanted in every_wanted:
        is_trait = wanted.condition.kind == ConditionKind.REQUIRED
        hint = HintKind.TRAIT_ELSEWHERE if is_trait else HintKind.AGGREGATE_DOES_NOT_SPAN
        # The unsuffixed group has no mask for its traits: ``_apart`` looks at them together.
        lacking, pools = demand.failing_only(wanted.condition)
        yield from _misplaced(cloud, hint, wanted, lacking=lacking, serving=stocked)
        if not is_trait and len(pools):
            yield from _sharers(cloud, wanted, pools)


def _apart(cloud: CloudMasks) -> Iterator[Hint]:
    """Yield a hint for each trait of the unsuffixed group that no provider with its resources has, but others have."""
    loose = [at for demand in cloud.demands if demand.groups == LOOSE for at in demand.options()]
    serving = np.unique(np.concatenate([NOBODY, *loose]))
    for any_of in cloud.plan.trait_sets:
        has = cloud.masks.serving.with_any_trait(any_of)
        wanted = _WantedCondition(traits_condition(any_of), cloud.masks.around[has[cloud.masks.around]])
        yield from _misplaced(cloud, HintKind.TRAIT_ELSEWHERE, wanted, lacking=serving, serving=serving)


def _sharers(cloud: CloudMasks, wanted: _WantedCondition, pools: Ints) -> Iterator[Hint]:
    """Yield a hint if a provider that could share with a tree lacks only an aggregate that the tree has."""
    providers = cloud.providers
    members = wanted.havers[np.argsort(-providers.ids[wanted.havers])]
    member_in = dict(zip(providers.trees[members].tolist(), members.tolist(), strict=True))
    shared = [(tree, pool) for pool in pools.tolist() for tree in cloud.masks.trees_shared_with[pool].tolist()]
    spoilt = [(tree, pool) for tree, pool in shared if tree in member_in and providers.root_positions[tree] != pool]
    if spoilt:
        first, pool = min(spoilt, key=lambda each: (each[0], providers.ids[each[1]]))
        here, there = int(providers.ids[pool]), int(providers.ids[member_in[first]])
        yield Hint(HintKind.SHARER_NOT_MEMBER, wanted.condition, len({tree for tree, _pool in spoilt}), here, there)


def _sharing_with_nobody(cloud: CloudMasks, demand: MaskedDemand) -> Iterator[Hint]:
    """Yield a hint if trees lack only what a sharing provider has that is in no aggregate with any other tree."""
    serving, providers = cloud.masks.serving, cloud.providers
    is_all = len(cloud.demands) + len(cloud.filters) == 1
    trees = np.flatnonzero(~demand.reached & (cloud.fails == 1) & (not is_all))
    if not (serving.ids.shares and len(trees) and demand.asked.resources):
        return
    shares = serving.sets.with_trait(serving.ids.sharing_trait)
    others = {pool: trees[trees != providers.trees[pool]] for pool, trees in cloud.masks.trees_shared_with.items()}
    pools = [pool for pool in demand.options().own.tolist() if shares[pool] and not len(others.get(pool, NOBODY))]
    if pools:
        classes = ",".join([name for name, _amount in demand.asked.resources])
        condition = Condition(ConditionKind.INVENTORY, demand.groups, classes)
        here, there = int(providers.roots[trees[0]]), int(providers.ids[pools].min())
        yield Hint(HintKind.SHARER_ALONE, condition, len(trees), here, there)


def _misplaced(
    cloud: CloudMasks, hint: HintKind, wanted: _WantedCondition, *, lacking: Ints, serving: Ints
) -> Iterator[Hint]:
    """Yield a hint if some tree has both a provider that fails only a condition and another that meets it.

    Trees in which a provider that could serve meets it are all right.
    """
    masks, providers = cloud.masks, cloud.providers
    helped = masks.trees_of(np.intersect1d(serving, wanted.havers, assume_unique=True))
    trees = np.flatnonzero(masks.trees_of(lacking) & masks.trees_of(wanted.havers) & ~helped)
    if len(trees):
        shown = [int(providers.ids[at[providers.trees[at] == trees[0]]].min()) for at in (lacking, wanted.havers)]
        yield Hint(hint, wanted.condition, len(trees), here=shown[0], there=shown[1])
