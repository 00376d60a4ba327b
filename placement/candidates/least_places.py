"""How few places candidates can touch in each tree: a bound on how compact they are, before any is composed."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placement.candidates.serving import Serving
from placement.cloud.providers import Flags, Ints

CountedDemands = Sequence[tuple[int, int]]
"""(demand, number of different providers), for demands that want more than one provider."""


class LeastPlaces(NamedTuple):
    """Bounds by the index of a tree.

    Args:
        counts: for each level, outermost first, the least number of places that are touched.
        enough: whether the tree has enough providers for each demand.
    """

    counts: Sequence[Ints]
    enough: Flags


def least_places(serving: Serving, wanted: CountedDemands, *, levels: Sequence[int | None]) -> LeastPlaces | None:
    """Return, for each tree, a lower bound on the places touched at each level.

    None if other trees share providers that are counted, because a tree alone does not decide then.

    Args:
        serving: finds who can serve.
        wanted: the counted demands.
        levels: the trait ids of the levels, outermost first, None for one that does not exist.
    """
    if any(serving.sharing.options[demand] for demand, _number in wanted):
        return None
    providers = serving.columns.providers
    counts = [np.ones(len(providers.roots), dtype=np.int64) for _level in levels]
    enough: Flags = np.ones(len(providers.roots), dtype=bool)
    for demand, number in wanted:
        at = serving.own_providers(serving.plan.demands[demand])
        enough &= np.bincount(providers.trees[at], minlength=len(enough)) >= number
        for level, trait_id in enumerate(levels):
            if trait_id is not None:
                nearest = providers.nearest(at, serving.sets.with_trait(trait_id))
                free = np.bincount(providers.trees[at[nearest < 0]], minlength=len(enough))
                sizes = np.bincount(nearest[nearest >= 0], minlength=len(providers.ids))
                fewest = fewest_places(np.flatnonzero(sizes), sizes, providers.trees, needed=number - free)
                counts[level] = np.maximum(counts[level], fewest)
    return LeastPlaces(counts, enough)


def fewest_places(places: Ints, sizes: Ints, trees: Ints, *, needed: Ints) -> Ints:
    """Return for each tree how many of its places, the largest first, it takes to have as many providers as needed.

    Args:
        places: the positions of the places.
        sizes: how many providers lie in each, by position.
        trees: the tree of each position.
        needed: the number of providers by tree.

    >>> trees = np.array([0, 0, 0, 1])
    >>> fewest_places(np.arange(4), np.array([2, 1, 3, 1]), trees, needed=np.array([4, 0])).tolist()
    [2, 0]
    """
    places = places[np.lexsort((-sizes[places], trees[places]))]
    tree_of, upto = trees[places], np.cumsum(sizes[places])
    before = upto - sizes[places]
    first = np.searchsorted(tree_of, tree_of)
    before = before - before[first] if len(places) else before
    return np.bincount(tree_of[before < needed[tree_of]], minlength=len(needed))
