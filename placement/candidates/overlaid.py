"""Trees as they would be: a reader that applies an overlay to what another one reads.

Only trees in which the overlay changes something are checked again, in memory. If the overlay gives something back, the
wrapped reader must return the providers it is given back by even if they have no room now; they are checked here.
"""

from collections import ChainMap, Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from placement.candidates.planner.planner_trees import StocksByProvider
from placement.candidates.reading import Reader
from placement.candidates.wrapped import WrappedReader
from placement.cloud.columns import CloudColumns
from placement.domain.overlay import Overlay
from placement.domain.planner_tree import NO_STOCKS, Stock
from placement.domain.quantities import ResourceAmounts
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree, TreesRead


class ChangedProvider(NamedTuple):
    """A provider that an overlay changes: the root of its tree, and its stocks with the change, by class."""

    root: int
    stocks: Mapping[str, Stock]

    def after(self, amounts: ResourceAmounts) -> "ChangedProvider":
        """Return it with more, or less, in use."""
        changed = {name: stock.taken(amounts.get(name, 0)) for name, stock in self.stocks.items()}
        return self._replace(stocks=changed)


class OverlaidReader(WrappedReader):
    """A Reader of another reader's trees with an overlay applied.

    The fit counts of ``TreesRead.places``, which only break ties, stay those of the trees as they are.

    Args:
        reader: reads the trees as they are.
        overlay: what would differ.
        changed: the providers that the overlay changes, by id.
    """

    def __init__(self, reader: Reader, overlay: Overlay, changed: Mapping[int, ChangedProvider]) -> None:
        super().__init__(reader)
        self._overlay = overlay
        self._changed = changed
        self._stocks = {provider: one.stocks for provider, one in changed.items()}
        self._roots = {one.root for one in changed.values()}

    def sums(
        self, classes: Sequence[str], found_by: Sequence[str], roots: Collection[int] | None = None
    ) -> list[Sequence[int]]:
        """Return a row for each tree: its root, its capacity of each class, then what its usage would be."""
        rows = [row for row in self._reader.sums(classes, found_by, roots) if row[0] not in self._overlay.avoided]
        more: dict[int, Counter[str]] = defaultdict(Counter)
        for provider, one in self._changed.items():
            more[one.root].update(self._overlay.changes[provider])
        zeros = [0] * (1 + len(classes))
        return [
            tuple(map(sum, zip(row, [*zeros, *map(more[row[0]].__getitem__, classes)], strict=True)))
            if row[0] in more
            else row
            for row in rows
        ]

    def chunks(self, wanted: int | None) -> Iterator[tuple[TreesRead, int]]:
        """Yield all trees in portions, each with the highest root id that it may contain."""
        for read, last in self._reader.chunks(wanted):
            yield self._overlaid(read), last

    def trees_of(self, roots: Sequence[int]) -> TreesRead:
        """Return the trees with these roots."""
        return self._overlaid(self._reader.trees_of([root for root in roots if root not in self._overlay.avoided]))

    def all_trees(self) -> TreesRead:
        """Return all trees."""
        return self._overlaid(self._reader.all_trees())

    def _overlaid(self, read: TreesRead) -> TreesRead:
        trees = [self._without_gone(tree) for tree in read.trees if tree.root not in self._overlay.avoided]
        judged = [with_stocks(tree, self.plan, self._stocks) if self._concerns(tree) else tree for tree in trees]
        return read._replace(trees=[tree for tree in judged if all(tree.options)])

    def _without_gone(self, tree: Tree) -> Tree:
        """Return a tree without what trees that are gone would share with it."""
        gone = {one for one in tree.sharing if tree.root_of[one] in self._overlay.gone} if self._overlay.gone else ()
        if not gone:
            return tree
        options = [[one for one in row if one not in gone] for row in tree.options]
        return replace(tree, options=options, sharing=tree.sharing - gone)

    def _concerns(self, tree: Tree) -> bool:
        return tree.root in self._roots or not self._changed.keys().isdisjoint(tree.sharing)


def with_stocks(tree: Tree, plan: Plan, changed: Mapping[int, Mapping[str, Stock]]) -> Tree:
    """Return a tree as it is if some providers have other stocks: with the options that have room, and their room.

    Args:
        tree: the tree, including options that merely have no room now.
        plan: what is asked for.
        changed: all stocks, by class, of each provider that has others.
    """

    def has_room(provider: int, resources: Collection[tuple[str, int]]) -> bool:
        of = changed.get(provider)
        return of is None or all([amount <= of[name].capacity - of[name].used for name, amount in resources])

    options = [
        [provider for provider in providers if demand.ignores_usage or has_room(provider, demand.resources)]
        for demand, providers in zip(plan.demands, tree.options, strict=True)
    ]
    room = {
        place: float(min(stock.capacity - stock.used, stock.max_unit))
        for place in [(one, name) for one in changed for name in plan.contended]
        if place in tree.room and (stock := changed[place[0]].get(place[1]))
    }
    # The room mapping is shared by all trees that were read together, so it is overlaid rather than copied.
    return replace(tree, options=options, room=ChainMap(room, tree.room) if room else tree.room)


class ChangedStocks:
    """The stocks of providers that overlays change.

    Args:
        columns: what providers have.
        class_names: the names of resource classes, by id.
    """

    def __init__(self, columns: CloudColumns, class_names: Mapping[int, str]) -> None:
        self._providers = columns.providers
        self._stocks = StocksByProvider(columns, class_names)
        self._known: dict[int, ChangedProvider] = {}
        self._changed: dict[int, tuple[ResourceAmounts, ChangedProvider]] = {}
        """By provider, the last change asked about, and what it would have then: overlays grow one change at a time."""

    def under(self, overlay: Overlay) -> dict[int, ChangedProvider]:
        """Return what the providers that an overlay changes would have, and how much of it would be used."""
        self._look_up(overlay.changes.keys() - self._known.keys())
        for one, amounts in overlay.changes.items():
            last = self._changed.get(one)
            if last is None or last[0] != amounts:
                self._changed[one] = amounts, self._known[one].after(amounts)
        return {one: self._changed[one][1] for one in overlay.changes}

    def _look_up(self, unknown: Collection[int]) -> None:
        at = self._providers.positions(sorted(unknown))
        at = at[at >= 0]
        stocks = self._stocks.at(at)
        roots = self._providers.roots[self._providers.trees[at]].tolist()
        root_of = dict(zip(self._providers.ids[at].tolist(), roots, strict=True))
        # A deleted provider is in no tree; it stands as its own root.
        self._known |= {one: ChangedProvider(root_of.get(one, one), stocks.get(one, NO_STOCKS)) for one in unknown}


def overlaid(reader: Reader, overlay: Overlay, stocks: ChangedStocks) -> Reader:
    """Return a reader of trees with an overlay applied; ``reader`` must spare the released providers."""
    return reader if overlay.is_empty else OverlaidReader(reader, overlay, stocks.under(overlay))
