"""Read the facts for an explanation, in a few statements however many groups and providers there are.

Nothing is narrowed, because the explanation is about the providers that conditions refuse. Which provider meets which
condition is computed from plain pairs, so the statements do not depend on the request.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import os_traits
from sqlalchemy import Column, bindparam, select

from placement.domain.candidate_request import CandidateRequest
from placement.domain.facts import Facts, Stocks
from placement.domain.search_plan import Plan
from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.locks import withheld_providers
from placement.store.search.names import NamedIds
from placement.store.stock import StockSource
from placement.store.tables import (
    inventories,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
)

_RP = resource_providers.c
_INV = inventories.c
_HAS = resource_provider_traits.c
_IN = resource_provider_aggregates.c

SHARES = os_traits.MISC_SHARES_VIA_AGGREGATE


class Named(NamedTuple):
    """A provider with its uuids and name, as shown to people."""

    id: int
    uuid: str
    name: str
    root_uuid: str


def facts_for(tx: Transaction, plan: Plan, ids: NamedIds) -> Facts:
    """Read what the cloud has of everything that a plan names."""
    reader = _FactReader(tx)
    parents = reader.parents() if _needs_every_provider(plan.request) else {}
    traits = {name: id_ for name, id_ in ids.traits.items() if name != SHARES or ids.shares}
    owners = reader.holders(_OWNERS, traits)
    return Facts(
        stocks=reader.stocks(ids.classes),
        owners=owners,
        members=reader.holders(_MEMBERS, ids.aggregates),
        root_of=reader.root_of,
        parents=parents,
        roots=ids.roots,
        shares=reader.shares(owners[SHARES]) if ids.shares else {},
        held=withheld_providers(tx, ids.locks) if ids.locks else frozenset(),
    )


def named_providers(tx: Transaction, ids: Iterable[int]) -> dict[int, Named]:
    """Return the names of some providers."""
    wanted = sorted(set(ids))
    return {row[0]: Named(*row) for row in tx.tuples(_NAMED, {"ids": wanted})} if wanted else {}


def _needs_every_provider(request: CandidateRequest) -> bool:
    """Tell whether ancestry matters, or providers without inventory do."""
    return bool(request.same_subtree) or not all(group.resources for group in request.groups)


class _Holdings:
    """The statements for who has some traits, or is in some aggregates: ``alone``, and with the roots of these."""

    def __init__(self, held: Column[int], holder: Column[int]) -> None:
        of_wanted = select(held, holder).where(held.in_(bindparam("wanted", expanding=True)))
        self.alone = PreparedStatement(of_wanted)
        self.with_roots = PreparedStatement(
            of_wanted.add_columns(_RP.root_provider_id).join(resource_providers, _RP.id == holder)
        )


def _all_of(lists: Sequence[list[int]]) -> Sequence[int]:
    """Return what is in any of some lists without duplicates; the only one as it is."""
    return lists[0] if len(lists) == 1 else [*dict.fromkeys(chain.from_iterable(lists))]


class _FactReader:
    """Reads facts; ``root_of`` has the root of every provider read so far."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.root_of: dict[int, int] = {}
        self._knows_every_root = False

    def parents(self) -> dict[int, int | None]:
        """Return the parent of every provider."""
        rows = self._tx.tuples(_EVERY_PROVIDER)
        self._note(map(itemgetter(0, 1), rows))
        self._knows_every_root = True
        return dict(map(itemgetter(0, 2), rows))

    def stocks(self, classes: Mapping[str, int]) -> dict[str, Stocks]:
        """Return each provider's stock of some classes."""
        statement = _stocks(keeps_usage=self._tx.database.keeps_usage)
        rows = self._tx.tuples(statement, {"classes": sorted(classes.values())})
        self._note(map(itemgetter(1, 2), rows))
        by_id: dict[int, list[Any]] = {id_: [] for id_ in classes.values()}
        for row in rows:
            by_id[row[0]].append(row)
        return {name: by_id[id_] for name, id_ in classes.items()}

    def holders(self, holdings: _Holdings, ids: Mapping[str, int]) -> dict[str, set[int]]:
        """Return the providers that have each trait, or are in each aggregate."""
        found: dict[int, set[int]] = {id_: set() for id_ in ids.values()}
        statement = holdings.alone if self._knows_every_root else holdings.with_roots
        rows = self._tx.tuples(statement, {"wanted": sorted(found)}) if found else []
        self._note(map(itemgetter(1, 2), rows))
        for row in rows:
            found[row[0]].add(row[1])
        return {name: found[id_] for name, id_ in ids.items()}

    def shares(self, sharing: Collection[int]) -> dict[int, Sequence[int]]:
        """Map each sharing provider to the roots of the trees that it shares an aggregate with.

        Hundreds of pools may share an aggregate with thousands of trees: who is in it is read once for all of them.
        """
        aggregates: dict[int, list[int]] = defaultdict(list)
        for aggregate, provider in self._tx.tuples(_SHARED, {"sharing": sorted(sharing)}):
            aggregates[provider].append(aggregate)
        roots: dict[int, list[int]] = defaultdict(list)
        for aggregate, root in self._tx.tuples(_ROOTS_IN, {"sharing": sorted(aggregates)}):
            roots[aggregate].append(root)
        return {provider: _all_of([roots[aggregate] for aggregate in of]) for provider, of in aggregates.items()}

    def _note(self, roots: Iterable[tuple[int, int]]) -> None:
        if not self._knows_every_root:
            self.root_of.update(roots)


_EVERY_PROVIDER = PreparedStatement(select(_RP.id, _RP.root_provider_id, _RP.parent_provider_id))
_OWNERS = _Holdings(_HAS.trait_id, _HAS.resource_provider_id)
_MEMBERS = _Holdings(_IN.aggregate_id, _IN.resource_provider_id)
_SHARER = resource_provider_aggregates.alias("sharer")
_OF_SHARING = _SHARER.c.resource_provider_id.in_(bindparam("sharing", expanding=True))
_SHARED = PreparedStatement(select(_SHARER.c.aggregate_id, _SHARER.c.resource_provider_id).where(_OF_SHARING))
_ROOTS_IN = PreparedStatement(
    select(_IN.aggregate_id, _RP.root_provider_id)
    .join(resource_providers, _RP.id == _IN.resource_provider_id)
    .where(_IN.aggregate_id.in_(select(_SHARER.c.aggregate_id).where(_OF_SHARING)))
    .distinct()
)
_ROOT = resource_providers.alias("root")
_NAMED = PreparedStatement(
    select(_RP.id, _RP.uuid, _RP.name, _ROOT.c.uuid)
    .join(_ROOT, _ROOT.c.id == _RP.root_provider_id)
    .where(_RP.id.in_(bindparam("ids", expanding=True)))
)


@lru_cache(maxsize=2)
def _stocks(*, keeps_usage: bool) -> PreparedStatement:
    """Return the statement for rows of ``Stocks``."""
    stock = StockSource(keeps_usage=keeps_usage)
    owned = inventories.join(resource_providers, _RP.id == _INV.resource_provider_id)
    source, root = (stock.in_use, stock.root) if keeps_usage else (stock.with_usage(owned), _RP.root_provider_id)
    columns = (
        _INV.resource_class_id,
        _INV.resource_provider_id,
        root,
        stock.left,
        _INV.min_unit,
        _INV.max_unit,
        _INV.step_size,
    )
    wanted = _INV.resource_class_id.in_(bindparam("classes", expanding=True))
    return PreparedStatement(select(*columns).select_from(source).where(wanted))
