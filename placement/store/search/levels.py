"""The levels inside trees: whose child each provider is, which stand for a place of a level, and who lies where."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import and_, bindparam, select

from placement.domain.levels import Layout, Places
from placement.domain.tree import Tree
from placement.store.connection.kept import Kept
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import Scope, within
from placement.store.tables import resource_provider_traits, resource_providers

Parents = dict[int, int | None]
Marks = dict[int, tuple[int, int]]
"""For each provider that is a place: the root of its tree, and of which levels, as bits."""

Row = tuple[int, int | None, int, int | None]
"""A provider, its parent, the root of its tree, and a trait."""


class Fitting(NamedTuple):
    """The providers that can serve a kind, in columns; one that can serve several kinds is there for each of them."""

    roots: Sequence[int]
    providers: Sequence[int]
    parents: Sequence[int | None]
    times: Sequence[float]
    """How many times what the kind asks fits."""

    @classmethod
    def of(cls, rows: Iterable[Sequence[Any]], *, with_parents: bool) -> "Fitting":
        """Return the columns of rows of (kind, root, provider, ..., parent if it is there, how many times it fits)."""
        _kinds, roots, providers, *others = zip(*rows, strict=True)
        return cls(roots, providers, others[-2] if with_parents else (), others[-1])


NOBODY = Fitting((), (), (), ())

Fit = tuple[int, float]
"""A provider, and how many times what is asked fits on it."""

_PROVIDER = resource_providers.c
_HAS = resource_provider_traits.c


def with_traits(
    tx: Transaction, traits: Collection[int], scope: Scope, values: Mapping[str, Any], *, with_others: bool
) -> list[Row]:
    """Return a row for each provider of some trees and each trait of ``traits`` that it has.

    Args:
        tx: where to read.
        traits: the ids of the traits.
        scope: which trees.
        values: what the scope binds.
        with_others: whether there is to be a row for a provider that has none, too.
    """
    return tx.tuples(_with_traits(scope, with_others=with_others), {**values, "among": sorted(traits)})


@lru_cache(maxsize=2 * len(Scope))
def _with_traits(scope: Scope, *, with_others: bool) -> Kept:
    has_trait = and_(_HAS.resource_provider_id == _PROVIDER.id, _HAS.trait_id.in_(bindparam("among", expanding=True)))
    return Kept(
        select(_PROVIDER.id, _PROVIDER.parent_provider_id, _PROVIDER.root_provider_id, _HAS.trait_id)
        .select_from(resource_providers.join(resource_provider_traits, has_trait, isouter=with_others))
        .where(*within(_PROVIDER.root_provider_id, scope))
    )


def parents_in(rows: Iterable[Row]) -> Parents:
    """Return the parents of providers."""
    return {row[0]: row[1] for row in rows}


def marks_in(rows: Iterable[Row], levels: Sequence[int | None]) -> Marks:
    """Return which levels providers stand for.

    Args:
        rows: their traits.
        levels: the traits of the levels, outermost first, None for those that no provider has.
    """
    bits = {trait: 1 << level for level, trait in enumerate(levels) if trait is not None}
    marks: Marks = {}
    for provider, _parent, root, trait in rows:
        if trait in bits:
            marks[provider] = root, marks.get(provider, (root, 0))[1] | bits[trait]
    return marks


def add_places(trees: Iterable[Tree], layout: Layout, fitting: Fitting, shared: Collection[Fit]) -> None:
    """Lay out each tree: where its own providers lie, and how full it is there; what shares with it lies elsewhere.

    Args:
        trees: the trees.
        layout: the places in them.
        fitting: their providers.
        shared: how many times what is asked fits on providers that share with other trees.
    """
    roots, providers, _parents, times = fitting
    inside = layout.inside({*providers})
    places = Places(layout.masks_of(inside), layout.levels)
    around, alone = layout.around(zip(providers, times, strict=True), inside), layout.around(shared, {})
    in_use = {root for root, provider in zip(roots, providers, strict=True) if provider in places.of}
    for tree in trees:
        if tree.root in in_use:
            tree.lay_out(*(_apart(tree, places, around, alone) if alone else (places, around)))


def _apart(
    tree: Tree, places: Places, around: Mapping[int, float], alone: Mapping[int, float]
) -> tuple[Places, Mapping[int, float]]:
    """Let providers of other trees lie in no place, and stand for themselves."""
    options = {provider for providers in tree.options for provider in providers}
    strangers = {provider for provider in options if tree.home.get(provider, tree.root) != tree.root}
    own = {provider: places.of[provider] for provider in options - strangers if provider in places.of}
    left = {provider: (alone if provider in strangers else around)[provider] for provider in options}
    return Places(own, places.levels), left
