"""Read the facts for an explanation, in a few statements however many groups and providers there are.

Nothing is narrowed, because the explanation is about the providers that conditions refuse. Which provider meets which
condition is computed from plain pairs, so the statements do not depend on the request.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

import os_traits
from sqlalchemy import Column, bindparam, func, select

from placement.domain.candidate_request import CandidateRequest
from placement.domain.facts import EqualStocks, Facts, Stocks
from placement.domain.search_plan import NamedIds, Plan
from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.locks import withheld_providers
from placement.store.search.listed_rows import ListedRows
from placement.store.search.ranges import HAS_ROOT
from placement.store.stock import STEP_SIZE, StockSource
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
        wanted = held.in_(bindparam("wanted", expanding=True))
        self.alone = ListedRows([held], [holder], lambda selected: selected.where(wanted))
        self.with_roots = ListedRows(
            [held],
            [holder, _RP.root_provider_id],
            lambda selected: selected.join(resource_providers, _RP.id == holder).where(wanted, HAS_ROOT),
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
        self.root_of.update(map(itemgetter(0, 1), rows))
        self._knows_every_root = True
        return dict(map(itemgetter(0, 2), rows))

    def stocks(self, classes: Mapping[str, int]) -> dict[str, Stocks]:
        """Return the stocks of some classes."""
        found: dict[int, list[EqualStocks]] = {id_: [] for id_ in classes.values()}
        statement = _stocks(keeps_usage=self._tx.database.keeps_usage)
        for class_, *numbers, providers, roots in statement.read(self._tx, {"classes": sorted(found)}):
            found[class_].append(EqualStocks._make([*numbers, providers]))
            self._note(providers, roots)
        return {name: found[id_] for name, id_ in classes.items()}

    def holders(self, holdings: _Holdings, ids: Mapping[str, int]) -> dict[str, set[int]]:
        """Return the providers that have each trait, or are in each aggregate."""
        found: dict[int, set[int]] = {id_: set() for id_ in ids.values()}
        statement = holdings.alone if self._knows_every_root else holdings.with_roots
        for held, holders, *roots in statement.read(self._tx, {"wanted": sorted(found)}) if found else ():
            found[held].update(holders)
            for of_holders in roots:
                self._note(holders, of_holders)
        return {name: found[id_] for name, id_ in ids.items()}

    def shares(self, sharing: Collection[int]) -> dict[int, Sequence[int]]:
        """Map each sharing provider to the roots of the trees that it shares an aggregate with.

        Hundreds of pools may share an aggregate with thousands of trees: who is in it is read once for all of them.
        """
        aggregates: dict[int, list[int]] = dict(_AGGREGATES_OF.read(self._tx, {"sharing": sorted(sharing)}))
        found = _ROOTS_IN.read(self._tx, {"sharing": sorted(aggregates)})
        roots = {aggregate: [*dict.fromkeys(of)] for aggregate, of in found}
        return {provider: _all_of([roots[aggregate] for aggregate in of]) for provider, of in aggregates.items()}

    def _note(self, providers: Sequence[int], roots: Sequence[int]) -> None:
        if not self._knows_every_root:
            self.root_of.update(zip(providers, roots, strict=True))


_EVERY_PROVIDER = PreparedStatement(select(_RP.id, _RP.root_provider_id, _RP.parent_provider_id).where(HAS_ROOT))
_OWNERS = _Holdings(_HAS.trait_id, _HAS.resource_provider_id)
_MEMBERS = _Holdings(_IN.aggregate_id, _IN.resource_provider_id)
_SHARER = resource_provider_aggregates.alias("sharer")
_OF_SHARING = _SHARER.c.resource_provider_id.in_(bindparam("sharing", expanding=True))
_AGGREGATES_OF = ListedRows(
    [_SHARER.c.resource_provider_id], [_SHARER.c.aggregate_id], lambda selected: selected.where(_OF_SHARING)
)
_ROOTS_IN = ListedRows(
    [_IN.aggregate_id],
    [_RP.root_provider_id],
    lambda selected: selected.join(resource_providers, _RP.id == _IN.resource_provider_id).where(
        _IN.aggregate_id.in_(select(_SHARER.c.aggregate_id).where(_OF_SHARING)), HAS_ROOT
    ),
)
_ROOT = resource_providers.alias("root")
_NAMED = PreparedStatement(
    select(_RP.id, _RP.uuid, func.coalesce(_RP.name, _RP.uuid), func.coalesce(_ROOT.c.uuid, _RP.uuid))
    .outerjoin(_ROOT, _ROOT.c.id == _RP.root_provider_id)
    .where(_RP.id.in_(bindparam("ids", expanding=True)))
)


@lru_cache(maxsize=2)
def _stocks(*, keeps_usage: bool) -> ListedRows:
    """Return the statement for who has which stock: a class, the numbers of ``EqualStocks``, providers, their roots."""
    stock = StockSource(keeps_usage=keeps_usage)
    owned = inventories.join(resource_providers, _RP.id == _INV.resource_provider_id)
    source, root = (stock.in_use, stock.root) if keeps_usage else (stock.with_usage(owned), _RP.root_provider_id)
    wanted = _INV.resource_class_id.in_(bindparam("classes", expanding=True))
    return ListedRows(
        [_INV.resource_class_id, stock.left, _INV.min_unit, _INV.max_unit, STEP_SIZE],
        [_INV.resource_provider_id, root],
        lambda selected: selected.select_from(source).where(wanted, root.is_not(None)),
    )
