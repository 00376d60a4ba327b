"""Read provider trees in the detail that composing in them needs."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush, nsmallest
from itertools import count, islice
from typing import NamedTuple

from placement.candidates.frontier import Key, Keyed
from placement.domain.places import Layout, Places, Position
from placement.domain.planner_tree import PlannerTree, ProviderStocks
from placement.domain.tree import Tree
from placement.services.planner.interned_rows import InternedRows, anchors_in
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.tree_rows import EVERYTHING, NamedMember, Relevant, TreeRows, tree_rows

MAX_BATCH = 64
"""The most trees read together: few enough to waste little, enough to spare a query per tree."""


class _TreesInDetail(NamedTuple):
    """Trees that were read together: their rows, and what these say by provider."""

    rows: TreeRows
    stocks: Mapping[int, ProviderStocks]
    traits: Mapping[int, frozenset[str]]
    positions: Mapping[int, Position]
    places: Places


class Details:
    """Reads the details of trees in the snapshot of one transaction.

    Args:
        tx: the transaction.
        level_ids: the ids of the levels' traits, None for one that does not exist.
        deciding: what to read, including these traits.
    """

    def __init__(self, tx: Transaction, level_ids: Sequence[int | None], deciding: Relevant = EVERYTHING) -> None:
        self._tx = tx
        self._level_ids = level_ids
        self._deciding = deciding
        self.members: dict[int, NamedMember] = {}
        """All providers read so far."""
        self._interned = InternedRows(tx)

    def of(self, trees: Collection[Tree]) -> list[PlannerTree]:
        """Read trees, each with those that share with it."""
        portion = self._portion({root for tree in trees for root in _roots(tree)})
        by_root: dict[int, list[int]] = defaultdict(list)
        for member in portion.rows.members.values():
            by_root[member.root_id].append(member.id)
        return [_tree(tree, [one for root in _roots(tree) for one in by_root[root]], portion) for tree in trees]

    def _portion(self, roots: Collection[int]) -> _TreesInDetail:
        rows = tree_rows(self._tx, roots, self._deciding)
        self.members.update(rows.members)
        self._interned.learn_names(rows)
        layout = self._layout(rows)
        inside = layout.inside(rows.members.keys())
        return _TreesInDetail(
            rows,
            self._interned.stocks(rows),
            self._interned.traits(rows),
            layout.positions_of(rows.members.keys(), inside),
            Places(layout.masks_of(inside), layout.levels),
        )

    def _layout(self, rows: TreeRows) -> Layout:
        anchors = {one: of for one, of in anchors_in(rows.traits, self._level_ids).items() if one in rows.members}
        root_of = {provider: rows.members[provider].root_id for provider in anchors}
        parents = {provider: member.parent_id for provider, member in rows.members.items()}
        return Layout(parents, anchors, root_of, levels=len(self._level_ids))


class RememberedDetails(Details):
    """The details of trees, memoised."""

    def __init__(self, tx: Transaction, level_ids: Sequence[int | None], deciding: Relevant = EVERYTHING) -> None:
        super().__init__(tx, level_ids, deciding)
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


class ReadingAhead:
    """Reads trees in batches with those likely to be wanted next.

    Args:
        details: reads them.
        wanted: roughly how many trees will be wanted.
        first: how many to read ahead at first. Then twice as many each time, but no more than are still wanted; and
            once all of these are read, no more than ``MAX_BATCH``.
    """

    def __init__(self, details: RememberedDetails, *, wanted: int, first: int) -> None:
        self._details = details
        self._next: list[tuple[Key, int, Tree]] = []
        """A heap, in which a tree is also left under the keys that it had before."""
        self._keys: dict[int, Key] = {}
        """The key of each tree, by root."""
        self._numbers = count()
        self._left = wanted
        self._size = first

    def note(self, trees: Iterable[Keyed]) -> None:
        """Note trees that may be wanted, with their keys; or that their keys have changed."""
        for key, tree in trees:
            self._keys[tree.root] = key
            heappush(self._next, (key, next(self._numbers), tree))

    def read(self, trees: Sequence[Tree]) -> None:
        """Read trees that are wanted now, and the next ones."""
        if all(map(self._details.has, trees)):
            return
        more = [*islice(self._unread(), self._size)]
        self._details.of([*trees, *more])
        self._left -= len(more)
        self._size = min(2 * self._size, self._left if self._left > 0 else MAX_BATCH, MAX_BATCH)

    def has(self, tree: Tree) -> bool:
        """Tell whether a tree has been read."""
        return self._details.has(tree)

    def upcoming(self, most: int, *, but: Collection[int]) -> list[Tree]:
        """Return the next trees to be read, without those with some roots."""
        left = [one for one in self._next if self._is_current(one) and one[2].root not in but]
        return [tree for _key, _number, tree in nsmallest(most, left)]

    def leave_out(self, roots: Collection[int]) -> None:
        """Leave out trees from now on."""
        for root in roots:
            self._keys.pop(root, None)

    def _unread(self) -> Iterator[Tree]:
        while self._next:
            noted = heappop(self._next)
            if self._is_current(noted) and not self._details.has(noted[2]):
                yield noted[2]

    def _is_current(self, noted: tuple[Key, int, Tree]) -> bool:
        key, _number, tree = noted
        return self._keys.get(tree.root) == key


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
    if not tree.root_of:
        return frozenset([tree.root])
    sharing = [tree.root_of[one] for options in tree.options for one in options if one in tree.sharing]
    return frozenset([tree.root, *sharing])
