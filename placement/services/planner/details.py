"""Read provider trees in the detail that composing in them needs."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import heappop, heappush
from itertools import count, islice
from typing import NamedTuple

from placement.candidates.compose.device_parts import Levels
from placement.candidates.frontier import Key, Keyed
from placement.domain.inventory import Inventory
from placement.domain.places import Layout, Places, Position, level_bits
from placement.domain.planner_tree import PlannerTree, ProviderStocks, Stock
from placement.domain.tree import Tree
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.tree_rows import NamedMember, Relevant, StockWithUnits, TreeRows, tree_rows

MAX_BATCH = 64
"""The most trees read together: few enough to waste little, enough to spare a query per tree."""


class Deciding(NamedTuple):
    """The names of the classes and traits to read; None for all."""

    classes: Collection[str] | None = None
    traits: Collection[str] | None = None


ALL_DECIDES = Deciding()


class _KindsOfProviders:
    """Stocks and traits, built once for all providers with equal rows.

    Args:
        tx: reads the names.
    """

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.class_names: dict[int, str] = {}
        self.trait_names: dict[int, str] = {}
        self._stocks: dict[object, ProviderStocks] = {}
        self._traits: dict[tuple[int, ...], frozenset[str]] = {}

    def learn_names(self, rows: TreeRows) -> None:
        """Read the names of all classes and traits that are not known yet."""
        classes = {row[0] for of in rows.stocks.values() for row in of} - self.class_names.keys()
        traits = {trait for of in rows.traits.values() for trait in of} - self.trait_names.keys()
        self.class_names.update(self._tx.names.classes.names(self._tx.connection, classes))
        self.trait_names.update(self._tx.names.traits.names(self._tx.connection, traits))

    def stocks(self, rows: TreeRows) -> dict[int, ProviderStocks]:
        """Return the stocks of each provider that has any."""
        names, known, stocks = self.class_names, self._stocks, {}
        for provider, of in rows.stocks.items():
            kind = tuple(of)
            of_kind = known.get(kind)
            if of_kind is None:
                of_kind = known[kind] = ProviderStocks((names[row[0]], _stock(StockWithUnits(*row))) for row in of)
            stocks[provider] = of_kind
        return stocks

    def traits(self, rows: TreeRows) -> dict[int, frozenset[str]]:
        """Return the traits of each provider that has any."""
        names, known, traits = self.trait_names, self._traits, {}
        for provider, ids in rows.traits.items():
            kind = tuple(ids)
            of_kind = known.get(kind)
            if of_kind is None:
                of_kind = known[kind] = frozenset(names[trait] for trait in ids)
            traits[provider] = of_kind
        return traits


class _TreesInDetail(NamedTuple):
    """Trees that were read together."""

    rows: TreeRows
    stocks: Mapping[int, ProviderStocks]
    traits: Mapping[int, frozenset[str]]
    positions: Mapping[int, Position]
    places: Places


class Details:
    """Reads the details of trees in the snapshot of one transaction.

    Args:
        tx: the transaction.
        levels: the levels.
        deciding: what to read besides the traits of the levels.
    """

    def __init__(self, tx: Transaction, levels: Levels, deciding: Deciding = ALL_DECIDES) -> None:
        self._tx = tx
        ids = tx.names.traits.ids(tx.connection, set(levels.traits))
        self.level_ids = [ids.get(trait) for trait in levels.traits]
        """The ids of the levels' traits, None for one that does not exist."""
        classes, traits = deciding
        self._relevant = Relevant(
            None if classes is None else tx.names.classes.ids(tx.connection, {*classes}).values(),
            None if traits is None else {*ids.values(), *tx.names.traits.ids(tx.connection, {*traits}).values()},
        )
        self.members: dict[int, NamedMember] = {}
        """All providers read so far."""
        self._kinds = _KindsOfProviders(tx)

    def of(self, trees: Collection[Tree]) -> list[PlannerTree]:
        """Read trees, each with those that share with it."""
        portion = self._portion({root for tree in trees for root in _roots(tree)})
        by_root: dict[int, list[int]] = defaultdict(list)
        for member in portion.rows.members.values():
            by_root[member.root_id].append(member.id)
        return [_tree(tree, [one for root in _roots(tree) for one in by_root[root]], portion) for tree in trees]

    def _portion(self, roots: Collection[int]) -> _TreesInDetail:
        rows = tree_rows(self._tx, roots, self._relevant)
        self.members.update(rows.members)
        self._kinds.learn_names(rows)
        layout = self._layout(rows)
        inside = layout.inside(rows.members.keys())
        return _TreesInDetail(
            rows,
            self._kinds.stocks(rows),
            self._kinds.traits(rows),
            layout.positions_of(rows.members.keys(), inside),
            Places(layout.masks_of(inside), layout.levels),
        )

    def _layout(self, rows: TreeRows) -> Layout:
        bits_of = cache(lambda traits: level_bits(traits, self.level_ids))
        bits = {provider: bits_of(tuple(traits)) for provider, traits in rows.traits.items()}
        anchors = {provider: of for provider, of in bits.items() if of and provider in rows.members}
        homes = {provider: rows.members[provider].root_id for provider in anchors}
        parents = {provider: member.parent_id for provider, member in rows.members.items()}
        return Layout(parents, anchors, homes, levels=len(self.level_ids))


class RememberedDetails(Details):
    """The details of trees, memoised."""

    def __init__(self, tx: Transaction, levels: Levels, deciding: Deciding = ALL_DECIDES) -> None:
        super().__init__(tx, levels, deciding)
        self._known: dict[tuple[int, frozenset[int]], PlannerTree] = {}

    def of(self, trees: Collection[Tree]) -> list[PlannerTree]:
        """Return trees, each with those that share with it, reading only those not read yet."""
        keys = [(tree.root, _roots(tree)) for tree in trees]
        unknown = {key: tree for key, tree in zip(keys, trees, strict=True) if key not in self._known}
        if unknown:
            self._known.update(zip(unknown, super().of(list(unknown.values())), strict=True))
        return [self._known[key] for key in keys]

    def has(self, tree: Tree) -> bool:
        """Tell whether a tree has been read."""
        return (tree.root, _roots(tree)) in self._known


class Outlines:
    """Trees with whatever decides whether they can serve: in detail if already read so, else with less.

    Args:
        details: reads them in detail.
        less: reads less of them.
    """

    def __init__(self, details: RememberedDetails, less: RememberedDetails) -> None:
        self._details = details
        self._less = less

    def of(self, trees: Collection[Tree]) -> list[PlannerTree]:
        """Return trees, each with those that share with it, reading only those not read yet."""
        in_detail = [tree for tree in trees if self._details.has(tree)]
        others = [tree for tree in trees if not self._details.has(tree)]
        found = {one.root: one for one in (*self._details.of(in_detail), *self._less.of(others))}
        return [found[tree.root] for tree in trees]


class ReadingAhead:
    """Reads trees in batches with those likely to be wanted next.

    Args:
        details: reads them.
        wanted: roughly how many trees will be wanted.
        first: how many to read ahead at first; then twice as many each time, up to the rest of ``wanted`` while
            there is any.
    """

    def __init__(self, details: RememberedDetails, *, wanted: int, first: int) -> None:
        self._details = details
        self._next: list[tuple[Key, int, Tree]] = []
        """A heap."""
        self._numbers = count()
        self._left = wanted
        self._size = first

    def note(self, trees: Iterable[Keyed]) -> None:
        """Note trees that may be wanted, with their keys."""
        for key, tree in trees:
            heappush(self._next, (key, next(self._numbers), tree))

    def read(self, trees: Sequence[Tree]) -> None:
        """Read trees that are wanted now, and the next ones."""
        if all(map(self._details.has, trees)):
            return
        more = [*islice(self._unread(), self._size)]
        self._details.of([*trees, *more])
        self._left -= len(more)
        self._size = min(2 * self._size, self._left if self._left > 0 else MAX_BATCH, MAX_BATCH)

    def _unread(self) -> Iterator[Tree]:
        while self._next:
            *_order, tree = heappop(self._next)
            if not self._details.has(tree):
                yield tree


def _tree(tree: Tree, providers: Collection[int], portion: _TreesInDetail) -> PlannerTree:
    rows, masks, positions = portion.rows, portion.places.of, portion.positions
    own = {provider for provider in providers if rows.members[provider].root_id == tree.root}
    return PlannerTree(
        root=tree.root,
        parents={provider: rows.members[provider].parent_id for provider in providers},
        names={provider: rows.members[provider].name for provider in providers},
        traits={provider: portion.traits[provider] for provider in providers if provider in portion.traits},
        stocks={provider: portion.stocks[provider] for provider in providers if provider in portion.stocks},
        positions={provider: positions[provider] for provider in providers},
        places=Places({provider: masks[provider] for provider in own if provider in masks}, portion.places.levels),
        foreign_providers={*providers} - own,
    )


def _roots(tree: Tree) -> frozenset[int]:
    """Return the roots of a tree and of the trees that share with it, which have places, too."""
    if not tree.home:
        return frozenset([tree.root])
    sharing = [tree.home[one] for options in tree.options for one in options if one in tree.sharing]
    return frozenset([tree.root, *sharing])


def _stock(row: StockWithUnits) -> Stock:
    capacity = Inventory(row.total, row.reserved, allocation_ratio=row.allocation_ratio).capacity
    return Stock(capacity, int(row.used), row.min_unit, row.max_unit, row.step_size)
