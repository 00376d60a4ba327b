"""Hints: what newcomers to Placement get wrong in a request without candidates, as far as a cloud shows it."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from placement.candidates.explain.explanation import (
    LOOSE,
    Condition,
    ConditionKind,
    Hint,
    HintKind,
    any_of_value,
    split_amounts,
    traits_condition,
)
from placement.candidates.explain.masks import NOBODY, CloudMasks, MaskedDemand
from placement.cloud.providers import Ints


class _NeededMark(NamedTuple):
    """A trait or an aggregate that a demand needs, as a condition, and the positions of those that have it."""

    condition: Condition
    havers: Ints


def hints(cloud: CloudMasks) -> Iterator[Hint]:
    """Yield hints on what no single provider has, what none has or the wrong one, and pools that share with none."""
    masks = cloud.masks
    for split in split_amounts(cloud.plan, masks.columns, masks.serving.ids.classes, sharing=masks.sharing):
        condition = Condition(ConditionKind.AMOUNT, value=f"{split.resource_class}:{split.amount}")
        yield Hint(HintKind.NO_SINGLE_PROVIDER, condition, split.trees, split=split)
    yield from dict.fromkeys(_nobody(cloud))
    for demand in cloud.demands:
        yield from _elsewhere(cloud, demand)
    yield from _unsuffixed_traits(cloud)
    for demand in cloud.demands:
        yield from _sharing_with_nobody(cloud, demand)


def _nobody(cloud: CloudMasks) -> Iterator[Hint]:
    masks = cloud.masks
    for demand in cloud.demands:
        for name, _amount in demand.demand.resources:
            if not np.isin(masks.with_stock(name), masks.in_reach).any():
                yield Hint(HintKind.NO_INVENTORY, Condition(ConditionKind.INVENTORY, demand.groups, name))
        for condition in [condition for condition, havers in _requirements(cloud, demand) if not len(havers)]:
            is_trait = condition.kind == ConditionKind.REQUIRED
            yield Hint(HintKind.NO_OWNER if is_trait else HintKind.NO_MEMBER, condition)
        if (tree := demand.demand.group.in_tree) is not None and tree not in masks.serving.ids.roots:
            yield Hint(HintKind.NO_TREE, Condition(ConditionKind.IN_TREE, demand.groups, tree))
    for condition, _trees in cloud.filters:
        is_of_root = condition.kind == ConditionKind.ROOT_REQUIRED
        if is_of_root and not masks.serving.with_any_trait([condition.value])[masks.in_reach].any():
            yield Hint(HintKind.NO_OWNER, condition)


def _requirements(cloud: CloudMasks, demand: MaskedDemand) -> list[_NeededMark]:
    masks, serving, group = cloud.masks, cloud.masks.serving, demand.demand.group
    flags = [(ConditionKind.REQUIRED, any_of, serving.with_any_trait(any_of)) for any_of in group.required]
    flags += [(ConditionKind.MEMBER_OF, any_of, serving.in_any_aggregate(any_of)) for any_of in group.member_of]
    return [
        _NeededMark(Condition(kind, demand.groups, any_of_value(any_of)), masks.in_reach[has[masks.in_reach]])
        for kind, any_of, has in flags
    ]


def _elsewhere(cloud: CloudMasks, demand: MaskedDemand) -> Iterator[Hint]:
    """Yield a hint for each trait and aggregate that is all a provider lacks, and that another of its tree has.

    Not if that other one has what is asked for as well: nothing is misplaced then.
    """
    if not (requirements := _requirements(cloud, demand)):
        return
    stocked = cloud.masks.in_reach
    for name, _amount in demand.demand.resources:
        stocked = np.intersect1d(stocked, cloud.masks.with_stock(name), assume_unique=True)
    for requirement in requirements:
        is_trait = requirement.condition.kind == ConditionKind.REQUIRED
        hint = HintKind.TRAIT_ELSEWHERE if is_trait else HintKind.AGGREGATE_DOES_NOT_SPAN
        # The unsuffixed group has no mask for its traits: ``_unsuffixed_traits`` looks at them together.
        lacking, pools = demand.failing_only(requirement.condition)
        yield from _misplaced(cloud, hint, requirement, lacking=lacking, serving=stocked)
        if not is_trait and len(pools):
            yield from _sharers(cloud, requirement, pools)


def _unsuffixed_traits(cloud: CloudMasks) -> Iterator[Hint]:
    """Yield a hint for each trait of the unsuffixed group that no provider with its resources has, but others have."""
    loose = [at for demand in cloud.demands if demand.groups == LOOSE for at in demand.options()]
    serving = np.unique(np.concatenate([NOBODY, *loose]))
    for any_of in cloud.plan.trait_sets:
        has = cloud.masks.serving.with_any_trait(any_of)
        requirement = _NeededMark(traits_condition(any_of), cloud.masks.in_reach[has[cloud.masks.in_reach]])
        yield from _misplaced(cloud, HintKind.TRAIT_ELSEWHERE, requirement, lacking=serving, serving=serving)


def _sharers(cloud: CloudMasks, requirement: _NeededMark, pools: Ints) -> Iterator[Hint]:
    """Yield a hint if a provider that could share with a tree lacks only an aggregate that the tree has."""
    providers = cloud.providers
    members = requirement.havers[np.argsort(-providers.ids[requirement.havers])]
    member_in = dict(zip(providers.trees[members].tolist(), members.tolist(), strict=True))
    shared = [(tree, pool) for pool in pools.tolist() for tree in cloud.masks.trees_shared_with[pool].tolist()]
    spoilt = [(tree, pool) for tree, pool in shared if tree in member_in and providers.root_positions[tree] != pool]
    if spoilt:
        first, pool = min(spoilt, key=lambda pair: (pair[0], providers.ids[pair[1]]))
        provider, owner = int(providers.ids[pool]), int(providers.ids[member_in[first]])
        trees = len({tree for tree, _pool in spoilt})
        yield Hint(HintKind.SHARER_NOT_MEMBER, requirement.condition, trees, provider, owner)


def _sharing_with_nobody(cloud: CloudMasks, demand: MaskedDemand) -> Iterator[Hint]:
    """Yield a hint if trees lack only what a sharing provider has that is in no aggregate with any other tree."""
    serving, providers = cloud.masks.serving, cloud.providers
    is_all = len(cloud.demands) + len(cloud.filters) == 1
    trees = np.flatnonzero(~demand.reached & (cloud.fails == 1) & (not is_all))
    if not (serving.ids.shares and len(trees) and demand.demand.resources):
        return
    shares = serving.sets.with_trait(serving.ids.sharing_trait)
    users = {pool: trees[trees != providers.trees[pool]] for pool, trees in cloud.masks.trees_shared_with.items()}
    pools = [pool for pool in demand.options().own.tolist() if shares[pool] and not len(users.get(pool, NOBODY))]
    if pools:
        classes = ",".join([name for name, _amount in demand.demand.resources])
        condition = Condition(ConditionKind.INVENTORY, demand.groups, classes)
        provider, owner = int(providers.roots[trees[0]]), int(providers.ids[pools].min())
        yield Hint(HintKind.SHARER_ALONE, condition, len(trees), provider, owner)


def _misplaced(
    cloud: CloudMasks, hint: HintKind, requirement: _NeededMark, *, lacking: Ints, serving: Ints
) -> Iterator[Hint]:
    """Yield a hint if a tree where nobody could serve has one that fails only a condition, and one that meets it."""
    masks, providers = cloud.masks, cloud.providers
    helped = masks.trees_of(np.intersect1d(serving, requirement.havers, assume_unique=True))
    trees = np.flatnonzero(masks.trees_of(lacking) & masks.trees_of(requirement.havers) & ~helped)
    if len(trees):
        shown = [int(providers.ids[at[providers.trees[at] == trees[0]]].min()) for at in (lacking, requirement.havers)]
        yield Hint(hint, requirement.condition, len(trees), provider=shown[0], owner=shown[1])
