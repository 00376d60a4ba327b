"""The levels inside trees: who lies in which place of a level, and how full it is there."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from placement.domain.levels import Layout, Places
from placement.domain.tree import Tree

Fits = dict[int, float]
"""How many times what is asked of a provider fits on it: the sum over all kinds that it can serve."""


def fits_in(rows: Sequence[Sequence[Any]]) -> Fits:
    """Return what fits on the providers in rows of (kind, root, provider, ..., how many times)."""
    fits: Fits = {}
    last = len(rows[0]) - 1 if rows else 0
    for row in rows:
        fits[row[2]] = fits.get(row[2], 0.0) + row[last]
    return fits


def add_places(trees: Iterable[Tree], layout: Layout, fits: Fits, shared: Fits) -> None:
    """Lay out each tree: where its own providers lie, and how full it is there; what shares with it lies elsewhere.

    Args:
        trees: the trees.
        layout: the places in them.
        fits: what fits on their providers.
        shared: what fits on those that share with other trees.
    """
    inside = layout.inside(fits.keys())
    places = Places(layout.masks_of(inside), layout.levels)
    around, alone = layout.around(fits, inside), layout.around(shared, {})
    in_use = layout.trees_in_use(fits.keys(), inside)
    for tree in [tree for tree in trees if tree.root in in_use]:
        if alone:
            tree.lay_out(*_apart(tree, places, around, alone))
        else:
            tree.lay_out(places, around)


def _apart(
    tree: Tree, places: Places, around: Mapping[int, float], alone: Mapping[int, float]
) -> tuple[Places, Mapping[int, float]]:
    """Let providers of other trees lie in no place, and stand for themselves."""
    options = {provider for providers in tree.options for provider in providers}
    strangers = {provider for provider in options if tree.home.get(provider, tree.root) != tree.root}
    own = {provider: places.of[provider] for provider in options - strangers if provider in places.of}
    left = {provider: (alone if provider in strangers else around)[provider] for provider in options}
    return Places(own, places.levels), left
