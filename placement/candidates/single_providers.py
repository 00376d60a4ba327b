"""Amounts that no single provider of a tree has, though the tree has them in all: what nested devices look like.

A group, and each class of the unsuffixed group, is served by one provider. Eight GPUs with a provider each are eight
groups, which people who count devices by host do not expect.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from placement.cloud.columns import CloudColumns
from placement.cloud.providers import Flags, Ints
from placement.domain.search_plan import Plan

MAX_GROUPS = 64
"""For more groups than this no way to ask is shown."""


class SplitAmount(NamedTuple):
    """An amount that single providers cannot give, even if they were empty.

    Args:
        resource_class, amount: what one provider is asked for.
        largest: the most that one provider could give: of the trees with enough free, or else of the cloud.
        trees: how many trees have enough free, but on several providers.
        is_everywhere: whether no provider of the cloud could give the amount.
    """

    resource_class: str
    amount: int
    largest: int
    trees: int
    is_everywhere: bool


def split_amounts(
    plan: Plan, columns: CloudColumns, class_ids: Mapping[str, int], *, sharing: Ints
) -> Iterator[SplitAmount]:
    """Yield the largest amount of each class that a plan asks of one provider, if it is split and nobody shares it."""
    portions = [portion for slot in plan.slots for portion in slot.resources]
    for name, amount in {name: max(n for key, n in portions if key == name) for name, _amount in portions}.items():
        stock = columns.stock(class_ids[name])
        largest = np.minimum(np.maximum(0, np.trunc(stock.capacity)).astype(np.int64), stock.max_unit)
        if not largest.any() or (len(sharing) and (largest[np.isin(stock.at, sharing)] >= amount).any()):
            continue
        best = np.zeros(len(columns.providers.roots), dtype=np.int64)
        np.maximum.at(best, columns.providers.trees[stock.at], largest)
        is_split = best < amount
        if is_split.any():
            is_split &= _has_free(columns, class_ids[name], amount)
        is_everywhere = int(best.max()) < amount
        if is_everywhere or is_split.any():
            limits = best[is_split] if is_split.any() else best
            yield SplitAmount(name, amount, int(limits.max()), int(np.count_nonzero(is_split)), is_everywhere)


def _has_free(columns: CloudColumns, class_id: int, amount: int) -> Flags:
    """Return which trees have an amount free, on however many providers."""
    stock = columns.stock(class_id)
    free = np.maximum(0, np.trunc(stock.capacity).astype(np.int64) - stock.used)
    return np.bincount(columns.providers.trees[stock.at], free, len(columns.providers.roots)) >= amount


def split_in_words(split: SplitAmount) -> str:
    """Say that no single provider has an amount, and how to ask for it.

    >>> split_in_words(SplitAmount("VCPU", 96, 64, 0, is_everywhere=True))
    'No provider could give 96 VCPU, even if it were empty: the largest has 64 VCPU.'
    """
    requested, has = [f"{amount} {split.resource_class}" for amount in (split.amount, split.largest)]
    if split.is_everywhere:
        sentence = f"No provider could give {requested}, even if it were empty: the largest has {has}."
    else:
        where = "1 tree" if split.trees == 1 else f"{split.trees} trees"
        sentence = f"On {where} no single provider could give {requested}: the largest there has {has}."
    groups = -(-split.amount // split.largest)
    if not split.trees or groups > MAX_GROUPS:
        return sentence
    trees = "1 tree has" if split.trees == 1 else f"{split.trees} trees have"
    last = split.amount - (groups - 1) * split.largest
    second = last if groups == 2 else split.largest
    example = f"resources_1={split.resource_class}:{split.largest}&resources_2={split.resource_class}:{second}"
    more = " and so on" if groups > 2 else ""
    counted = f', or with "count": {groups} in a planner request' if last == split.largest else ""
    advice = f"ask for it in {groups} groups, {example}{more}{counted}."
    return f"{sentence} {trees} as much free on several providers: {advice}"
