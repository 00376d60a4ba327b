"""Lays out trees that were read together: which places their providers lie in, and how full these are."""

from collections.abc import Mapping

from placement.domain.places import Layout, Places
from placement.domain.tree import PlaceFacts, Tree, TreesRead


def laid_out(read: TreesRead) -> list[Tree]:
    """Return the trees, each laid out: where its own providers lie, and how full it is there.

    Providers that share with a tree lie elsewhere. O(providers that can serve something), for all trees at once.
    """
    if read.places is not None:
        _lay_out(read.trees, read.places)
    return read.trees


def _lay_out(trees: list[Tree], facts: PlaceFacts) -> None:
    layout = Layout(facts.parents, facts.level_bits, facts.root_of, levels=facts.levels)
    fits = facts.fit_counts
    inside = layout.inside(fits.keys())
    places = Places(layout.masks_of(inside), layout.levels)
    around, alone = layout.around(fits, inside), layout.around(facts.shared_fit_counts, {})
    in_use = layout.trees_in_use(fits.keys(), inside)
    for tree in [tree for tree in trees if tree.root in in_use]:
        if alone:
            tree.lay_out(*_apart(tree, places, around, alone))
        else:
            tree.lay_out(places, around)


def _apart(
    tree: Tree, places: Places, around: Mapping[int, float], alone: Mapping[int, float]
) -> tuple[Places, Mapping[int, float]]:
    """Put providers of other trees in no place, and count what fits on each of them by itself."""
    options = {provider for providers in tree.options for provider in providers}
    foreign = {provider for provider in options if tree.root_of.get(provider, tree.root) != tree.root}
    own = {provider: places.of[provider] for provider in options - foreign if provider in places.of}
    left = {provider: (alone if provider in foreign else around)[provider] for provider in options}
    return Places(own, places.levels), left
