"""The trees of a cloud that can serve a plan, taken from its columns: the Reader of ``candidates.reading``."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import repeat

import numpy as np

from placement.candidates.serving import Serving
from placement.cloud.providers import Flags, Floats, Ints
from placement.domain.search_limits import LIMITS, SearchLimits
from placement.domain.search_plan import Plan
from placement.domain.tree import PlaceFacts, Tree, TreesRead

SumRow = tuple[int, ...]
"""The root of a tree, then its capacity of each class, then its usage of each class."""

BITS = 63
"""How many bits an element of a column has."""


class TreeReader:
    """Takes trees from columns.

    Args:
        serving: finds who can serve the plan.
        class_ids: returns the ids of classes by name, of those that exist.
        with_places: whether trees come with the facts about their places.
        limits: the sizes of the portions.
    """

    def __init__(
        self,
        serving: Serving,
        class_ids: Callable[[Collection[str]], Mapping[str, int]],
        *,
        with_places: bool = False,
        limits: SearchLimits = LIMITS,
    ) -> None:
        self.serving = serving
        self._class_ids = class_ids
        self._columns = serving.columns
        self._providers = serving.columns.providers
        self._with_places = with_places
        self._limits = limits
        self._was_in_vain = False

    @property
    def plan(self) -> Plan:
        """The plan to serve."""
        return self.serving.plan

    @property
    def is_possible(self) -> bool:
        """Whether the request's names leave any hope."""
        return self.serving.is_possible

    @property
    def only_root(self) -> int | None:
        """The root of the single tree that in_tree leaves, if it does."""
        return self.serving.only_root

    @property
    def root_of(self) -> Mapping[int, int]:
        """The roots of the sharing providers that may serve."""
        return self.serving.sharing.root_of

    @property
    def shares(self) -> bool:
        """Whether trees may be served by sharing providers."""
        return self.is_possible and bool(self.root_of)

    @property
    def shared_demands(self) -> AbstractSet[int]:
        """The demands of the plan that sharing providers may serve."""
        options = self.serving.sharing.options if self.shares else ()
        return {demand for demand, providers in enumerate(options) if providers}

    @property
    def most_listed(self) -> int:
        """The most trees that can be read by a list of their roots."""
        return len(self._providers.roots) + 1

    def sums(
        self, classes: Sequence[str], found_by: Sequence[str], roots: Collection[int] | None = None
    ) -> list[SumRow]:
        """Return the sums of ``classes`` for trees that have any of these or of ``found_by``."""
        ids = self._class_ids({*classes, *found_by})
        return self._columns.sum_rows([ids.get(name) for name in classes], [ids[name] for name in found_by], roots)

    def chunks(self, wanted: int | None) -> Iterator[tuple[TreesRead, int]]:
        """Yield the trees in portions, by root id, each with the highest root id that it covers.

        Args:
            wanted: how many candidates are wanted; None reads all trees at once.
        """
        if not self.is_possible:
            return
        highest = self.serving.ids.highest_root
        if (root := self.only_root) is not None:
            yield self.trees_of([root]), root
            return
        trees = self._complete_trees
        size = max(1, len(trees) if wanted is None else wanted)
        for start in range(0, max(1, len(trees)), size):
            some = trees[start : start + size]
            is_last = start + size >= len(trees)
            yield self._read(some), highest if is_last else int(self._providers.roots[some[-1]])

    def with_room(self, roots: Iterable[int]) -> list[int] | None:
        """Return those of some trees that can serve every demand; None before any trees were read in vain."""
        if not self._was_in_vain:
            return None
        complete = {*self._providers.roots[self._complete_trees].tolist()}
        return [root for root in roots if root in complete]

    def trees_of(self, roots: Sequence[int]) -> TreesRead:
        """Return those of the trees with these roots that can serve every slot, by root id."""
        trees = self._providers.tree_indices(sorted(roots))
        return self._read(trees[trees >= 0])

    def all_trees(self) -> TreesRead:
        """Return all trees that can serve every slot, by root id."""
        return self._read(None)

    @cached_property
    def _complete_trees(self) -> Ints:
        """The indices of all trees in which every demand has a provider."""
        return self._complete(None, self._own(None))

    def _own(self, at: Ints | None) -> list[Ints]:
        """Return the trees' own providers for each demand, among those at some positions; None for all."""
        return [self.serving.own_providers(demand, at) for demand in self.plan.demands]

    def _complete(self, at: Ints | None, own: Sequence[Ints]) -> Ints:
        """Return the indices of the trees in which every demand has a provider, its own or one that shares."""
        complete: Flags = np.ones(len(self._providers.roots), dtype=bool)
        for demand, of_demand in enumerate(own):
            has_any = self._shared_trees[demand].copy()
            has_any[self._providers.trees[of_demand]] = True
            complete &= has_any
        if complete.any():
            roomy = self.serving.trees_with_room(at)
            complete = complete if roomy is None else complete & roomy
        return np.flatnonzero(complete)

    @cached_property
    def _shared_trees(self) -> list[Flags]:
        """For each demand, the trees that others can serve it for."""
        sharing, possible = self.serving.sharing, self.serving.possible_trees
        found = []
        for servants in sharing.options:
            flags = np.zeros(len(self._providers.roots), dtype=bool)
            for provider in servants & sharing.trees.keys():
                flags[sharing.trees[provider]] = True
            found.append(flags if possible is None else flags & possible)
        return found

    def _read(self, trees: Ints | None) -> TreesRead:
        """Return what can serve of some trees, given by index; None for all."""
        at = None if trees is None else self._providers.positions_in(trees)
        own = self._own(at)
        complete = self._complete(at, own)
        if trees is not None:
            complete = np.intersect1d(complete, trees, assume_unique=True)
        if not len(complete):
            self._was_in_vain = True
            return TreesRead([])
        is_complete = np.zeros(len(self._providers.roots), dtype=bool)
        is_complete[complete] = True
        own = [of_one[is_complete[self._providers.trees[of_one]]] for of_one in own]
        return self._trees(complete, own)

    def _trees(self, complete: Ints, own: Sequence[Ints]) -> TreesRead:
        sharing, roots = self.serving.sharing, self._providers.roots[complete].tolist()
        everyone = np.unique(np.concatenate([*own, self._sharing_positions]))
        room, met, parents = self._room(own), self._met(everyone), self._parents(complete)
        options = [*zip(*[self._options(of_demand, complete) for of_demand in own], strict=True)]
        trees = [
            Tree(root, [*of_tree], room, met, parents, sharing.root_of, sharing.root_of.keys())
            for root, of_tree in zip(roots, options or repeat(()), strict=bool(options))
        ]
        if sharing.trees:
            self._add_sharing(trees, complete)
        return TreesRead(trees, self._place_facts(complete, own, parents))

    def _options(self, own: Ints, complete: Ints) -> list[list[int]]:
        """Return the providers of one demand, tree by tree."""
        trees, ids = self._providers.trees[own], self._providers.ids[own].tolist()
        first, after = (np.searchsorted(trees, complete, side).tolist() for side in ("left", "right"))
        return [ids[start:end] for start, end in zip(first, after, strict=True)]

    def _add_sharing(self, trees: Sequence[Tree], complete: Ints) -> None:
        """Add each sharing provider to the trees it shares with, even those without a fitting provider of their own."""
        sharing = self.serving.sharing
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
        for demand, of_demand, servants in zip(self.plan.demands, own, self.serving.sharing.options, strict=True):
            at = np.concatenate((of_demand, self._providers.positions(sorted(servants))))
            for name in {name for name, _amount in demand.resources}.intersection(self.plan.contended):
                ids = self._providers.ids[at].tolist()
                room.update(
                    zip(zip(ids, repeat(name), strict=False), self.serving.room(name, at).tolist(), strict=True)
                )
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
        if self.plan.request.same_subtree and self.root_of:
            shared = self._providers.tree_indices(sorted({*self.root_of.values()}))
            complete = np.union1d(complete, shared)
        elif not (self.plan.request.same_subtree or self._with_places):
            return {}
        return self._providers.parents_of(self._providers.positions_in(complete))

    def _place_facts(self, complete: Ints, own: Sequence[Ints], parents: Mapping[int, int | None]) -> PlaceFacts | None:
        """Return where providers lie, and how full it is there; None if no tree has any place."""
        levels = self.serving.ids.levels if self._with_places else ()
        anchors = self.serving.anchors(levels, self._providers.positions_in(complete))
        if not anchors.level_bits:
            return None
        shared = [self._providers.positions(sorted(servants)) for servants in self.serving.sharing.options]
        return PlaceFacts(parents, *anchors, len(levels), self._fit_counts(own), self._fit_counts(shared))

    def _fit_counts(self, serving: Sequence[Ints]) -> dict[int, float]:
        """Return how often the demands that each provider can serve fit there, added up."""
        counts: Floats = np.zeros(len(self._providers.ids))
        for demand, at in zip(self.plan.demands, serving, strict=True):
            counts[at] += self.serving.fit_counts(demand, at)
        everyone = np.unique(np.concatenate([*serving])) if serving else np.zeros(0, dtype=np.int64)
        return dict(zip(self._providers.ids[everyone].tolist(), counts[everyone].tolist(), strict=True))
