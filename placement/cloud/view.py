"""A cloud as it would be: some trees gone, empty copies of others added, more or less in use. Columns make columns."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from placement.cloud.columns import CloudColumns, StockColumns
from placement.cloud.providers import NO_PARENT, Ints, ProviderColumns


@dataclass(frozen=True, slots=True)
class MoreTrees:
    """Empty trees like another one: its root, and how many."""

    like: int
    count: int


@dataclass(frozen=True, slots=True)
class Supposed:
    """What is supposed to differ in a cloud.

    Args:
        changes: the change in what is in use, by class id and provider; negative for less.
        full: providers of which everything is in use.
        gone: the roots of trees that do not exist, nor what they share with others.
        more: trees that exist besides: their providers have ids below 0.
    """

    changes: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    full: Collection[int] = ()
    gone: Collection[int] = ()
    more: Sequence[MoreTrees] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether nothing differs."""
        return not (self.changes or self.full or self.gone or self.more)


class CloudView(NamedTuple):
    """A cloud as it would be.

    Args:
        columns: what it would have.
        origin: for each provider, the position of the one in the real cloud that it is, or is modelled on.
        like: the root of each tree that does not exist -> the root of the tree that it is modelled on.
    """

    columns: CloudColumns
    origin: Ints
    like: Mapping[int, int]


def cloud_view(columns: CloudColumns, supposed: Supposed, class_ids: Collection[int]) -> CloudView:
    """Return a cloud with everything that is supposed, and the stocks of some classes."""
    if supposed.is_nothing:
        return CloudView(columns, np.arange(len(columns.providers.ids)), {})
    providers, origin, like = _providers(columns.providers, supposed)
    stocks = {class_id: _stock(columns, providers, origin, supposed, class_id=class_id) for class_id in class_ids}
    return CloudView(CloudColumns(providers, stocks), origin, like)


class _ProviderBlock(NamedTuple):
    """Providers of whole trees: the positions of their originals, and their columns."""

    origin: Ints
    root_of: Ints
    ids: Ints
    parents: Ints


def _providers(real: ProviderColumns, supposed: Supposed) -> tuple[ProviderColumns, Ints, dict[int, int]]:
    if not (supposed.gone or supposed.more):
        return real, np.arange(len(real.ids)), {}
    origin = real.positions_in(np.flatnonzero(~np.isin(real.roots, [*supposed.gone])))
    blocks = [_ProviderBlock(origin, real.roots[real.trees[origin]], real.ids[origin], real.parents[origin])]
    like, last = dict[int, int](), min(0, *real.ids.tolist()[:1])
    for addition in supposed.more:
        block = _copies(real, addition, last)
        last -= len(block.ids)
        blocks.append(block)
        like.update(dict.fromkeys(block.root_of.tolist(), addition.like))
    together = _ProviderBlock(*[np.concatenate(column) for column in zip(*blocks, strict=True)])
    together = _ProviderBlock(*[column[np.lexsort((together.ids, together.root_of))] for column in together])
    return ProviderColumns.sorted_from(*together[1:]), together.origin, like


def _copies(real: ProviderColumns, more: MoreTrees, last: int) -> _ProviderBlock:
    """Return copies of a tree, with ids below another one, in the order of the originals: it tells siblings apart."""
    at = real.positions_in(real.tree_indices([more.like]))
    number = len(at)
    first_ids = last - number * np.arange(1, more.count + 1)[:, None]
    parent, root = real.positions(real.parents[at]) - at[0], int(real.positions([more.like])[0] - at[0])
    return _ProviderBlock(
        np.tile(at, more.count),
        np.repeat(first_ids + root, number),
        (first_ids + np.arange(number)).ravel(),
        np.where(real.parents[at] == NO_PARENT, NO_PARENT, first_ids + parent).ravel(),
    )


def _stock(
    columns: CloudColumns, providers: ProviderColumns, origin: Ints, supposed: Supposed, *, class_id: int
) -> StockColumns:
    stock = columns.stock(class_id)
    row_of = np.full(len(columns.providers.ids), -1)
    row_of[stock.at] = np.arange(len(stock.at))
    at = np.flatnonzero(row_of[origin] >= 0)
    capacity, used, *units = [column[row_of[origin][at]] for column in stock[1:]]
    used = np.where(providers.ids[at] < 0, 0, used) + _by_position(providers, supposed.changes.get(class_id, {}))[at]
    is_full = _by_position(providers, dict.fromkeys(supposed.full, 1))[at] > 0
    used = np.where(is_full, np.maximum(np.trunc(capacity).astype(np.int64), used), used)
    return StockColumns(at, capacity, used, *units)


def _by_position(providers: ProviderColumns, amounts: Mapping[int, int]) -> Ints:
    by_position = np.zeros(len(providers.ids), dtype=np.int64)
    at = providers.positions([*amounts])
    by_position[at[at >= 0]] = np.array([*amounts.values()], dtype=np.int64)[at >= 0]
    return by_position
