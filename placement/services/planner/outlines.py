"""Read from many trees what decides whether they can serve a request, but not how well.

That is far less than their details: how the providers that can serve something are nested, which of them have traits
that rules name, what is held, and, for rules about exclusive use, what is in use.
"""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from placement.domain.ancestry import Parents, with_all_above
from placement.domain.places import Layout, Position
from placement.domain.planner_tree import PlannerTree, ProviderStocks
from placement.domain.tree import Tree
from placement.services.planner.interned_rows import InternedRows, anchors_in
from placement.services.planner.nesting import Nesting
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.tree_rows import Relevant, TreeRows, stocks_in, traits_in


class _ReadTogether(NamedTuple):
    """What was read of some trees together, by provider. Others may be included.

    ``used`` are the providers in use, None where that does not matter.
    """

    parents: Parents
    traits: Mapping[int, frozenset[str]]
    stocks: Mapping[int, ProviderStocks]
    positions: Mapping[int, Position]
    used: AbstractSet[int] | None


class Outlines:
    """Reads the outlines of trees, each once.

    Args:
        tx: the transaction.
        level_ids: the ids of the levels' traits, None for one that does not exist.
        deciding: the classes of locks, and the traits of levels and those that rules name.
        nesting: knows how providers are nested, and what is in use.
        counts_use: whether it matters what is in use.
    """

    def __init__(
        self,
        tx: Transaction,
        level_ids: Sequence[int | None],
        deciding: Relevant,
        *,
        nesting: Nesting,
        counts_use: bool,
    ) -> None:
        self._tx = tx
        self._nesting = nesting
        self._level_ids = level_ids
        self._deciding = deciding
        self._counts_use = counts_use
        self._interned = InternedRows(tx)
        self._known: dict[int, tuple[Tree, PlannerTree]] = {}

    def of(self, trees: Sequence[Tree]) -> list[PlannerTree]:
        """Return trees, each with what lies at or above a provider that can serve something."""
        unknown = [tree for tree in trees if not self._has(tree)]
        if unknown:
            read = self._read(unknown)
            self._known.update({tree.root: (tree, _outline(tree, read)) for tree in unknown})
        return [self._known[tree.root][1] for tree in trees]

    def _has(self, tree: Tree) -> bool:
        known = self._known.get(tree.root)
        # A tree under an overlay is another object, with other options.
        return known is not None and known[0] is tree

    def _read(self, trees: Sequence[Tree]) -> _ReadTogether:
        serving = {provider for tree in trees for row in tree.options for provider in row}
        others = {
            tree.root_of[provider] for tree in trees if tree.root_of for provider in tree.root_of.keys() & serving
        }
        roots = {tree.root for tree in trees} | others
        parents = self._nesting.parents_in(roots)
        rows = TreeRows(
            {},
            stocks_in(self._tx, roots, self._deciding.class_ids),
            traits_in(self._tx, roots, self._deciding.trait_ids),
        )
        self._interned.learn_names(rows)
        layout = Layout(parents, anchors_in(rows.traits, self._level_ids), {}, levels=len(self._level_ids))
        return _ReadTogether(
            parents,
            self._interned.traits(rows),
            self._interned.stocks(rows),
            layout.positions_of(serving, layout.inside(serving)),
            self._nesting.in_use(roots) if self._counts_use else None,
        )


def _outline(tree: Tree, read: _ReadTogether) -> PlannerTree:
    parents, stocks, used = read.parents, read.stocks, read.used
    serving = {provider for row in tree.options for provider in row}
    around = with_all_above(serving, parents)
    return PlannerTree(
        root=tree.root,
        parents={provider: parents.get(provider) for provider in around},
        # Names only decide which of equal providers is tried first.
        names={provider: str(provider) for provider in around},
        traits=read.traits,
        stocks={provider: stocks[provider] for provider in around if provider in stocks} if stocks else {},
        positions=read.positions,
        foreign_providers=_foreign(tree, serving, parents) if tree.root_of else (),
        used=None if used is None else around & used,
    )


def _foreign(tree: Tree, serving: Collection[int], parents: Parents) -> set[int]:
    """Return the providers of other trees, and what lies above them."""
    return with_all_above([one for one in serving if tree.root_of.get(one, tree.root) != tree.root], parents)
