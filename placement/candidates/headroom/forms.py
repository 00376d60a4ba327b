"""The trees of a cloud by form: how they are built, and whatever else of them requests name, but not what is in use.

A cloud has thousands of hosts of a few models. What a request can do in a tree depends on its form; how often, on what
is free: a number for each provider and class. So all trees of a form are counted at once, in columns.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from placement.candidates.serving import ProviderSets, trees_shared_with
from placement.cloud.columns import CloudColumns
from placement.cloud.providers import Flags, Ints, ProviderColumns, distinct_rows, numbered, numbered_owners
from placement.domain.search_plan import NamedIds
from placement.domain.tree import upwards

Cell = tuple[int, int]
"""A provider, by its place in the form, and a class, by id. The places of pools are below 0."""

ClassAmounts = tuple[tuple[int, int], ...]
"""(class id, amount)."""

ENDLESS = 2**50
"""The number of copies of something that takes nothing; columns have room for sums of it."""


class SharedPool(NamedTuple):
    """A provider that shares with other trees: its position, its root, by class the most at once and what is free."""

    position: int
    root: int
    max_units: Mapping[int, int]
    free: Mapping[int, int]


class PoolOfTree(NamedTuple):
    """A pool as a tree has it: its place if it belongs to the tree, else -1; its number, below 0; and its root."""

    place: int
    number: int
    root: int


@dataclass(frozen=True)
class TreeForm:
    """How a tree is built. Its providers have places, in the order of their ids; the parent of its root is -1.

    ``max_units`` has by provider and class how much may be taken at once; ``pools`` share with it and other trees.
    """

    parents: tuple[int, ...]
    max_units: Mapping[Cell, int]
    pools: tuple[PoolOfTree, ...] = ()

    @cached_property
    def own_pools(self) -> Mapping[int, int]:
        """The numbers of the tree's own pools, by place."""
        return {pool.place: pool.number for pool in self.pools if pool.place >= 0}

    @cached_property
    def parents_by_place(self) -> Mapping[int, int | None]:
        """The parent of each provider of the tree, with its own pools under their numbers."""
        number = self.own_pools
        return {
            number.get(place, place): number.get(above, above) if above >= 0 else None
            for place, above in enumerate(self.parents)
        }

    def above(self, place: int) -> list[int]:
        """Return a provider and its ancestors; in other trees, where these are unknown, all pools of its tree."""
        if place in self.parents_by_place:
            return list(upwards(place, self.parents_by_place))
        root_of = {pool.number: pool.root for pool in self.pools}
        return [pool for pool in root_of if root_of[pool] == root_of[place]]


@dataclass(frozen=True, slots=True)
class OpenSlot:
    """A slot, by its number in the plan, with who may serve it in a form; those of one ``isolation`` must not meet."""

    number: int
    suffix: str
    amounts: ClassAmounts
    places: tuple[int, ...]
    isolation: str | None

    def competes(self, other: "OpenSlot") -> bool:
        """Tell whether what one slot takes may leave too little for the other."""
        if set(self.places).isdisjoint(other.places):
            return False
        is_apart = self.isolation is not None and self.isolation == other.isolation
        return is_apart or bool(dict(self.amounts).keys() & dict(other.amounts).keys())

    def copies(self, trees: "TreesOfForm") -> Ints:
        """Return how many copies fit if it competes with no other slot: each provider serves as many as it has room."""
        return trees.summed([trees.room(place, self.amounts) for place in self.places])


@dataclass(frozen=True, eq=False)
class TreesOfForm:
    """All trees of one form, given by its number: their indices, ascending, their roots, and their first positions.

    ``free`` is what is free by class and position, ``capacity`` what would be if nothing were in use.
    """

    number: int
    form: TreeForm
    trees: Ints
    roots: Ints
    starts: Ints
    free: Mapping[int, Ints]
    capacity: Mapping[int, Ints]
    pools: Mapping[int, SharedPool]
    _cells: dict[Cell, Ints] = field(default_factory=dict, init=False)

    def has(self, class_id: int) -> bool:
        """Tell whether any provider of these trees has a class."""
        return any(of_cell == class_id for _place, of_cell in self.form.max_units)

    def cell(self, cell: Cell) -> Ints:
        """Return what is free of a class on a provider of each tree, or in a pool, once for all trees."""
        if cell not in self._cells:
            place, class_id = cell
            if place < 0:
                self._cells[cell] = np.full(len(self.starts), self.pools[place].free[class_id])
            else:
                self._cells[cell] = self.free[class_id][self.starts + place]
        return self._cells[cell]

    def room(self, place: int, amounts: ClassAmounts) -> Ints:
        """Return how many times some amounts fit on a provider."""
        if not amounts:
            return np.full(len(self.starts), ENDLESS)
        rooms = [self.cell((place, class_id)) // amount for class_id, amount in amounts]
        return rooms[0] if len(rooms) == 1 else np.minimum.reduce(rooms)

    def summed(self, columns: Sequence[Ints]) -> Ints:
        """Add up columns of these trees."""
        if len(columns) == 1:
            return columns[0]
        return np.add.reduce(columns) if columns else np.zeros(len(self.starts), dtype=np.int64)

    def chosen(self, chosen: Flags | Ints) -> "TreesOfForm":
        """Return some of these trees."""
        return replace(self, trees=self.trees[chosen], roots=self.roots[chosen], starts=self.starts[chosen])

    @cached_property
    def models(self) -> "tuple[list[int], TreesOfForm]":
        """The trees by what they have in all of each class: how many of each model, and the first, emptied."""
        # Trees that do not exist have ids below 0; real ones take precedence.
        order = np.roll(np.arange(len(self.roots)), -int(np.searchsorted(self.roots, 0)))
        emptied = replace(self, free=self.capacity)
        amounts = [emptied.cell(cell)[order] for cell in sorted(self.form.max_units)]
        _rows, numbers, first = distinct_rows([np.zeros(len(order), dtype=np.int64), *amounts])
        return np.bincount(numbers).tolist(), emptied.chosen(order[first])


@dataclass(eq=False)
class CloudInForms:
    """A cloud in the forms of its trees; ``ids`` are those of all names in the requests.

    ``like`` maps the root of each tree that does not exist to the root of the tree that it is modelled on.
    """

    columns: CloudColumns
    sets: ProviderSets
    ids: NamedIds
    like: Mapping[int, int]

    @property
    def _providers(self) -> ProviderColumns:
        return self.columns.providers

    @cached_property
    def capacity(self) -> Mapping[int, Ints]:
        """By class, what each provider has if nothing is in use, by position."""
        capacity = {}
        for class_id in self.ids.classes.values():
            stock = self.columns.stock(class_id)
            whole = np.maximum(0, np.trunc(stock.capacity).astype(np.int64))
            capacity[class_id] = self._column(stock.at, whole, otherwise=0)
        return capacity

    @cached_property
    def free(self) -> Mapping[int, Ints]:
        """By class, what is free, by position."""
        at = np.arange(len(self._providers.ids))
        return {class_id: np.maximum(0, self.columns.left(class_id, at)) for class_id in self.ids.classes.values()}

    @cached_property
    def free_in_trees(self) -> Mapping[int, Ints]:
        """By class, what is free in each tree."""
        starts, free = self._providers.starts[:-1], self.free.items()
        return {class_id: np.add.reduceat(column, starts) if len(starts) else column for class_id, column in free}

    @cached_property
    def pools(self) -> Mapping[int, SharedPool]:
        """By number the providers that share with trees other than their own."""
        return {-number: pool for number, (pool, _trees) in enumerate(self._sharing, start=1)}

    @cached_property
    def forms(self) -> Sequence[TreesOfForm]:
        """The trees by form, in the order of their first trees."""
        numbers = self._numbers(self._kinds)
        _numbers, first, counts = np.unique(numbers, return_index=True, return_counts=True)
        members = np.split(np.argsort(numbers, kind="stable"), np.cumsum(counts)[:-1])
        forms = []
        for number, which in enumerate(np.argsort(first).tolist()):
            trees = members[which]
            starts = self._providers.starts[trees]
            start, end = self._providers.starts[trees[0] : trees[0] + 2].tolist()
            parents, pools = tuple(self._local_parents[start:end].tolist()), self._pools_of_trees.get(int(trees[0]), ())
            form = TreeForm(parents, dict(self._units(start, end)), pools)
            roots = self._providers.roots[trees]
            forms.append(TreesOfForm(number, form, trees, roots, starts, self.free, self.capacity, self.pools))
        return forms

    def kinds(self, trait_ids: Collection[int]) -> Ints:
        """Return the kind of each tree, by index: built, used, and with further traits in the same way."""
        self.sets.read(traits=trait_ids)
        traits, stocks = map(self.sets.with_trait, trait_ids), self.columns.stock_columns(self.columns.class_ids)
        return self._numbers(numbered([self._kinds, *traits, *stocks]))

    def _numbers(self, kinds: Ints) -> Ints:
        return numbered_owners(self._providers.trees, kinds, len(self._providers.roots), in_order=True)

    def _column(self, at: Ints, amounts: Ints, *, otherwise: int = -1) -> Ints:
        column = np.full(len(self._providers.ids), otherwise)
        column[at] = amounts
        return column

    @cached_property
    def _kinds(self) -> Ints:
        """For each provider, a number for all that tells forms apart."""
        providers = self._providers
        columns: list[Ints | Flags] = [self._local_parents]
        for class_id in sorted(self.ids.classes.values()):
            stock = self.columns.stock(class_id)
            columns += [self._column(stock.at, units) for units in (stock.min_unit, stock.max_unit, stock.step_size)]
        columns += [self.sets.with_trait(id_) for id_ in sorted(self.ids.traits.values())]
        columns += [self.sets.in_aggregate(id_) for id_ in sorted(self.ids.aggregates.values())]
        named_trees = providers.tree_indices(sorted({*self.ids.roots.values()})).tolist()
        columns += [providers.trees == index for index in named_trees]
        if self._pools_of_trees:
            codes, code_of_pools = np.zeros(len(providers.roots), dtype=np.int64), dict[tuple[PoolOfTree, ...], int]()
            for tree, pools in self._pools_of_trees.items():
                codes[tree] = code_of_pools.setdefault(pools, len(code_of_pools) + 1)
            columns.append(codes[providers.trees])
        return numbered(columns)

    @cached_property
    def _local_parents(self) -> Ints:
        parents = self._providers.parent_positions
        return np.where(parents >= 0, parents - self._providers.starts[self._providers.trees], -1)

    def _units(self, start: int, end: int) -> Iterator[tuple[Cell, int]]:
        """Yield for some providers, by place, the most that may be taken of each class at once."""
        for class_id in self.ids.classes.values():
            stock = self.columns.stock(class_id)
            rows = slice(*np.searchsorted(stock.at, (start, end)))
            for place, max_unit in zip((stock.at[rows] - start).tolist(), stock.max_unit[rows].tolist(), strict=True):
                yield (place, class_id), max_unit

    @cached_property
    def _sharing(self) -> list[tuple[SharedPool, Ints]]:
        """The pools, each with the indices of the trees that it shares with."""
        if not self.ids.shares:
            return []
        providers, sharing = self._providers, []
        ids = sorted(providers.ids[self.sets.with_trait(self.ids.sharing_trait)].tolist())
        shared_with = trees_shared_with(self.columns, self.sets, ids)
        for provider, position in zip(ids, providers.positions(ids).tolist(), strict=True):
            trees, own = shared_with.get(provider), providers.trees[position]
            if trees is not None and len(trees[trees != own]):
                max_units = {class_id: max_unit for (_place, class_id), max_unit in self._units(position, position + 1)}
                free = {class_id: int(self.free[class_id][position]) for class_id in max_units}
                sharing.append((SharedPool(position, int(providers.roots[own]), max_units, free), trees))
        return sharing

    @cached_property
    def _pools_of_trees(self) -> Mapping[int, tuple[PoolOfTree, ...]]:
        """By index of a tree, the pools that share with it."""
        pools = defaultdict[int, tuple[PoolOfTree, ...]](tuple)
        for number, (pool, trees) in enumerate(self._sharing, start=1):
            own = int(self._providers.trees[pool.position])
            for tree in trees.tolist():
                place = pool.position - int(self._providers.starts[own]) if tree == own else -1
                pools[tree] += (PoolOfTree(place, -number, pool.root),)
        return pools
