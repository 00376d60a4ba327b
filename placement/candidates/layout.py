"""Where the providers of trees lie: at each level in the nearest place at or above them, and how full it is there."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from placement.cloud.providers import Flags, Floats, Ints, ProviderColumns
from placement.domain.places import Places, Position
from placement.domain.tree import Tree

BITS = 63
"""How many bits an element of a column has."""


class Layout:
    """The places of some providers.

    Args:
        providers: all providers of their cloud.
        at: the positions of these, ascending.
        levels: for each level, outermost first, which providers are its places; None for nobody.
    """

    def __init__(self, providers: ProviderColumns, at: Ints, levels: Sequence[Flags | None]) -> None:
        self._providers = providers
        self._at = at
        self._levels = levels
        self._ids: list[int] = providers.ids[at].tolist()
        self._anchors = self._nearest(at)
        """By provider and level, the position of its place; -1 for none."""
        self.is_in_place: Flags = np.logical_or.reduce(self._anchors >= 0, axis=1)

    def _nearest(self, at: Ints) -> Ints:
        anchors: Ints = np.full((len(at), len(self._levels)), -1)
        for level, is_place in enumerate(self._levels):
            if is_place is not None:
                anchors[:, level] = self._providers.nearest(at, is_place)
        return anchors

    @property
    def roots_in_use(self) -> set[int]:
        """The roots of the trees in which any of the providers lies in a place."""
        return {*self._providers.roots[self._providers.trees[self._at[self.is_in_place]]].tolist()}

    @property
    def positions(self) -> dict[int, Position]:
        """Provider -> its position."""
        ids = np.where(self._anchors >= 0, self._providers.ids[self._anchors], 0).astype(object)
        ids[self._anchors < 0] = None
        return dict(zip(self._ids, map(tuple, ids.tolist()), strict=True))

    @cached_property
    def _places(self) -> Ints:
        """The positions of all places that the providers lie in."""
        return np.unique(self._anchors[self._anchors >= 0])

    @property
    def places(self) -> Places:
        """The masks of the places of those providers that lie in any. The n-th place of a tree has the n-th bits."""
        trees, number = self._providers.trees[self._places], len(self._levels)
        nth = np.arange(len(trees)) - np.searchsorted(trees, trees)
        most = int(nth.max(initial=-1)) + 1
        one = np.array(1, dtype=np.int64 if number * most < BITS else object)
        masks = np.zeros(len(self._at), dtype=one.dtype)
        for level, anchors in enumerate(self._anchors.T):
            has = anchors >= 0
            shifts = number * nth[np.searchsorted(self._places, anchors[has])] + level
            masks[has] |= one << shifts.astype(one.dtype)
        ids = self._providers.ids[self._at[self.is_in_place]].tolist()
        of_outermost = sum([1 << shift for shift in range(0, number * most, number or 1)])
        levels = tuple([of_outermost << level for level in range(number)])
        return Places(dict(zip(ids, masks[self.is_in_place].tolist(), strict=True)), levels)

    def around(self, fits: Floats) -> dict[int, float]:
        """Return how much fits around each provider: in its innermost place and inside it, or else on itself.

        Args:
            fits: how much fits on each.
        """
        anchors = np.concatenate((self._anchors, self._nearest(self._places)))
        kinds: Ints = np.zeros(len(anchors), dtype=np.int64)
        for column in anchors.T:  # several times as fast as unique rows
            kinds = np.unique(kinds * (len(self._providers.ids) + 1) + column, return_inverse=True)[1]
        rows = anchors[np.unique(kinds, return_index=True)[1]]
        of_providers, of_places = kinds[: len(fits)], kinds[len(fits) :]
        own, sums = np.bincount(of_providers, fits, len(rows)), np.zeros(len(rows))
        for level, places in enumerate(rows.T):
            # Once for each place, and not for an enclosing one whose level an inner one replaces.
            counts = (places >= 0) & (rows[:, :level] != places[:, None]).all(axis=1)
            outer = of_places[np.searchsorted(self._places, places[counts])]
            is_around = ((rows[outer] < 0) | (rows[outer] == rows[counts])).all(axis=1)
            np.add.at(sums, outer[is_around], own[counts][is_around])
        return dict(zip(self._ids, np.where(self.is_in_place, sums[of_providers], fits).tolist(), strict=True))


def lay_out(trees: Iterable[Tree], layout: Layout, fits: Floats, shared: Mapping[int, float]) -> None:
    """Tell trees where their own providers lie, and how full it is there. O(providers that can serve something).

    Args:
        trees: the trees.
        layout: the places of all their own providers that can serve.
        fits: how many times the demands on each of these fit there: the sum over all demands that it can serve.
        shared: the same for providers that share with other trees, where they lie in no place.
    """
    places, around, in_use = layout.places, layout.around(fits), layout.roots_in_use
    for tree in [tree for tree in trees if tree.root in in_use]:
        if shared:
            tree.lay_out(*_beside_others(tree, places, around, shared))
        else:
            tree.lay_out(places, around)


def _beside_others(
    tree: Tree, places: Places, around: Mapping[int, float], shared: Mapping[int, float]
) -> tuple[Places, Mapping[int, float]]:
    """Put providers of other trees in no place, and count what fits on each of them by itself."""
    options = {provider for providers in tree.options for provider in providers}
    foreign = {provider for provider in options if tree.root_of.get(provider, tree.root) != tree.root}
    own = {provider: places.of[provider] for provider in options - foreign if provider in places.of}
    return Places(own, places.levels), {
        provider: (shared if provider in foreign else around)[provider] for provider in options
    }
