"""Reads some provider trees in all the detail that composing in them needs."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import heappop, heappush
from itertools import count, islice
from typing import NamedTuple, TypeVar

from placement.candidates.compose.device_parts import Levels
from placement.candidates.frontier import Key, Keyed
from placement.domain.places import Layout, Places, Position, level_bits
from placement.domain.planner_tree import PlannerTree, ProviderStocks, Stock
from placement.domain.tree import Tree
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.planner_trees import UnitRules, provider_names, unit_rules, unusual_unit_rules
from placement.store.search.summaries import StockRow, Summaries, tree_summaries

T = TypeVar("T")

LARGEST_BATCH = 64
"""Trees whose details are read together at most: not many more than are needed, and not each by itself."""


class _Rows(NamedTuple):
    """What has been read of some trees."""

    summaries: Summaries
    names: Mapping[int, str]
    stocks: Mapping[int, ProviderStocks]
    traits: Mapping[int, frozenset[str]]
    positions: Mapping[int, Position]
    places: Places


class _KindsOfProviders:
    """What providers of one kind have in common, made once for all of them."""

    def __init__(self) -> None:
        self._stocks: dict[object, ProviderStocks] = {}
        self._traits: dict[tuple[int, ...], frozenset[str]] = {}

    def stocks(self, found: Summaries, units: UnitRules) -> dict[int, ProviderStocks]:
        """Return the stocks of each provider that has any."""
        names, known, stocks = found.class_names, self._stocks, {}
        for provider, rows in found.stocks.items():
            kind: tuple[object, ...] = tuple(rows)
            if units:
                kind = (*kind, *[units.get((provider, row[0])) for row in rows])
            of_kind = known.get(kind)
            if of_kind is None:
                of_kind = known[kind] = ProviderStocks(
                    (names[row[0]], _stock(StockRow(*row), units.get((provider, row[0]), ()))) for row in rows
                )
            stocks[provider] = of_kind
        return stocks

    def traits(self, found: Summaries) -> dict[int, frozenset[str]]:
        """Return the traits of each provider that has any."""
        names, known, traits = found.trait_names, self._traits, {}
        for provider, ids in found.traits.items():
            kind = tuple(ids)
            of_kind = known.get(kind)
            if of_kind is None:
                of_kind = known[kind] = frozenset(names[trait] for trait in ids)
            traits[provider] = of_kind
        return traits


class Details:
    """The details of trees that have been read, as of the snapshot of one transaction.

    Args:
        tx: the transaction.
        levels: the levels.
        with_units: whether unit rules are read, too.
        locks: the lock classes, whose unit rules are read in any case.
    """

    def __init__(self, tx: Transaction, levels: Levels, *, with_units: bool, locks: Collection[str] = ()) -> None:
        self._tx = tx
        self._levels = levels
        self._with_units = with_units
        self._locks = locks
        ids = tx.names.traits.ids(tx.connection, set(levels.traits))
        self.level_ids = [ids.get(trait) for trait in levels.traits]
        """The ids of the traits of levels, None for one that does not exist."""
        self._read: list[Summaries] = []
        self._kinds = _KindsOfProviders()

    def of(self, trees: Collection[Tree]) -> list[PlannerTree]:
        """Read trees, with those that share with them."""
        roots = {root for tree in trees for root in _roots(tree)}
        found = tree_summaries(self._tx, roots)
        self._read.append(found)
        rows = self._rows(found, roots)
        by_root: dict[int, list[int]] = defaultdict(list)
        for member in found.members.values():
            by_root[member.root_id].append(member.id)
        return [_tree(tree, [one for root in _roots(tree) for one in by_root[root]], rows) for tree in trees]

    @property
    def summaries(self) -> Summaries:
        """What has been read."""
        if len(self._read) > 1:
            self._read = [merged(self._read)]
        return self._read[0] if self._read else Summaries()

    def _rows(self, found: Summaries, roots: Collection[int]) -> _Rows:
        layout = self._layout(found)
        inside = layout.inside(found.members.keys())
        return _Rows(
            found,
            provider_names(self._tx, roots),
            self._kinds.stocks(found, self._units(found, roots)),
            self._kinds.traits(found),
            layout.positions_of(found.members.keys(), inside),
            Places(layout.masks_of(inside), layout.levels),
        )

    def _units(self, found: Summaries, roots: Collection[int]) -> UnitRules:
        if self._with_units:
            return unit_rules(self._tx, roots)
        locks = [class_id for class_id, name in found.class_names.items() if name in self._locks]
        return unusual_unit_rules(self._tx, roots, locks) if locks else {}

    def _layout(self, found: Summaries) -> Layout:
        bits_of = cache(lambda traits: level_bits(traits, self.level_ids))
        bits = {provider: bits_of(tuple(traits)) for provider, traits in found.traits.items()}
        anchors = {provider: of for provider, of in bits.items() if of and provider in found.members}
        homes = {provider: found.members[provider].root_id for provider in anchors}
        parents = {provider: member.parent_id for provider, member in found.members.items()}
        return Layout(parents, anchors, homes, levels=len(self.level_ids))


class RememberedDetails(Details):
    """The details of trees, each read once."""

    def __init__(self, tx: Transaction, levels: Levels, *, with_units: bool, locks: Collection[str] = ()) -> None:
        super().__init__(tx, levels, with_units=with_units, locks=locks)
        self._known: dict[tuple[int, frozenset[int]], PlannerTree] = {}

    def of(self, trees: Collection[Tree]) -> list[PlannerTree]:
        """Return trees with those that share with them, reading those that have not been read."""
        keys = [(tree.root, _roots(tree)) for tree in trees]
        unknown = {key: tree for key, tree in zip(keys, trees, strict=True) if key not in self._known}
        if unknown:
            self._known.update(zip(unknown, super().of(list(unknown.values())), strict=True))
        return [self._known[key] for key in keys]

    def has(self, tree: Tree) -> bool:
        """Tell whether a tree has been read."""
        return (tree.root, _roots(tree)) in self._known


class ReadingAhead:
    """Reads trees together with those that will be wanted next.

    Args:
        details: reads them.
        wanted: how many trees will be wanted, more or less.
        first: how many are read at first; then twice as many each time, and no more than are wanted as long as
            that may suffice.
    """

    def __init__(self, details: RememberedDetails, *, wanted: int, first: int) -> None:
        self._details = details
        self._next: list[tuple[Key, int, Tree]] = []
        """A heap."""
        self._numbers = count()
        self._left = wanted
        self._size = first

    def note(self, trees: Iterable[Keyed]) -> None:
        """Take note of trees that may be wanted, by their keys."""
        for key, tree in trees:
            heappush(self._next, (key, next(self._numbers), tree))

    def read(self, trees: Sequence[Tree]) -> None:
        """Read trees that are wanted now, and the next ones."""
        if all(map(self._details.has, trees)):
            return
        more = [*islice(self._unread(), self._size)]
        self._details.of([*trees, *more])
        self._left -= len(more)
        self._size = min(2 * self._size, self._left if self._left > 0 else LARGEST_BATCH, LARGEST_BATCH)

    def _unread(self) -> Iterator[Tree]:
        while self._next:
            *_order, tree = heappop(self._next)
            if not self._details.has(tree):
                yield tree


def _tree(tree: Tree, providers: Collection[int], rows: _Rows) -> PlannerTree:
    members, masks = rows.summaries.members, rows.places.of
    own = {provider for provider in providers if members[provider].root_id == tree.root}
    return PlannerTree(
        root=tree.root,
        parents={provider: members[provider].parent_id for provider in providers},
        names={provider: rows.names[provider] for provider in providers},
        traits={provider: rows.traits[provider] for provider in providers if provider in rows.traits},
        stocks={provider: rows.stocks[provider] for provider in providers if provider in rows.stocks},
        positions={provider: rows.positions[provider] for provider in providers},
        places=Places({provider: masks[provider] for provider in own if provider in masks}, rows.places.levels),
        foreign_providers={*providers} - own,
    )


def _roots(tree: Tree) -> frozenset[int]:
    """Return the root of a tree, and those of the trees that share something with it: there are places, too."""
    if not tree.home:
        return frozenset([tree.root])
    sharing = [tree.home[one] for options in tree.options for one in options if one in tree.sharing]
    return frozenset([tree.root, *sharing])


def _stock(row: StockRow, units: Sequence[int]) -> Stock:
    return Stock(row.capacity, int(row.used), *units)


def merged(several: Sequence[Summaries]) -> Summaries:
    """Return what all of some summaries say."""
    return Summaries(
        members=_together([one.members for one in several]),
        stocks=_together([one.stocks for one in several]),
        traits=_together([one.traits for one in several]),
        class_names=_together([one.class_names for one in several]),
        trait_names=_together([one.trait_names for one in several]),
    )


def _together(several: Iterable[Mapping[int, T]]) -> dict[int, T]:
    together: dict[int, T] = {}
    for one in several:
        together.update(one)
    return together
