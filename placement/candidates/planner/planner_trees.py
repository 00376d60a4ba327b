"""The trees of a cloud as the planner sees them, built from its columns: in detail, or only as outlines.

A cloud has thousands of providers, but few different stocks and sets of traits. Those that are equal are one object,
which saves building it again, and lets canonical forms compare fast.
"""

from collections import ChainMap, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from heapq import heappop, heappush
from itertools import count, islice, repeat
from typing import NamedTuple, TypeVar

import numpy as np

from placement.candidates.compose.free_places import PlacesInUse, WantedFree
from placement.candidates.frontier import Key, Keyed
from placement.candidates.serving import Serving
from placement.cloud.columns import CloudColumns
from placement.cloud.providers import Flags, Ints, places_in
from placement.domain.places import Layout, Parents, Places, Position, with_all_above
from placement.domain.search_plan import Plan
from placement.domain.tree import NO_STOCKS, NamedMember, PlannerTree, ProviderStocks, Stock, Tree

MAX_BATCH = 64
"""The most trees built together: few enough to waste little."""

Value = TypeVar("Value")

ProviderNames = Mapping[int, tuple[str, str | None]]
"""Provider -> its uuid and its name, if it has one."""

NamesIn = Callable[[Collection[int]], Mapping[int, ProviderNames]]
"""Returns the names in the trees with some roots, by root."""


class Deciding(NamedTuple):
    """What decides about a tree.

    Args:
        levels: the ids of the traits of levels, outermost first; None for one that does not exist.
        classes: the names of resource classes, by id.
        traits: the names of traits, by id, including those of levels.
    """

    levels: Sequence[int | None]
    classes: Mapping[int, str]
    traits: Mapping[int, str]


class TreeUse:
    """Tells how the providers of trees are nested, and which are in use.

    Args:
        serving: the columns, and who has which trait.
    """

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._providers = serving.columns.providers

    def parents_in(self, roots: Collection[int]) -> Parents:
        """Return the parents of all providers of some trees."""
        return self._providers.parents_of(self._providers.positions_of_trees(roots))

    def in_use(self, roots: Collection[int]) -> AbstractSet[int]:
        """Return the providers of some trees on which, or below which, anything is in use."""
        at = self._providers.positions_of_trees(roots)
        used = self._providers.with_ancestors(at[self.is_in_use[at]])
        return {*self._providers.ids[used].tolist()}

    def places_in_use(self, roots: Collection[int], levels: Sequence[int | None]) -> PlacesInUse:
        """Return which places of levels are in use in some trees."""
        bits = self._serving.anchors(levels, self._providers.positions_of_trees(roots)).level_bits.items()
        anchors = [{anchor for anchor, of in bits if of >> level & 1} for level in range(len(levels))]
        return PlacesInUse(self.parents_in(roots), anchors, self.in_use(roots))

    def without_free(
        self, wanted: Sequence[WantedFree], trees: Sequence[Tree], levels: Sequence[int | None]
    ) -> set[int]:
        """Return the roots of the trees that provably have no free place for an exclusive group."""
        if not trees or not wanted:
            return set()
        needed = {level for group in wanted for level in group.levels}
        levels = [trait if level in needed else None for level, trait in enumerate(levels)]
        places = self.places_in_use({tree.root for tree in trees}, levels)
        return {tree.root for tree in trees if places.are_lacking(wanted, tree)}

    @cached_property
    def is_in_use(self) -> Flags:
        """Which providers have anything in use, by position."""
        columns = self._serving.columns
        used = np.zeros(len(self._providers.ids), dtype=bool)
        for stock in map(columns.stock, columns.class_ids):
            used[stock.at[stock.used > 0]] = True
        return used


class StocksByProvider:
    """The stocks of providers, one object for all that are equal.

    Args:
        columns: what providers have.
        classes: the names of the classes to look at, by id.
    """

    def __init__(self, columns: CloudColumns, classes: Mapping[int, str]) -> None:
        self._columns = columns
        self._classes = classes
        self._equal: dict[object, ProviderStocks] = {}

    def at(self, positions: Ints) -> dict[int, ProviderStocks]:
        """Return the stocks of those providers at some positions that have any."""
        rows: dict[int, list[tuple[int, ...]]] = defaultdict(list)
        for class_id in sorted(self._classes):
            stock = self._columns.stock(class_id)
            of_class = places_in(stock.at, positions)
            of_class = of_class[of_class >= 0]
            amounts = [stock.capacity[of_class].astype(np.int64), *[column[of_class] for column in stock[2:]]]
            ids = self._columns.providers.ids[stock.at[of_class]].tolist()
            lists = [column.tolist() for column in amounts]
            for provider, row in zip(ids, zip(repeat(class_id), *lists, strict=False), strict=False):
                rows[provider].append(row)
        return {provider: self._stocks(tuple(of)) for provider, of in rows.items()}

    def _stocks(self, rows: tuple[tuple[int, ...], ...]) -> ProviderStocks:
        equal = self._equal.get(rows)
        if equal is None:
            stocks = [(self._classes[class_id], Stock(*amounts)) for class_id, *amounts in rows]
            equal = self._equal[rows] = ProviderStocks(stocks)
        return equal


class _Facts(NamedTuple):
    """What columns tell of some trees read together: the providers of each by root, and what each provider is."""

    inside: Mapping[int, Sequence[int]]
    parents: Parents
    traits: Mapping[int, frozenset[str]]
    stocks: Mapping[int, ProviderStocks]
    positions: Mapping[int, Position]
    places: Places


class _TreeFacts:
    """Reads what decides about trees."""

    def __init__(self, serving: Serving, deciding: Deciding) -> None:
        self._serving = serving
        self._providers = serving.columns.providers
        self._deciding = deciding
        self._stocks = StocksByProvider(serving.columns, deciding.classes)
        self._equal_traits: dict[int, frozenset[str]] = {}

    def of(self, roots: Collection[int]) -> _Facts:
        """Return the facts about trees."""
        at, inside = self._providers.positions_of_trees(roots), self._inside(roots)
        parents, levels = self._providers.parents_of(at), self._deciding.levels
        layout = Layout(parents, *self._serving.anchors(levels, at), levels=len(levels))
        in_places = layout.inside(parents.keys())
        places = Places(layout.masks_of(in_places), layout.levels)
        positions = layout.positions_of(parents.keys(), in_places)
        return _Facts(inside, parents, self._traits(at), self._stocks.at(at), positions, places)

    def _inside(self, roots: Collection[int]) -> dict[int, list[int]]:
        providers, indices = self._providers, self._providers.tree_indices(sorted(roots))
        indices = indices[indices >= 0]
        bounds = zip(providers.starts[indices].tolist(), providers.starts[indices + 1].tolist(), strict=True)
        inside = [providers.ids[start:end].tolist() for start, end in bounds]
        return dict(zip(providers.roots[indices].tolist(), inside, strict=True))

    def _traits(self, at: Ints) -> dict[int, frozenset[str]]:
        """Return the traits of those providers that have any."""
        bits: dict[int, int] = defaultdict(int)
        for number, trait_id in enumerate(self._deciding.traits):
            owners = at[self._serving.sets.with_trait(trait_id)[at]]
            for provider in self._providers.ids[owners].tolist():
                bits[provider] |= 1 << number
        names = [*self._deciding.traits.values()]
        for of_provider in {*bits.values()} - self._equal_traits.keys():
            held = [name for number, name in enumerate(names) if of_provider >> number & 1]
            self._equal_traits[of_provider] = frozenset(held)
        return {provider: self._equal_traits[of_provider] for provider, of_provider in bits.items()}


class TreesInDetail:
    """The trees of a snapshot in all detail that decides, each built once.

    Args:
        serving: the columns, and who has which trait.
        deciding: what decides.
        names: returns the names of providers.
    """

    def __init__(self, serving: Serving, deciding: Deciding, names: NamesIn) -> None:
        self._facts = _TreeFacts(serving, deciding)
        self._names = names
        self._known: dict[tuple[int, frozenset[int]], PlannerTree] = {}
        self.members: dict[int, NamedMember] = {}
        """All providers of the trees built so far."""

    def of(self, trees: Collection[Tree]) -> list[PlannerTree]:
        """Return trees, each with those that share with it."""
        keys = [(tree.root, _roots(tree)) for tree in trees]
        unknown = {key for key in keys if key not in self._known}
        if unknown:
            facts = self._facts.of({root for _root, roots in unknown for root in roots})
            self._note_members(facts)
            self._known.update({key: self._built(*key, facts) for key in unknown})
        return [self._known[key] for key in keys]

    def has(self, tree: Tree) -> bool:
        """Tell whether a tree has been built."""
        return (tree.root, _roots(tree)) in self._known

    def _note_members(self, facts: _Facts) -> None:
        names = self._names(facts.inside.keys())
        for root, inside in facts.inside.items():
            of_tree, parents = names[root], facts.parents
            for provider in inside:
                uuid, name = of_tree[provider]
                self.members[provider] = NamedMember(provider, uuid, root, parents[provider], name)

    def _built(self, root: int, roots: frozenset[int], facts: _Facts) -> PlannerTree:
        providers = [provider for part in sorted(roots) for provider in facts.inside[part]]
        own, members = facts.inside[root], self.members
        return PlannerTree(
            root=root,
            parents=_only(providers, facts.parents),
            names={provider: members[provider].name for provider in providers},
            traits=_only(providers, facts.traits),
            stocks=_only(providers, facts.stocks),
            positions=_only(providers, facts.positions),
            places=Places(_only(own, facts.places.of), facts.places.levels),
            foreign_providers=frozenset(providers) - {*own} if len(roots) > 1 else frozenset(),
        )


class UpcomingTrees:
    """The trees that may be composed in next, built in detail in batches.

    Args:
        details: builds them.
        wanted: roughly how many trees will be wanted.
        first: how many to build ahead at first. Then twice as many each time, but no more than are still wanted; and
            once all of these are built, no more than ``MAX_BATCH``.
    """

    def __init__(self, details: TreesInDetail, *, wanted: int, first: int) -> None:
        self._details = details
        self._next: list[tuple[Key, int, Tree]] = []
        """A heap; a number tells trees apart that were noted twice."""
        self._numbers = count()
        self._left = wanted
        self._size = first

    def note(self, trees: Iterable[Keyed]) -> None:
        """Note trees that may be wanted, with their keys."""
        for key, tree in trees:
            heappush(self._next, (key, next(self._numbers), tree))

    def build(self, trees: Sequence[Tree]) -> None:
        """Build trees that are wanted now, and the next ones."""
        if all(map(self._details.has, trees)):
            return
        more = [*islice(self._unbuilt(), self._size)]
        self._details.of([*trees, *more])
        self._left -= len(more)
        self._size = min(2 * self._size, self._left if self._left > 0 else MAX_BATCH, MAX_BATCH)

    def _unbuilt(self) -> Iterator[Tree]:
        while self._next:
            _key, _number, tree = heappop(self._next)
            if not self._details.has(tree):
                yield tree


class TreeOutlines:
    """The outlines of trees: what decides whether they can serve, but not how well, each built once.

    An outline has what lies at or above a provider that can serve something.

    Args:
        serving: the columns, and who has which trait.
        deciding: the classes of locks, and the traits of levels and those that rules name.
        use: tells what is in use, if that matters.
    """

    def __init__(self, serving: Serving, deciding: Deciding, use: TreeUse | None) -> None:
        self._facts = _TreeFacts(serving, deciding)
        self._use = use
        self._known: dict[int, tuple[Tree, PlannerTree]] = {}

    def of(self, trees: Sequence[Tree]) -> list[PlannerTree]:
        """Return the outlines of trees."""
        unknown = [tree for tree in trees if not self._has(tree)]
        if unknown:
            roots = {root for tree in unknown for root in _roots(tree)}
            facts, used = self._facts.of(roots), self._use.in_use(roots) if self._use else None
            self._known.update({tree.root: (tree, _outline(tree, facts, used)) for tree in unknown})
        return [self._known[tree.root][1] for tree in trees]

    def _has(self, tree: Tree) -> bool:
        known = self._known.get(tree.root)
        # A tree under an overlay is another object, with other options.
        return known is not None and known[0] is tree


def _outline(tree: Tree, facts: _Facts, used: AbstractSet[int] | None) -> PlannerTree:
    serving = {provider for row in tree.options for provider in row}
    around = with_all_above(serving, facts.parents)
    foreign = [provider for provider in serving if tree.root_of.get(provider, tree.root) != tree.root]
    return PlannerTree(
        root=tree.root,
        parents=_only(around, facts.parents),
        # ProviderNames only decide which of equal providers is tried first.
        names={provider: str(provider) for provider in around},
        traits=facts.traits,
        stocks=_only(around, facts.stocks),
        positions=facts.positions,
        foreign_providers=with_all_above(foreign, facts.parents),
        used=None if used is None else around & used,
    )


def _only(providers: Collection[int], values: Mapping[int, Value]) -> dict[int, Value]:
    return {provider: values[provider] for provider in providers if provider in values}


def _roots(tree: Tree) -> frozenset[int]:
    """Return the roots of a tree and of the trees that share with it, which have places, too."""
    if not tree.root_of:
        return frozenset([tree.root])
    sharing = [tree.root_of[provider] for options in tree.options for provider in options if provider in tree.sharing]
    return frozenset([tree.root, *sharing])


def with_stocks(tree: Tree, plan: Plan, changed: Mapping[int, Mapping[str, Stock]]) -> Tree:
    """Return a tree as it is if some providers have other stocks: with the options that have room, and their room.

    Args:
        tree: the tree, including options that merely have no room now.
        plan: what is asked for.
        changed: all stocks, by class, of each provider that has others.
    """

    def has_room(provider: int, resources: Collection[tuple[str, int]]) -> bool:
        stocks = changed.get(provider)
        return stocks is None or all([amount <= stocks[name].left for name, amount in resources])

    options = [
        [provider for provider in providers if demand.ignores_usage or has_room(provider, demand.resources)]
        for demand, providers in zip(plan.demands, tree.options, strict=True)
    ]
    room = {
        place: float(min(stock.left, stock.max_unit))
        for place in [(provider, name) for provider in changed for name in plan.contended]
        if place in tree.room and (stock := changed[place[0]].get(place[1]))
    }
    # The room mapping is shared by all trees that were read together, so it is overlaid rather than copied.
    return replace(tree, options=options, room=ChainMap(room, tree.room) if room else tree.room)


class ChangedProvider(NamedTuple):
    """A provider that an overlay changes: the root of its tree, and its stocks with the change, by class."""

    root: int
    stocks: Mapping[str, Stock]


def changed_providers(
    serving: Serving, class_names: Mapping[int, str], changed: Collection[int]
) -> dict[int, ChangedProvider]:
    """Return those of some providers that exist, in a cloud as it would be."""
    providers = serving.columns.providers
    roots = providers.root_of(changed)
    stocks = StocksByProvider(serving.columns, class_names).at(providers.positions(sorted(roots)))
    return {provider: ChangedProvider(root, stocks.get(provider, NO_STOCKS)) for provider, root in roots.items()}
