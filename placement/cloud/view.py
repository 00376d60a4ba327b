"""A cloud as it would be: more or less in use, some trees gone, empty copies of others added. Columns make columns."""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from placement.cloud.columns import CloudColumns, StockColumns, UseStep
from placement.cloud.providers import NO_PARENT, Flags, Ints, ProviderColumns
from placement.domain.overlay import MoreTrees, Overlay


def with_changes(columns: CloudColumns, overlay: Overlay, class_ids: Mapping[str, int]) -> CloudColumns:
    """Return a cloud in which as much is in use as an overlay says, given the ids of the classes that it names.

    What is allocated of a class that no longer exists takes no room, so its change gives none.
    """
    steps: dict[int, list[UseStep]] = defaultdict(list)
    for provider, root in columns.providers.root_of(overlay.changes).items():
        for name, more in overlay.changes[provider].items():
            if name in class_ids:
                steps[class_ids[name]].append(UseStep(root, provider, more))
    return columns.with_uses(steps)[0]


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


def cloud_view(columns: CloudColumns, overlay: Overlay, *, full: Flags | None = None) -> CloudView:
    """Return a cloud with the trees that an overlay says; its changes are in the columns already.

    Args:
        columns: what providers have.
        overlay: which trees are gone, and which are added.
        full: providers of which everything is in use; None for nobody.
    """
    if full is None and not (overlay.gone or overlay.more):
        return CloudView(columns, np.arange(len(columns.providers.ids)), {})
    providers, origin, like = _providers(columns.providers, overlay)
    stocks = {class_id: _stock(columns, providers, origin, full, class_id=class_id) for class_id in columns.class_ids}
    return CloudView(CloudColumns(providers, stocks), origin, like)


class _ProviderBlock(NamedTuple):
    """Providers of whole trees: the positions of their originals, and their columns."""

    origin: Ints
    root_of: Ints
    ids: Ints
    parents: Ints


def _providers(real: ProviderColumns, overlay: Overlay) -> tuple[ProviderColumns, Ints, dict[int, int]]:
    if not (overlay.gone or overlay.more):
        return real, np.arange(len(real.ids)), {}
    origin = real.positions_in(np.flatnonzero(~np.isin(real.roots, [*overlay.gone])))
    blocks = [_ProviderBlock(origin, real.roots[real.trees[origin]], real.ids[origin], real.parents[origin])]
    like, last = dict[int, int](), min(0, *real.ids.tolist()[:1])
    for addition in overlay.more:
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
    columns: CloudColumns, providers: ProviderColumns, origin: Ints, full: Flags | None, *, class_id: int
) -> StockColumns:
    stock = columns.stock(class_id)
    row_of = np.full(len(columns.providers.ids), -1)
    row_of[stock.at] = np.arange(len(stock.at))
    at = np.flatnonzero(row_of[origin] >= 0)
    capacity, used, *units = [column[row_of[origin][at]] for column in stock[1:]]
    if full is not None:
        used = np.where(full[origin[at]], np.maximum(np.trunc(capacity).astype(np.int64), used), used)
    return StockColumns(at, capacity, np.where(providers.ids[at] < 0, 0, used), *units)
