"""The levels inside trees: whose child each provider is, and which providers stand for a place of a level."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import and_, bindparam, select

from placement.domain.levels import places_of
from placement.domain.tree import Tree
from placement.store.connection.kept import Kept
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import Scope, within
from placement.store.tables import resource_provider_traits, resource_providers

Parents = dict[int, int | None]
Marks = dict[int, int]
"""For each provider that is a place: of which levels, as bits."""

_PROVIDER = resource_providers.c
_HAS = resource_provider_traits.c


def provider_levels(
    tx: Transaction, levels: Sequence[int | None], scope: Scope, values: Mapping[str, Any], *, with_others: bool
) -> tuple[Parents, Marks]:
    """Return which levels the providers of some trees stand for, and the parents of those that stand for any.

    Args:
        tx: where to read.
        levels: the traits of the levels, outermost first, None for those that no provider has.
        scope: which trees.
        values: what the scope binds.
        with_others: whether the parents of all other providers of the trees are wanted, too.
    """
    bits = {trait: 1 << level for level, trait in enumerate(levels) if trait is not None}
    parents: Parents = {}
    marks: Marks = defaultdict(int)
    for provider, parent, trait in tx.tuples(
        _levels(scope, with_others=with_others), {**values, "level_traits": sorted(bits)}
    ):
        parents[provider] = parent
        if trait is not None:
            marks[provider] |= bits[trait]
    return parents, marks


@lru_cache(maxsize=2 * len(Scope))
def _levels(scope: Scope, *, with_others: bool) -> Kept:
    is_level = _HAS.trait_id.in_(bindparam("level_traits", expanding=True))
    return Kept(
        select(_PROVIDER.id, _PROVIDER.parent_provider_id, _HAS.trait_id)
        .select_from(
            resource_providers.join(
                resource_provider_traits,
                and_(_HAS.resource_provider_id == _PROVIDER.id, is_level),
                isouter=with_others,
            )
        )
        .where(*within(_PROVIDER.root_provider_id, scope))
    )


def add_places(trees: Iterable[Tree], marks: Marks, levels: Sequence[int | None]) -> None:
    """Note in each tree where its own providers lie; what shares with it lies elsewhere."""
    in_use = [trait is not None for trait in levels]
    for tree in trees:
        fitting = {provider for options in tree.options for provider in options}
        if tree.home:
            fitting = {provider for provider in fitting if tree.home.get(provider, tree.root) == tree.root}
        tree.places = places_of(fitting, tree.parents, marks, in_use)
