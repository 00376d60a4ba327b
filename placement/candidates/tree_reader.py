"""The trees that can serve a plan, in the cloud as it is or would be, and where their providers lie: all of columns."""

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import pairwise, repeat
from typing import NamedTuple

import numpy as np

from placement.candidates.serving import Serving, Sharing
from placement.cloud.providers import Flags, Floats, Ints, ProviderColumns, joined_ranges
from placement.domain.search_plan import Plan
from placement.domain.tree import Overlay, Places, Position, Tree

BITS = 63
"""How many bits an element of a column has."""


class Layout:
    """The places of some providers of a cloud, given by ascending position, and who is a place of each level."""

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
        max_places = int(nth.max(initial=-1)) + 1
        bit = np.array(1, dtype=np.int64 if number * max_places < BITS else object)
        masks = np.zeros(len(self._at), dtype=bit.dtype)
        for level, anchors in enumerate(self._anchors.T):
            has = anchors >= 0
            shifts = number * nth[np.searchsorted(self._places, anchors[has])] + level
            masks[has] |= bit << shifts.astype(bit.dtype)
        ids = self._providers.ids[self._at[self.is_in_place]].tolist()
        of_outermost = sum([1 << shift for shift in range(0, number * max_places, number or 1)])
        levels = tuple([of_outermost << level for level in range(number)])
        return Places(dict(zip(ids, masks[self.is_in_place].tolist(), strict=True)), levels)

    def around(self, fits: Floats) -> dict[int, float]:
        """Return how much fits around each provider: in its innermost place and inside it, or else on itself."""
        anchors = np.concatenate((self._anchors, self._nearest(self._places)))
        kinds: Ints = np.zeros(len(anchors), dtype=np.int64)
        for column in anchors.T:  # several times as fast as unique rows
            kinds = np.unique(kinds * (len(self._providers.ids) + 1) + column, return_inverse=True)[1]
        rows = anchors[np.unique(kinds, return_index=True)[1]]
        of_providers, of_places = kinds[: len(fits)], kinds[len(fits) :]
        own, sums = np.bincount(of_providers, fits, len(rows)), np.zeros(len(rows))
        for level, places in enumerate(rows.T):
            # Once for each place, and not for an enclosing one whose level an inner one replaces. The row of a place
            # holds nothing itself, and may name a place that no provider lies in.
            counts = (places >= 0) & (own > 0) & (rows[:, :level] != places[:, None]).all(axis=1)
            outer = of_places[np.searchsorted(self._places, places[counts])]
            is_around = ((rows[outer] < 0) | (rows[outer] == rows[counts])).all(axis=1)
            np.add.at(sums, outer[is_around], own[counts][is_around])
        return dict(zip(self._ids, np.where(self.is_in_place, sums[of_providers], fits).tolist(), strict=True))


def _sharing_no_place(
    tree: Tree, places: Places, around: Mapping[int, float], shared: Mapping[int, float]
) -> tuple[Places, Mapping[int, float]]:
    """Put providers of other trees in no place, and count what fits on each of them by itself."""
    options = {provider for providers in tree.options for provider in providers}
    foreign = {provider for provider in options if tree.root_of.get(provider, tree.root) != tree.root}
    own = {provider: places.masks[provider] for provider in options - foreign if provider in places.masks}
    fits = {provider: (shared if provider in foreign else around)[provider] for provider in options}
    return Places(own, places.levels), fits


class TreeServers(NamedTuple):
    """The indices of trees in which every demand has a provider, and the positions of own ones, of more trees."""

    complete: Ints
    own: Sequence[Ints]


class TreeReader:
    """Takes from columns the trees in which every demand of a plan has a provider, with all that composing needs.

    Whatever depends on several providers at once (summed amounts, ties, isolation) is not checked yet. ``class_ids``
    returns the ids of those classes, by name, that exist.
    """

    def __init__(
        self, serving: Serving, class_ids: Callable[[Collection[str]], Mapping[str, int]], *, with_places: bool = False
    ) -> None:
        self.serving = serving
        self.class_ids = class_ids
        self._columns = serving.columns
        self._providers = serving.columns.providers
        self._with_places = with_places
        self._everywhere: TreeServers | None = None
        self._real: TreeReader | None = None

    def under(self, overlay: Overlay) -> "TreeReader":
        """Return what reads the trees as they would be; must not be repeated."""
        if overlay.is_empty:
            return self
        serving = self.serving.under(overlay, self.class_ids(overlay.classes))
        reader = TreeReader(serving, self.class_ids, with_places=self._with_places)
        reader._real = self
        return reader

    @property
    def as_it_is(self) -> "TreeReader":
        """What reads the same trees without an overlay."""
        return self._real or self  # Not an attribute: whatever refers to itself stays in memory for long.

    @property
    def plan(self) -> Plan:
        """The plan to serve."""
        return self.serving.plan

    @property
    def roots(self) -> Ints:
        """The roots of all trees of the cloud, by index."""
        return self._providers.roots

    def tree_indices(self, roots: Collection[int]) -> Ints:
        """Return the indices of those of some trees that exist, ascending."""
        trees = self._providers.tree_indices(sorted(roots))
        return trees[trees >= 0]

    @property
    def changed(self) -> Ints:
        """The indices of the trees in which the overlay changes what is in use."""
        return self.tree_indices({*self._providers.root_of(self.serving.overlay.changes).values()})

    @property
    def root_of(self) -> Mapping[int, int]:
        """The roots of the sharing providers that may serve."""
        return self._sharing.root_of

    @property
    def shares(self) -> bool:
        """Whether trees may be served by sharing providers."""
        return self.serving.is_possible and bool(self.root_of)

    @property
    def shared_demands(self) -> AbstractSet[int]:
        """The demands of the plan that sharing providers may serve."""
        options = self._sharing.options if self.shares else ()
        return {demand for demand, providers in enumerate(options) if providers}

    @cached_property
    def _sharing(self) -> Sharing:
        """The sharing providers that may serve, without those inside places that are held exclusively."""
        sharing, withheld = self.serving.sharing, self.serving.withheld
        if withheld is None or not sharing.trees:
            return sharing
        held = {provider for provider in sharing.root_of if withheld[self._providers.positions([provider])[0]]}
        return sharing._replace(options=[servants - held for servants in sharing.options])

    def sums(self, classes: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the root of each tree that has any of some classes, then its capacity of each, then its usage."""
        ids = self.class_ids(classes)
        return self._columns.sum_rows([ids.get(name) for name in classes], ())

    def sum_columns(self, classes: Collection[str], trees: Ints | None = None) -> tuple[list[Ints], list[Ints]]:
        """Return what trees, given by index, have of some classes, and what they use; None for all trees."""
        ids, number = self.class_ids(classes), len(self.roots) if trees is None else len(trees)
        sums = [self._columns.sums(ids[name]) if name in ids else None for name in classes]
        at, nothing = slice(None) if trees is None else trees, np.zeros(number, dtype=np.int64)
        capacity = [nothing if of_class is None else of_class.capacity[at] for of_class in sums]
        return capacity, [nothing if of_class is None else of_class.used[at] for of_class in sums]

    @property
    def complete(self) -> Ints:
        """The indices of all trees in which every demand has a provider."""
        return self._of_all.complete

    @property
    def _of_all(self) -> TreeServers:
        if self._everywhere is None:
            root = self.serving.only_root if self.serving.is_possible else None
            at = None if root is None else self._providers.positions_of_trees([root])
            self._everywhere = self._serving_trees(at)
        return self._everywhere

    def trees_of(self, roots: Collection[int]) -> list[Tree]:
        """Return those of the trees with these roots that can serve every slot, by root id."""
        trees = self.tree_indices(roots)
        serving = self._everywhere or self._serving_trees(self._providers.positions_in(trees))
        return self.build(np.intersect1d(serving.complete, trees, assume_unique=True), serving.own)

    def read(self, trees: Ints) -> list[Tree]:
        """Return some of the complete trees, given by index, ascending."""
        return self.build(trees, self._of_all.own)

    def all_trees(self) -> list[Tree]:
        """Return all complete trees, by root id."""
        return self.read(self.complete)

    def _serving_trees(self, at: Ints | None) -> TreeServers:
        """Find who can serve among the providers at some positions; None for all."""
        if not self.serving.is_possible:
            return TreeServers(np.zeros(0, dtype=np.int64), ())
        own, withheld = [self.serving.own_providers(demand, at) for demand in self.plan.demands], self.serving.withheld
        if withheld is not None:
            own = [of_demand[~withheld[of_demand]] for of_demand in own]
        complete: Flags = np.ones(len(self.roots), dtype=bool)
        for of_demand, servants in zip(own, self._sharing.options, strict=True):
            has_any = self._shared_with(servants & self._sharing.trees.keys())
            has_any[self._providers.trees[of_demand]] = True
            complete &= has_any
        if complete.any():
            roomy = self.serving.trees_with_room(at)
            complete = complete if roomy is None else complete & roomy
        return TreeServers(np.flatnonzero(complete), own)

    def _shared_with(self, servants: Collection[int]) -> Flags:
        """Return the possible trees that any of some sharing providers shares with."""
        flags, possible = np.zeros(len(self.roots), dtype=bool), self.serving.possible_trees
        for provider in servants:
            flags[self._sharing.trees[provider]] = True
        return flags if possible is None or not servants else flags & possible

    def build(self, complete: Ints, everywhere: Sequence[Ints]) -> list[Tree]:
        """Return trees, given by index, ascending, with their own providers for each demand, given those of more."""
        if not len(complete):
            return []
        starts, ends = self._providers.starts[complete], self._providers.starts[complete + 1]
        own, options = [], []
        for of_demand in everywhere:
            first, after = np.searchsorted(of_demand, starts), np.searchsorted(of_demand, ends)
            serving = of_demand[joined_ranges(first, after)]
            ids, bounds = self._providers.ids[serving].tolist(), np.append(0, np.cumsum(after - first)).tolist()
            own.append(serving)
            options.append([ids[start:end] for start, end in pairwise(bounds)])
        sharing, roots = self._sharing, self.roots[complete].tolist()
        everyone = np.unique(np.concatenate([*own, self._sharing_positions]))
        room, met, parents = self._room(own), self._met(everyone), self._parents(complete)
        trees = [
            Tree(root, [*of_tree], room, met, parents, sharing.root_of, sharing.root_of.keys())
            for root, of_tree in zip(roots, zip(*options, strict=True) if options else repeat(()), strict=bool(options))
        ]
        if sharing.trees:
            self._add_sharing(trees, complete)
        if self._with_places:
            self._lay_out(trees, own)
        return trees

    def _add_sharing(self, trees: Sequence[Tree], complete: Ints) -> None:
        """Add each sharing provider to the trees it shares with, even those without a fitting provider of their own."""
        sharing = self._sharing
        place_of = {index: place for place, index in enumerate(complete.tolist())}
        for provider, shared_with in sharing.trees.items():
            served = [demand for demand, servants in enumerate(sharing.options) if provider in servants]
            for index in shared_with.tolist():
                if index in place_of:
                    for demand in served:
                        options = trees[place_of[index]].options[demand]
                        # Within its own tree it may have been found already.
                        if provider not in options:
                            options.append(provider)
                            options.sort()

    @cached_property
    def _sharing_positions(self) -> Ints:
        return self._providers.positions(sorted(self.root_of))

    def _room(self, own: Sequence[Ints]) -> dict[tuple[int, str], float]:
        """Return the room of serving providers, sharing ones included, in the contended classes."""
        room: dict[tuple[int, str], float] = {}
        for demand, of_demand, servants in zip(self.plan.demands, own, self._sharing.options, strict=True):
            at = np.concatenate((of_demand, self._providers.positions(sorted(servants))))
            for name in {name for name, _amount in demand.resources}.intersection(self.plan.contended):
                cells = zip(self._providers.ids[at].tolist(), repeat(name), strict=False)
                room.update(zip(cells, self.serving.room(name, at).tolist(), strict=True))
        return room

    def _met(self, at: Ints) -> dict[int, int]:
        """Return the plan's trait sets that providers meet, as bits."""
        if not self.plan.trait_sets:
            return {}
        width = np.int64 if len(self.plan.trait_sets) < BITS else object
        bits = np.zeros(len(at), dtype=width)
        for index, any_of in enumerate(self.plan.trait_sets):
            bits |= self.serving.with_any_trait(any_of)[at].astype(width) << index
        return dict(zip(self._providers.ids[at].tolist(), bits.tolist(), strict=True))

    def _parents(self, complete: Ints) -> dict[int, int | None]:
        """Return how the providers of trees are nested, if that matters; those of sharing providers' trees as well."""
        if not self.plan.request.same_subtree:
            return {}
        if self.root_of:
            complete = np.union1d(complete, self._providers.tree_indices(sorted({*self.root_of.values()})))
        return self._providers.parents_of(self._providers.positions_in(complete))

    def _lay_out(self, trees: Sequence[Tree], own: Sequence[Ints]) -> None:
        """Tell trees where their providers lie, and how full it is there. O(providers that can serve something)."""
        at = np.unique(np.concatenate([*own]))
        layout = Layout(self._providers, at, self.serving.places_of(self.serving.ids.levels))
        if not layout.is_in_place.any():
            return
        places, around = layout.places, layout.around(self.serving.fit_counts(own)[at])
        in_use = {*self.roots[self._providers.trees[at[layout.is_in_place]]].tolist()}
        of_shared = self._sharing_positions
        servants = [self._providers.positions(sorted(of_demand)) for of_demand in self._sharing.options]
        fits = self.serving.fit_counts(servants)[of_shared].tolist()
        shared = dict(zip(self._providers.ids[of_shared].tolist(), fits, strict=True))
        for tree in [tree for tree in trees if tree.root in in_use]:
            tree.lay_out(*(_sharing_no_place(tree, places, around, shared) if shared else (places, around)))
