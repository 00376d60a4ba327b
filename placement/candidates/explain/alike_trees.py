"""Trees that differ only in the ids of their providers: what a search finds in one of them holds for all.

An explanation searches the same trees dozens of times, each time with another condition left out. Which of them are
alike is found out once, by all that any of these searches can see; then one tree of each class is searched.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from placement.candidates.compose.slots import RequestBudget, SlotComposer, useful_room
from placement.candidates.explain.conditions import Condition, ConditionKind, traits_condition
from placement.candidates.explain.masks import HOPELESS, CloudMasks
from placement.cloud.providers import Flags, Ints, numbered, numbered_owners, places_in
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree

UNBOUNDED = (ConditionKind.AMOUNT, ConditionKind.COMBINED_CAPACITY)
"""Without one of these, several slots may take as much from one provider as they like."""

STEPS_OF_A_SEARCH = 40
"""The steps charged per slot of the plan for looking at a tree, besides those of the search."""


class AlikeTrees:
    """The trees of one cloud in classes of equal ones, and single trees as the search wants them.

    ``more_columns`` are further columns of what tells providers apart, by position. ``nested`` tells whether it matters
    how providers are nested; it does for same_subtree.
    """

    def __init__(self, cloud: CloudMasks, *, more_columns: Sequence[Ints | Flags] = (), nested: bool = False) -> None:
        self.cloud = cloud
        self._providers = cloud.providers
        self._more_columns = more_columns
        self._nested = nested or bool(cloud.plan.request.same_subtree)
        portions = [portion for slot in cloud.plan.slots for portion in slot.resources]
        self._contended = [name for name, slots in Counter([name for name, _amount in portions]).items() if slots > 1]
        self._requested = Counter[str]()
        for name, amount in portions:
            self._requested[name] += amount
        serving = cloud.masks.serving
        self._met = [serving.with_any_trait(any_of).astype(np.int64) for any_of in cloud.plan.trait_sets]
        """For each set of traits of the unsuffixed group, who has any of them."""
        self._rooms: dict[tuple[str, ConditionKind | None], Ints] = {}

    @cached_property
    def class_of(self) -> Ints:
        """The number of each tree's class."""
        providers = self._providers
        looks = [self._by_position(at, look) for demand in self.cloud.options for at, look in demand.looks()[:-1]]
        serving = np.flatnonzero(np.logical_or.reduce([column != HOPELESS for column in looks]))
        at = providers.with_ancestors(serving) if self._nested else serving
        is_sharing = self._by_position(self._pools, np.ones(len(self._pools), dtype=np.int64))
        kinds = numbered(
            [column[at] for column in (*looks, *self._room(), *self._more_columns, *self._met, is_sharing)]
        )
        if self._nested:
            kinds, at = self._with_kinds_below(at, kinds)
        trees = numbered_owners(providers.trees[at], kinds, len(providers.roots))
        _pools, of_trees = np.unique(np.packbits(self._shared_with, axis=0), axis=1, return_inverse=True)
        return numbered([trees, of_trees.reshape(-1)] if len(self._pools) else [trees])

    def tree(self, index: int, without: Condition | None) -> Tree:
        """Return a tree with the options of each demand if a condition is left out."""
        providers = self._providers
        first, after = providers.starts[index : index + 2].tolist()
        rows: list[list[int]] = []
        serving: list[Ints] = []
        room: dict[tuple[int, str], float] = {}
        pools = self._pools[self._shared_with[:, index]]
        for demand in self.cloud.options:
            own, shared = demand.options(without)
            own = own[np.searchsorted(own, first) : np.searchsorted(own, after)]
            at = np.union1d(own, np.intersect1d(shared, pools, assume_unique=True)) if len(pools) else own
            ids = providers.ids[at].tolist()
            rows.append(sorted(ids))
            serving.append(at)
            for name in {name for name, _amount in demand.demand.resources}.intersection(self._contended):
                lifted = without.kind if without and without.resource_class == name else None
                amounts = self._room_without(name, lifted)[at].tolist()
                room.update(zip([(id_, name) for id_ in ids], amounts, strict=True))
        parents: Mapping[int, int | None] = {}
        if self.cloud.plan.request.same_subtree:
            trees = np.union1d(providers.trees[pools], np.array([index]))
            parents = providers.parents_of(providers.positions_in(trees))
        return Tree(
            int(providers.roots[index]),
            rows,
            room,
            met=self._met_at(np.unique(np.concatenate(serving)), without) if self._met else {},
            parents=parents,
            root_of=self._roots_of_pools,
            sharing=self._roots_of_pools.keys(),
        )

    def _by_position(self, at: Ints, values: Ints) -> Ints:
        column = np.zeros(len(self._providers.ids), dtype=np.int64)
        column[at] = values
        return column

    def _room_without(self, name: str, lifted: ConditionKind | None) -> Ints:
        """Return how much all slots together may take of a class, by position, if a condition on it is left out.

        More than they ask for makes no difference.
        """
        if (name, lifted) not in self._rooms:
            stock = self.cloud.masks.columns.stock(self.cloud.masks.serving.ids.classes[name])
            room = np.full(len(stock.at), self._requested[name])
            if lifted not in {ConditionKind.CAPACITY, *UNBOUNDED}:
                room = np.minimum(room, np.trunc(stock.capacity - stock.used).astype(np.int64))
            if lifted not in {ConditionKind.MAX_UNIT, *UNBOUNDED}:
                room = np.minimum(room, stock.max_unit)
            self._rooms[name, lifted] = self._by_position(stock.at, room)
        return self._rooms[name, lifted]

    def _room(self) -> Iterator[Ints]:
        """Yield what tells providers apart by the classes that slots compete for."""
        useful = useful_room(replace(self.cloud.plan, contended=tuple(self._contended)))
        for name in self._contended:
            at = self.cloud.masks.with_stock(name)
            for lifted in (ConditionKind.CAPACITY, ConditionKind.MAX_UNIT):
                amounts, number = np.unique(self._room_without(name, lifted)[at], return_inverse=True)
                of_amounts = np.array([useful[name][amount] for amount in amounts.tolist()], dtype=np.int64)
                yield self._by_position(at, np.maximum(-1, of_amounts)[number] + 1)

    def _met_at(self, at: Ints, without: Condition | None) -> dict[int, int]:
        """Return the trait sets that providers meet, as bits, a condition on the unsuffixed group's traits left out."""
        sets = zip(self.cloud.plan.trait_sets, self._met, strict=True)
        kept = [column[at].tolist() for any_of, column in sets if without != traits_condition(any_of)]
        met = [sum(bit << index for index, bit in enumerate(bits)) for bits in zip(*kept, strict=True)]
        return dict(zip(self._providers.ids[at].tolist(), met, strict=True)) if kept else {}

    @cached_property
    def _pools(self) -> Ints:
        """The providers that share with other trees and can serve a demand, perhaps if a condition is left out."""
        looks = [demand.looks()[-1] for demand in self.cloud.options]
        return np.unique(np.concatenate([at[look != HOPELESS] for at, look in looks]))

    @cached_property
    def _shared_with(self) -> Flags:
        """Which pool, by number, shares with which tree."""
        flags = np.zeros((len(self._pools), len(self._providers.roots)), dtype=bool)
        for number, pool in enumerate(self._pools.tolist()):
            flags[number, self.cloud.masks.trees_shared_with[pool]] = True
        return flags

    @cached_property
    def _roots_of_pools(self) -> Mapping[int, int]:
        roots = self._providers.roots[self._providers.trees[self._pools]].tolist()
        return dict(zip(self._providers.ids[self._pools].tolist(), roots, strict=True))

    def _with_kinds_below(self, at: Ints, kinds: Ints) -> tuple[Ints, Ints]:
        """Return the outermost of some providers, by what they and all below them are, in any order of siblings."""
        parents = places_in(at, self._providers.parent_positions[at])
        depths = np.zeros(len(at), dtype=np.int64)
        above = parents
        for _ in range(self._providers.longest_way_up):
            if not (above >= 0).any():
                break
            depths += above >= 0
            above = np.where(above >= 0, parents[above], -1)
        for depth in range(int(depths.max(initial=0)), 0, -1):
            at_depth = np.flatnonzero(depths == depth)
            kinds = numbered([kinds, numbered_owners(parents[at_depth], kinds[at_depth], len(at))])
        return kinds[depths == 0], at[depths == 0]


SearchInTrees = Callable[[Sequence[Tree]], Sequence[bool | None]]
"""Tells of trees whether each has a candidate; None if the steps ran out before that was known."""


class ServingTrees(NamedTuple):
    """The indices of trees that have a candidate, and of those where the steps ran out before that was known."""

    trees: Ints
    undecided: Ints


def slot_search(plan: Plan, budget: RequestBudget) -> SearchInTrees | None:
    """Return the search for candidates of a plan; None if all trees with a provider for each demand have one.

    The budget has the steps of all searches together, and is marked as hit if these ran out.
    """
    composer, steps = SlotComposer(plan, budget), STEPS_OF_A_SEARCH * len(plan.slots)

    def serves(tree: Tree) -> bool | None:
        was_hit, budget.was_hit = budget.was_hit, False
        choice = next(composer.choices(tree), None) if budget.take(steps) else None
        is_cut_off = choice is None and budget.was_hit
        budget.was_hit = was_hit or is_cut_off
        return None if is_cut_off else choice is not None

    return None if plan.is_unconstrained else lambda trees: [*map(serves, trees)]


def serving_trees(
    alike: AlikeTrees, search: SearchInTrees | None, among: Flags, *, without: Condition | None = None
) -> ServingTrees:
    """Find the trees with a candidate among some with a provider for each demand, a condition left out."""
    indices = np.flatnonzero(among)
    if search is None or not len(indices):
        return ServingTrees(indices, indices[:0])
    _classes, first, class_of = np.unique(alike.class_of[indices], return_index=True, return_inverse=True)
    verdicts = search([alike.tree(index, without) for index in indices[first].tolist()])
    serves = np.array([verdict is True for verdict in verdicts])[class_of]
    undecided = np.array([verdict is None for verdict in verdicts])[class_of]
    return ServingTrees(indices[serves], indices[undecided])
