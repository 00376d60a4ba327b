"""Details of trees that only some requests need: which trait sets providers meet, their parents, and place anchors."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import and_, bindparam, select

from placement.domain.search_plan import Plan
from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.names import NamedIds
from placement.store.search.parents import parents_in
from placement.store.search.ranges import Extent, Scope, within
from placement.store.search.serving import Serving
from placement.store.search.summaries import ProvidersOfTrees
from placement.store.tables import resource_provider_traits, resource_providers

ParentOf = dict[int, int | None]

_TraitRow = tuple[int, int | None, int, int | None]
"""A provider, its parent, the root of its tree, and a trait."""


class TreeDetails(NamedTuple):
    """Details that a search and the ranking of its candidates depend on; each is empty where it does not matter.

    Args:
        met: the plan's trait sets that each provider meets, as bits.
        parents: the parents of every provider on the way up from a fitting one.
        level_bits: the levels whose places each provider anchors, as bits.
        root_of: the roots of the trees that these anchors are in.
    """

    met: dict[int, int]
    parents: ParentOf
    level_bits: dict[int, int]
    root_of: dict[int, int]


class DetailReader:
    """Reads the details that one plan depends on.

    Args:
        tx: the transaction.
        plan: what is asked for.
        ids: the ids of the names in the plan.
        with_places: whether anchors of places are needed.
    """

    def __init__(self, tx: Transaction, plan: Plan, ids: NamedIds, *, with_places: bool) -> None:
        self._tx = tx
        self._with_places = with_places
        self._ties = bool(plan.request.same_subtree)
        self._sets_met: dict[int, int] = defaultdict(int)
        for index, any_of in enumerate(plan.trait_sets):
            for name in any_of:
                self._sets_met[ids.traits[name]] |= 1 << index
        levels = enumerate(ids.levels if with_places else ())
        self._levels: dict[int, int] = {trait: 1 << level for level, trait in levels if trait is not None}

    @property
    def is_needed(self) -> bool:
        """Whether the plan needs any details."""
        return bool(self._ties or self._sets_met or self._levels)

    def of_extent(self, extent: Extent, serving: Serving) -> TreeDetails:
        """Read the details of all trees of an extent; ``serving`` are the providers found in them."""
        if not self._sets_met and not self._levels:
            return TreeDetails({}, parents_in(self._tx, extent) if self._ties else {}, {}, {})
        rows = self._rows(extent, with_others=self._ties)
        parents = _parents_of_rows(rows)
        if self._with_places and not self._ties:
            parents |= serving.parents()
            above = {*parents.values()}.difference(parents, [None])
            if above and above.difference(serving.roots(), [row[2] for row in rows]):
                # A provider in between has none of the traits and cannot serve anything.
                rows = self._rows(extent, with_others=True)
                parents = _parents_of_rows(rows)
        pairs = [(row[0], row[3]) for row in rows]
        bits = _bits(pairs, self._levels)
        root_of = {row[0]: row[2] for row in rows if row[0] in bits}
        return TreeDetails(_bits(pairs, self._sets_met), parents, bits, root_of)

    def of_providers(self, providers: ProvidersOfTrees, fitting: Collection[int]) -> TreeDetails:
        """Return the details of trees that are already read; ``fitting`` were found in these and perhaps in others."""
        _roots, members, pairs = providers
        wanted = {*self._sets_met, *self._levels}
        found = [pair for pair in pairs if pair[1] in wanted and pair[0] in members]
        bits = _bits(found, self._levels)
        root_of = {id_: members[id_][2] for id_ in bits}
        parents: ParentOf = {}
        among: Collection[int | None] = members if self._ties else {*fitting, *bits}
        while among:
            parents |= {id_: members[id_][3] for id_ in among if id_ in members}
            among = {*parents.values()} - parents.keys() - {None}
        return TreeDetails(_bits(found, self._sets_met), parents, bits, root_of)

    def met_by(self, providers: Collection[int]) -> dict[int, int]:
        """Read which trait sets some providers meet."""
        values = {"providers": sorted(providers), "traits": sorted(self._sets_met)}
        return _bits(self._tx.tuples(_TRAITS_OF, values), self._sets_met)

    def _rows(self, extent: Extent, *, with_others: bool) -> list[_TraitRow]:
        """Read each provider with each of its relevant traits, and those without any for ``with_others``."""
        traits = sorted({*self._sets_met, *self._levels})
        return self._tx.tuples(_with_traits(extent.scope, with_others=with_others), {**extent.values, "among": traits})


def _bits(pairs: Iterable[tuple[int, int | None]], bits: Mapping[int, int]) -> dict[int, int]:
    """Combine the bits of each provider's traits.

    Args:
        pairs: providers with one of their traits, or None.
        bits: the bits of a trait.
    """
    found: dict[int, int] = {}
    if bits:
        for provider, trait in pairs:
            if trait is not None and trait in bits:
                found[provider] = found.get(provider, 0) | bits[trait]
    return found


def _parents_of_rows(rows: Iterable[_TraitRow]) -> ParentOf:
    return {row[0]: row[1] for row in rows}


_PROVIDER = resource_providers.c
_HAS = resource_provider_traits.c
_TRAITS_OF = PreparedStatement(
    select(_HAS.resource_provider_id, _HAS.trait_id).where(
        _HAS.resource_provider_id.in_(bindparam("providers", expanding=True)),
        _HAS.trait_id.in_(bindparam("traits", expanding=True)),
    )
)


@lru_cache(maxsize=2 * len(Scope))
def _with_traits(scope: Scope, *, with_others: bool) -> PreparedStatement:
    has_trait = and_(_HAS.resource_provider_id == _PROVIDER.id, _HAS.trait_id.in_(bindparam("among", expanding=True)))
    return PreparedStatement(
        select(_PROVIDER.id, _PROVIDER.parent_provider_id, _PROVIDER.root_provider_id, _HAS.trait_id)
        .select_from(resource_providers.join(resource_provider_traits, has_trait, isouter=with_others))
        .where(*within(_PROVIDER.root_provider_id, scope))
    )
